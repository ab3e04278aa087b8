"""The units of every road, their hours, and what each needs: a graph that is checked.

The course's units are its sessions, and the year's are its weeks, see `year`. Any other road, [road.NAME] in
handbook/sessions/road.toml, lists its own, of which one may need a session of the course, one before it, or two GPUs.
Standard library only.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from course_site.pages.needs import fault_of, is_hardware
from course_site.sessions import year
from course_site.sessions.course_road import COURSE, FILE, Road, read_road, road_tables
from course_site.sessions.plan_file import Plan


@dataclass(frozen=True)
class Unit:
    """A part of a road: a session, or a week.

    Attributes:
        hours: how long it takes.
        needs: the units that come before it, of any road.
        hardware: needs of the machine, in the words of a page's head, such as "gpus 2".
        page: the repository path of its page, which may be to come, or "".
    """

    name: str
    title: str
    hours: float
    needs: tuple[str, ...] = ()
    hardware: tuple[str, ...] = ()
    page: str = ""


@dataclass(frozen=True)
class UnitRoad:
    """A road as a row of units."""

    title: str
    units: tuple[Unit, ...]

    @property
    def entries(self) -> tuple[Unit, ...]:
        """The units at which somebody may begin: they need no other of this road."""
        names = {unit.name for unit in self.units}
        return tuple(unit for unit in self.units if not names & set(unit.needs))


def read_units(root: Path) -> dict[str, UnitRoad]:
    """Return every road of a repository by its name, checked; the course comes first.

    Raises:
        PlanError: a unit without hours, one that needs what there is not, itself in the end, or what comes later.
    """
    roads = {COURSE: _sessions(read_road(root))}
    tables: dict[str, Plan] = {}
    for name, table in road_tables(root).items():
        if name != COURSE:
            roads[name] = _read(Plan(FILE, table, ("title", "unit"), f"road.{name}"), tables)
    weeks, of_weeks = year.read_tables(root)
    if weeks.parts:
        roads[year.ROAD] = _weeks(weeks)
        tables |= of_weeks
    _check(roads, tables)
    return roads


def _sessions(road: Road) -> UnitRoad:
    units = (Unit(name, name.upper(), road.kinds[name].minutes / 60) for name in road.sessions)
    return UnitRoad("The course", tuple(units))


def _weeks(found: year.Year) -> UnitRoad:
    named = {week.number: week.name for week in found.weeks}
    units = (
        Unit(
            week.name,
            week.title,
            week.hours,
            tuple(named.get(number, f"week {number}") for number in week.needs),
            week.hardware,
            week.page,
        )
        for week in found.weeks
    )
    return UnitRoad("The year", tuple(units))


def _read(road: Plan, tables: dict[str, Plan]) -> UnitRoad:
    """Return one road; `tables` is given the table of each of its units."""
    units = []
    for table in road.tables("unit", ("title", "hours", "needs", "page")):
        name = table.where.rpartition(".")[2]
        if name in tables:
            raise table.wrong(f"there is a unit {name!r} in [{tables[name].where}] already")
        tables[name] = table
        words = table.texts("needs")
        for fault in (fault_of(word) for word in words if is_hardware(word)):
            if fault:
                raise table.wrong(fault)
        units.append(
            Unit(
                name,
                table.text("title"),
                table.hours("hours"),
                tuple(word for word in words if not is_hardware(word)),
                tuple(word for word in words if is_hardware(word)),
                table.text("page") if "page" in table.data else "",
            )
        )
    if not units:
        raise road.wrong("has no units: write [road.NAME.unit.NAME]")
    return UnitRoad(road.text("title"), tuple(units))


def _check(roads: Mapping[str, UnitRoad], tables: Mapping[str, Plan]) -> None:
    """Refuse the first need that cannot be met."""
    units = {unit.name: unit for road in roads.values() for unit in road.units}
    for name, table in tables.items():
        if name in (session.name for session in roads[COURSE].units):
            raise table.wrong(f"{name!r} is a session of the course: give the unit a name of its own")
        for need in units[name].needs:
            if need not in units:
                near = difflib.get_close_matches(need, units, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(units)}"
                raise table.wrong(f"{need!r} is neither a unit nor hardware; {hint}", "needs")
    try:
        TopologicalSorter({name: unit.needs for name, unit in units.items()}).prepare()
    except CycleError as error:
        circle = error.args[1][:0:-1]
        first = min(circle, key=list(tables).index)
        at = circle.index(first)
        said = " needs ".join((*circle[at:], *circle[:at], first))
        raise tables[first].wrong(f"needs itself: {said}", "needs") from None
    for road in roads.values():
        order = [unit.name for unit in road.units]
        for place, unit in enumerate(road.units):
            if later := [need for need in unit.needs if need in order[place:]]:
                raise tables[unit.name].wrong(
                    f"{later[0]!r} comes later on this road: put it before", "needs"
                )
