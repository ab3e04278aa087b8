"""The units of a road on a page: each with its hours, and what must be there before it."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping

from course_site.pages.needs import in_words
from course_site.sessions.session import Session
from course_site.sessions.units import Unit, UnitRoad

Address = Callable[[str], str | None]


def units_table(
    name: str, roads: Mapping[str, UnitRoad], sessions: Mapping[str, Session], address: Address
) -> str:
    """Return one road as a table, a row for each unit.

    Args:
        name: the road, one of `roads`.
        sessions: the maps, in which the units of the course have their titles and pages.
        address: a page of the repository to its address, or None while it is to come.
    """
    road = roads[name]
    known = {unit.name: _named(unit, sessions) for other in roads.values() for unit in other.units}
    rows = "".join(
        f'<tr><th scope="row">{number}</th><td>{"".join(_title(unit, road, address))}</td>'
        f"<td>{unit.hours:g}</td><td>{_needs(unit, known)}</td></tr>"
        for number, unit in enumerate((known[unit.name] for unit in road.units), 1)
    )
    label = html.escape(road.title)
    hours = sum(unit.hours for unit in road.units)
    return (
        f'<div class="scroll cohort" tabindex="0" role="region" aria-label="{label}">'
        f"<table><caption>{label}, {hours:g} hours</caption>"
        '<thead><tr><th scope="col">No.</th><th scope="col">Unit</th><th scope="col">Hours</th>'
        f'<th scope="col">Needs</th></tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _named(unit: Unit, sessions: Mapping[str, Session]) -> Unit:
    """Return a unit with its title and page, which those of the course have in their maps."""
    session = sessions.get(unit.name)
    if session is None:
        return unit
    return Unit(unit.name, session.name, unit.hours, unit.needs, unit.hardware, session.student_page)


def _title(unit: Unit, road: UnitRoad, address: Address) -> Iterator[str]:
    title, href = html.escape(unit.title), address(unit.page) if unit.page else None
    yield f'<a href="{html.escape(href)}">{title}</a>' if href else title
    if unit.name in {entry.name for entry in road.entries}:
        yield ' <span class="minutes">begin here</span>'


def _needs(unit: Unit, known: Mapping[str, Unit]) -> str:
    needs = [known[need].title for need in unit.needs] + [in_words(need) for need in unit.hardware]
    return html.escape(", ".join(needs))
