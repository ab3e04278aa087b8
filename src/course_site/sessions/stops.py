"""The stops of the course in their order, and what holds for one session and not for all.

Read from handbook/sessions/road.toml. Standard library only.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from course_site.sessions.plan_file import PlanError, PlanFile, Table

FOLDER = "handbook/sessions"
FILE = f"{FOLDER}/road.toml"
# The kinds of a step.
KINDS = ("board", "by hand", "live build", "demo", "benchmark", "reading", "tour", "discussion", "break")


@dataclass(frozen=True)
class Kind:
    """What all sessions of one kind share: their minutes, and how much their maps have at least."""

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
        exempt: the kind of step that may go without fingers, by session.
        exempt_words: the same for a reader.
        waits: the id of the page that measures the waits of live demos.
    """

    before: tuple[str, ...] = ()
    halves: tuple[tuple[str, tuple[str, ...]], ...] = ()
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    boundaries: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    exempt: Mapping[str, str] = field(default_factory=dict)
    exempt_words: str = ""
    waits: str = ""

    @property
    def stops(self) -> tuple[str, ...]:
        """All stops in their order."""
        return tuple(stop for _, stops in self.halves for stop in stops)

    @property
    def sessions(self) -> tuple[str, ...]:
        """All sessions in their order."""
        return self.before + self.stops

    def number(self, session: str) -> int:
        """The place of a session among the stops, from 1; 0 for one that stands before the road."""
        return self.stops.index(session) + 1 if session in self.stops else 0

    def half(self, session: str) -> str:
        """The title of the half in which a session has its stop, or ""."""
        return next((title for title, stops in self.halves if session in stops), "")


def load_road(root: Path) -> Road:
    """The road of a repository; one without stops where there is none or it is wrong, which `read_road` says."""
    with contextlib.suppress(PlanError):
        return read_road(root)
    return Road()


def read_road(root: Path) -> Road:
    """The road of a repository, checked.

    Raises:
        PlanError: see the class.
    """
    file = PlanFile(root, FILE)
    data = file.data
    file.known(data, ("before", "waits", "half", "kind", "boundaries", "exempt"))
    halves = []
    for i, table in enumerate(file.tables("half"), 1):
        file.known(table, ("title", "stops"), f"half {i}")
        halves.append((file.text(table, "title", f"half {i}"), _names(file, table, "stops", f"half {i}")))
    before = _names(file, data, "before", "")
    known = [*before, *itertools.chain.from_iterable(stops for _, stops in halves)]
    for name in known:
        if known.count(name) > 1:
            raise file.wrong(f"session {name!r} stands there {known.count(name)} times")
    kinds = _kinds(file, known)
    exempt, words = _exempt(file, known)
    return Road(
        before, tuple(halves), kinds, _boundaries(file, kinds), exempt, words, file.text(data, "waits")
    )


def _names(file: PlanFile, table: Table, key: str, where: str) -> tuple[str, ...]:
    names = table.get(key, [])
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise file.wrong(f"needs a list of sessions, got {names!r}", where, key)
    return tuple(names)


def _on_the_road(file: PlanFile, name: str, known: list[str], where: str) -> None:
    if name not in known:
        raise file.wrong(f"{name!r} is no session; known: {', '.join(known)}", where)


def _kinds(file: PlanFile, known: list[str]) -> dict[str, Kind]:
    kinds: dict[str, Kind] = {}
    for word, table in file.data.get("kind", {}).items():
        where = f"kind.{word}"
        file.known(table, ("minutes", "questions", "exit_ticket", "sessions"), where)
        least = (file.whole(table, key, where) for key in ("minutes", "questions", "exit_ticket"))
        kind = Kind(word, *least)
        for name in _names(file, table, "sessions", where):
            _on_the_road(file, name, known, where)
            if name in kinds:
                raise file.wrong(f"{name!r} is a {kinds[name].name} already", where)
            kinds[name] = kind
    for name in known:
        if name not in kinds:
            raise file.wrong(f"{name!r} is of no kind: name it under one of them", "kind")
    return kinds


def _boundaries(file: PlanFile, kinds: Mapping[str, Kind]) -> dict[str, tuple[int, ...]]:
    found = {}
    for name, minutes in file.data.get("boundaries", {}).items():
        _on_the_road(file, name, list(kinds), "boundaries")
        whole = kinds[name].minutes
        steady = isinstance(minutes, list) and all(isinstance(minute, int) for minute in minutes)
        if not steady or minutes != sorted({0, *minutes, whole}) or minutes[-1] != whole:
            raise file.wrong(f"write minutes that rise from 0 to {whole}, not {minutes}", "boundaries", name)
        found[name] = tuple(minutes)
    return found


def _exempt(file: PlanFile, known: list[str]) -> tuple[dict[str, str], str]:
    """The kind of step, by session; and all of them in words."""
    found, words = {}, []
    for i, table in enumerate(file.tables("exempt"), 1):
        where = f"exempt {i}"
        file.known(table, ("session", "kind", "words", "why"), where)
        session, kind, _ = (file.text(table, key, where) for key in ("session", "kind", "why"))
        _on_the_road(file, session, known, where)
        if kind not in KINDS:
            raise file.wrong(f"{kind!r} is no kind of step; known: {', '.join(KINDS)}", where)
        found[session] = kind
        words.append(file.text(table, "words", where))
    return found, " and ".join(words)
