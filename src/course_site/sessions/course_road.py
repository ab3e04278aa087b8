"""The stops of the course in their order, and what holds for one session and not for all.

Read from handbook/sessions/road.toml. Standard library only.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_site.sessions.plan_file import Plan, PlanError, read_plan

FOLDER = "handbook/sessions"
FILE = f"{FOLDER}/road.toml"
COURSE = "course"  # the road that is the course itself; any other is read in `units`
# The kinds of a step.
KINDS = ("board", "by hand", "live build", "demo", "benchmark", "reading", "tour", "discussion", "break")


@dataclass(frozen=True)
class Kind:
    """A kind of session: its minutes, and how much its maps have at least."""

    name: str
    minutes: int
    questions: int
    exit_ticket: int


@dataclass(frozen=True)
class Road:
    """The course as a row of sessions; every session by the stem of its map's file.

    Attributes:
        before: sessions with a map and no stop.
        halves: the two halves, each a title and its stops.
        kinds: the kind of every session.
        boundaries: where the blocks of a session must begin and end, for those that have no choice.
        waits: the id of the page that measures the waits of live demos.
        worklog_from: from this session on the homework has a line for the capstone's worklog.
        trade: the stop from which on the words of the trade lead, or "".
    """

    before: tuple[str, ...] = ()
    halves: tuple[tuple[str, tuple[str, ...]], ...] = ()
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    boundaries: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    waits: str = ""
    worklog_from: str = ""
    trade: str = ""

    @property
    def stops(self) -> tuple[str, ...]:
        """All stops in their order."""
        return tuple(stop for _, stops in self.halves for stop in stops)

    @property
    def sessions(self) -> tuple[str, ...]:
        """All sessions in their order."""
        return self.before + self.stops

    def number(self, session: str) -> int:
        """Return the place of a session among the stops, from 1; 0 for one before the road."""
        return self.stops.index(session) + 1 if session in self.stops else 0

    def half(self, session: str) -> str:
        """Return the title of the half in which a session has its stop, or ""."""
        return next((title for title, stops in self.halves if session in stops), "")


def load_road(root: Path) -> Road:
    """Return the road of a repository; one without stops if it is missing or wrong, see `read_road`."""
    with contextlib.suppress(PlanError):
        return read_road(root)
    return Road()


def read_road(root: Path) -> Road:
    """Return the road of a repository, checked.

    Raises:
        PlanError: see the class.
    """
    keys = ("before", "waits", "worklog_from", "trade", "half", "kind", "boundaries")
    plan = Plan(FILE, road_tables(root)[COURSE], keys, f"road.{COURSE}")
    before = plan.sessions("before")
    halves = [
        (half.text("title"), half.sessions("stops")) for half in plan.tables("half", ("title", "stops"))
    ]
    known = [*before, *(stop for _, stops in halves for stop in stops)]
    for name in known:
        if known.count(name) > 1:
            raise plan.wrong(f"session {name!r} is there {known.count(name)} times")
    kinds = _kinds(plan, known)
    worklog = plan.text("worklog_from")
    plan.check_session(worklog, known, "worklog_from")
    trade = plan.data.get("trade", "")
    if trade:
        plan.check_session(trade, known, "trade")
    return Road(before, tuple(halves), kinds, _boundaries(plan, kinds), plan.text("waits"), worklog, trade)


def road_tables(root: Path) -> dict[str, dict[str, Any]]:
    """Return every [road.NAME] of the file by its name, as it is written there.

    Raises:
        PlanError: the file is not TOML, or has no road of the course.
    """
    plan = read_plan(root, FILE, ("road",))
    roads = plan.data.get("road")
    if not isinstance(roads, dict) or not all(isinstance(road, dict) for road in roads.values()):
        raise plan.wrong("is not a table: write [road.NAME]", "road")
    if COURSE not in roads:
        raise plan.wrong(f"has no [road.{COURSE}]", "road")
    return roads


def _kinds(plan: Plan, known: list[str]) -> dict[str, Kind]:
    kinds: dict[str, Kind] = {}
    for table in plan.tables("kind", ("minutes", "questions", "exit_ticket", "sessions")):
        word = table.where.rpartition(".")[2]
        kind = Kind(word, *map(table.whole, ("minutes", "questions", "exit_ticket")))
        for name in table.sessions("sessions", known):
            if name in kinds:
                raise table.wrong(f"{name!r} is a {kinds[name].name} already", "sessions")
            kinds[name] = kind
    for name in known:
        if name not in kinds:
            raise plan.wrong(f"{name!r} is of no kind: name it under one of them", "kind")
    return kinds


def _boundaries(plan: Plan, kinds: Mapping[str, Kind]) -> dict[str, tuple[int, ...]]:
    found, table = {}, plan.data.get("boundaries", {})
    if not isinstance(table, dict):
        raise plan.wrong("is not a table: write [boundaries]", "boundaries")
    for name, minutes in table.items():
        plan.check_session(name, kinds, "boundaries")
        whole = kinds[name].minutes
        steady = isinstance(minutes, list) and all(isinstance(minute, int) for minute in minutes)
        if not steady or minutes != sorted({0, *minutes, whole}) or minutes[-1] != whole:
            raise plan.wrong(
                f"write minutes that rise from 0 to {whole}, not {minutes}", f"boundaries, {name}"
            )
        found[name] = tuple(minutes)
    return found
