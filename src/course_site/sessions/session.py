"""Session maps: what a mentor does at every minute, read from handbook/sessions/*.toml and checked.

Here is what one file shows by itself: its keys, its minutes, its texts. What it says of pages, labs and measured
waits is checked in `checks`; how it looks on its page is in `map`. Standard library only.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_site.sessions.plan_file import PlanError
from course_site.sessions.stops import FILE as ROAD_FILE
from course_site.sessions.stops import FOLDER, KINDS, Kind, Road, read_road

LONGEST_STEP = 15
# Characters that a reader sees: a link counts by its words.
LIMITS = {"title": 45, "say": 260, "board": 160, "fingers": 200, "room": 160, "cut": 120, "trip": 160}
# Files of the folder that are no session map.
NO_MAPS = frozenset({"cohort", Path(ROAD_FILE).stem})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SESSION_KEYS = _words(
    "title kind about artifact student_page map_page chapter lab prepare exit_ticket questions homework board "
    "demo block"
)
DEMO_KEYS = ("name", "title", "command", "preflight", "fallback")
STEP_KEYS = _words("minutes kind title say board fingers room anchor demo stage feeds check cut trip exempt")
_PASSIVE = _words("listen listens listening watch watches watching look looking looks see")
_FILLER = _words(
    "a all along and are attentively by carefully class closely everybody everyone finger fingers follow follows "
    "hands how in just keep keeps learner learners mentor mentor's nothing on only please quietly room sit sits "
    "stay still student students the their them then they to up while who with you your"
)


@dataclass(frozen=True)
class Answered:
    """A question and its answer, both Markdown."""

    ask: str
    answer: str


@dataclass(frozen=True)
class Demo:
    """A live demo: what is typed in the room, what is typed the day before, and what to show if the GPU fails.

    Attributes:
        fallback: page#anchor with the recorded result.
        wait: the name of its measured wait, in seconds.
    """

    name: str
    title: str
    command: str
    preflight: str
    fallback: str
    wait: str


@dataclass(frozen=True)
class Step:
    """One step of a session. Its texts are Markdown; links are relative to the repository root.

    Attributes:
        where: its place in the file, "block 2, step 3".
        number: from 1, over the whole session.
        start, end: minutes from the start of the session, computed.
        room: what the projector shows while they work, where `fingers` would give the answer away.
        anchor: page#anchor on the students' side, or "".
        demo: the name of the demo that runs, or "".
        stage: the stage of the lab that is typed, or 0.
        check: None in a break.
        exempt: why nobody's fingers move, or "".
    """

    where: str
    number: int
    block: int
    start: int
    minutes: int
    kind: str
    title: str
    say: str
    board: str
    fingers: str
    room: str
    anchor: str
    demo: str
    stage: int
    feeds: str
    check: Answered | None
    cut: str
    trip: str
    exempt: str

    @property
    def end(self) -> int:
        """The minute at which it ends."""
        return self.start + self.minutes


@dataclass(frozen=True)
class Block:
    """A part of a session with fixed boundaries, in minutes from the start; `number` counts from 1."""

    number: int
    start: int
    end: int
    title: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Session:
    """One session map.

    Attributes:
        id: the stem of its file, which is its name on the road.
        path: its file in the repository.
        number: its stop on the road, from 1; 0 if it stands before the road.
        minutes: how long it is, by its kind.
        student_page, map_page, chapter: repository paths; the student page may be to come, or "".
        lab: a lab's name, or "".
        figure, alt: the drawing of the finished board.
    """

    id: str
    path: str
    number: int
    title: str
    kind: str
    minutes: int
    about: str
    artifact: str
    student_page: str
    map_page: str
    chapter: str
    lab: str
    prepare: tuple[str, ...]
    exit_ticket: tuple[Answered, ...]
    questions: tuple[Answered, ...]
    homework: str
    figure: str
    alt: str
    demos: tuple[Demo, ...]
    blocks: tuple[Block, ...]

    @property
    def stop(self) -> str:
        """Its name on the road: L1, W1; "" before the road."""
        return self.id.upper() if self.number else ""

    @property
    def name(self) -> str:
        """Its title, with its place on the road before it."""
        return f"{self.stop} · {self.title}" if self.stop else self.title

    def steps(self) -> tuple[Step, ...]:
        """All steps in order, with computed start and end."""
        return tuple(step for block in self.blocks for step in block.steps)

    def demo(self, name: str) -> Demo | None:
        """The demo of this name."""
        return next((demo for demo in self.demos if demo.name == name), None)

    def strings(self) -> Iterator[tuple[str, str]]:
        """Every Markdown string with its place in the file."""
        yield from (("about", self.about), ("artifact", self.artifact), ("homework", self.homework))
        yield from ((f"prepare {i}", text) for i, text in enumerate(self.prepare, 1))
        for name, pairs in (("exit_ticket", self.exit_ticket), ("questions", self.questions)):
            for i, pair in enumerate(pairs, 1):
                yield f"{name} {i}, ask", pair.ask
                yield f"{name} {i}, answer", pair.answer
        for step in self.steps():
            for name in ("title", "say", "board", "fingers", "room", "feeds", "cut", "trip", "exempt"):
                yield f"{step.where}, {name}", getattr(step, name)
            if step.check:
                yield f"{step.where}, check, ask", step.check.ask
                yield f"{step.where}, check, answer", step.check.answer


@dataclass
class Complaint:
    """Something wrong with a map: which file, which key, what is wrong and what to do."""

    path: str
    key: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.key}: {self.message}" if self.key else f"{self.path}: {self.message}"


def load_sessions(root: Path) -> dict[str, Session]:
    """Every session map of a repository by its id, in the order of the road; faults are left to `read_sessions`."""
    return read_sessions(root)[0]


def read_sessions(root: Path) -> tuple[dict[str, Session], list[Complaint]]:
    """Every session map, and all that is wrong with the files by themselves."""
    sessions: dict[str, Session] = {}
    complaints: list[Complaint] = []
    try:
        road = read_road(root)
    except PlanError as error:
        path, _, message = str(error).partition(": ")
        return {}, [Complaint(path, "", message)]
    paths = {path.stem: path for path in sorted((root / FOLDER).glob("*.toml")) if path.stem not in NO_MAPS}
    for name in [*(n for n in road.sessions if n in paths), *(n for n in paths if n not in road.sessions)]:
        session, wrong = read_session(paths[name], root, road)
        complaints += wrong
        if session:
            sessions[name] = session
    return sessions, complaints


def read_session(path: Path, root: Path, road: Road) -> tuple[Session | None, list[Complaint]]:
    """One session map and all that is wrong with it; None for a file that is no TOML or no session of the road."""
    reader = _Reader(path.relative_to(root).as_posix(), road)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reader.wrong("", f"cannot be read as TOML: {str(error).splitlines()[0]}")
        return None, reader.complaints
    if path.stem not in road.sessions:
        reader.wrong("", f"{path.stem!r} is no session; the files are called {', '.join(road.sessions)}")
        return None, reader.complaints
    return reader.session(path.stem, data), reader.complaints


def visible(text: str) -> str:
    """A Markdown string as a reader sees it, for its length: a link is its words, a value a few digits."""
    text = re.sub(r"\[\^[^\]]+\]", "", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\{\{.*?\}\}", "0000", text)
    return " ".join(re.sub(r"[`*]", "", text).split())


def normalised(text: str) -> str:
    """Words only, in small letters: two texts that say the same are equal."""
    return " ".join(re.findall(r"\w+", visible(text).lower()))


def is_idle(fingers: str) -> bool:
    """True for "listen", "they watch" and their kin: nobody's fingers move."""
    words = set(re.findall(r"[a-z']+", fingers.lower()))
    return bool(words & _PASSIVE) and words <= _PASSIVE | _FILLER


@dataclass
class _Reader:
    """Reads one file leniently and notes everything that is wrong with it."""

    path: str
    road: Road
    complaints: list[Complaint] = field(default_factory=list)

    def wrong(self, key: str, message: str) -> None:
        self.complaints.append(Complaint(self.path, key, message))

    # --- values -----------------------------------------------------------------------------------

    def text(self, table: Mapping[str, Any], key: str, where: str = "", *, needed: str = "") -> str:
        """A text; `needed` says what to write there, and makes it an error to leave it out."""
        place = f"{where}, {key}" if where else key
        value = table.get(key)
        if value is None:
            if needed:
                self.wrong(place, f"is missing: write {needed}")
            return ""
        if not isinstance(value, str):
            self.wrong(place, f"is not a text: {value!r}")
            return ""
        if not value.strip():
            self.wrong(place, f"is empty: write {needed}" if needed else "is empty: fill it or take it out")
            return ""
        limit = LIMITS.get(key) if where.startswith("block") else None
        length = len(visible(value))
        if limit and length > limit:
            self.wrong(place, f"has {length} characters, and {limit} fit: shorten it by {length - limit}")
        return value.strip()

    def whole(self, table: Mapping[str, Any], key: str, where: str, *, needed: str = "") -> int:
        place = f"{where}, {key}"
        value = table.get(key)
        if value is None:
            if needed:
                self.wrong(place, f"is missing: write {needed}")
            return 0
        if not isinstance(value, int) or isinstance(value, bool):
            self.wrong(place, f"is not a whole number: {value!r}")
            return 0
        return value

    def tables(self, table: Mapping[str, Any], key: str, where: str = "") -> list[dict[str, Any]]:
        place = f"{where}, {key}" if where else key
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.wrong(place, f"is not a list of tables: write [[{key}]]")
            return []
        return value

    def known(
        self, table: Mapping[str, Any], keys: frozenset[str] | tuple[str, ...], where: str = ""
    ) -> None:
        for key in table:
            if key not in keys:
                place = f"{where}, {key}" if where else key
                self.wrong(place, f"unknown key; known: {', '.join(sorted(keys))}")

    def answered(self, value: Any, place: str) -> Answered | None:
        if not isinstance(value, dict):
            self.wrong(place, 'is not {ask = "…", answer = "…"}')
            return None
        self.known(value, ("ask", "answer"), place)
        ask = self.text(value, "ask", place, needed="the question")
        return Answered(ask, self.text(value, "answer", place, needed="its answer"))

    def pairs(self, data: Mapping[str, Any], key: str, least: int, most: int) -> tuple[Answered, ...]:
        value = data.get(key, [])
        if not isinstance(value, list):
            self.wrong(key, 'is not a list of {ask = "…", answer = "…"}')
            return ()
        if not least <= len(value) <= most:
            self.wrong(key, f"has {len(value)} entries: write {least} to {most}")
        pairs = [self.answered(item, f"{key} {i}") for i, item in enumerate(value, 1)]
        return tuple(pair for pair in pairs if pair)

    # --- the parts --------------------------------------------------------------------------------

    def session(self, name: str, data: Mapping[str, Any]) -> Session:
        self.known(data, SESSION_KEYS)
        number, expected = self.road.number(name), self.road.kinds[name]
        kind = self.text(data, "kind", needed=f"{expected.name!r}, as in {ROAD_FILE}")
        if kind and kind != expected.name:
            self.wrong("kind", f"is {kind!r}, and {name} is a {expected.name}")
        board = data.get("board", {})
        if not isinstance(board, dict) or not board:
            self.wrong("board", "is missing: write [board] with figure and alt")
            board = {}
        else:
            self.known(board, ("figure", "alt"), "board")
        prepare = data.get("prepare", [])
        if not isinstance(prepare, list) or not all(isinstance(t, str) and t.strip() for t in prepare):
            self.wrong("prepare", "is not a list of texts")
            prepare = []
        elif not prepare:
            self.wrong("prepare", "is empty: write what is done the day before and before the door opens")
        demos = self.demos(data)
        blocks = self.blocks(name, expected, data)
        session = Session(
            id=name,
            path=self.path,
            number=number,
            title=self.text(data, "title", needed="the session's title"),
            kind=expected.name,
            minutes=expected.minutes,
            about=self.text(data, "about", needed="one sentence: what it is really about"),
            artifact=self.text(data, "artifact", needed="the one thing every student leaves with"),
            student_page=self.text(data, "student_page", needed="the students' page" if number else ""),
            map_page=self.text(data, "map_page", needed="the page with this map"),
            chapter=self.text(data, "chapter", needed="the mentor's chapter"),
            lab=self.text(data, "lab"),
            prepare=tuple(text.strip() for text in prepare),
            exit_ticket=self.pairs(data, "exit_ticket", expected.exit_ticket, 3),
            questions=self.pairs(data, "questions", expected.questions, 8),
            homework=self.text(data, "homework"),
            figure=self.text(board, "figure", "board", needed="the drawing of the finished board"),
            alt=self.text(board, "alt", "board", needed="what the drawing shows"),
            demos=demos,
            blocks=blocks,
        )
        self.check_demos(session)
        self.check_titles(session)
        self.check_fingers(session)
        return session

    def demos(self, data: Mapping[str, Any]) -> tuple[Demo, ...]:
        demos: list[Demo] = []
        for i, table in enumerate(self.tables(data, "demo"), 1):
            where = f"demo {i}"
            self.known(table, DEMO_KEYS, where)
            demo = Demo(
                name=self.text(table, "name", where, needed="a Python name, such as w1_benchmark"),
                title=self.text(table, "title", where, needed="what it shows"),
                command=self.text(table, "command", where, needed="what is typed in the room"),
                preflight=self.text(table, "preflight", where, needed="what is typed the day before"),
                fallback=self.text(table, "fallback", where, needed="page#anchor with the recorded result"),
                wait=f"{self.road.waits}.{table.get('name', '')}.wait_s",
            )
            if demo.name and not demo.name.isidentifier():
                self.wrong(f"{where}, name", f"{demo.name!r} is no Python name, such as w1_benchmark")
            if any(other.name == demo.name for other in demos):
                self.wrong(f"{where}, name", f"{demo.name!r} is the name of another demo")
            demos.append(demo)
        return tuple(demos)

    def blocks(self, name: str, kind: Kind, data: Mapping[str, Any]) -> tuple[Block, ...]:
        blocks: list[Block] = []
        number = 1
        for i, table in enumerate(self.tables(data, "block"), 1):
            where = f"block {i}"
            self.known(table, ("from", "to", "title", "step"), where)
            start = self.whole(table, "from", where, needed="the minute it begins")
            end = self.whole(table, "to", where, needed="the minute it ends")
            title = self.text(table, "title", where, needed="what the block is called")
            steps = tuple(self.steps(name, table, i, start, number))
            number += len(steps)
            blocks.append(Block(i, start, end, title, steps))
            total = sum(step.minutes for step in steps)
            if not steps:
                self.wrong(where, "has no steps: write [[block.step]]")
            elif end <= start:
                self.wrong(where, f"ends at minute {end}, before it begins at {start}")
            elif total != end - start:
                off = total - (end - start)
                self.wrong(
                    where,
                    f"its steps sum to {total} minutes, and it has {end - start} ({start} to {end}): "
                    f"sum off by {abs(off)}, {'take away' if off > 0 else 'add'} as much",
                )
        self.check_cover(name, kind, blocks)
        return tuple(blocks)

    def check_cover(self, name: str, kind: Kind, blocks: list[Block]) -> None:
        minutes = kind.minutes
        if not blocks:
            self.wrong("block", f"there is none: write [[block]] from 0 to {minutes}")
            return
        place = 0
        for block in blocks:
            where = f"block {block.number}"
            if block.start > place:
                self.wrong(where, f"gap: nothing is planned from minute {place} to {block.start}")
            elif block.start < place:
                self.wrong(where, f"overlap: minutes {block.start} to {place} are planned twice")
            place = max(place, block.end)
        if place != minutes:
            what = f"gap: nothing is planned from minute {place} to {minutes}" if place < minutes else (
                f"ends at minute {place}, and a {kind.name} has {minutes}"
            )  # fmt: skip
            self.wrong(f"block {len(blocks)}", what)
        fixed = self.road.boundaries.get(name)
        found = (blocks[0].start, *(block.end for block in blocks))
        if fixed and found != fixed:
            self.wrong(
                "block",
                f"the boundaries of {name} are {' '.join(map(str, fixed))}, not {' '.join(map(str, found))}",
            )

    def steps(
        self, name: str, table: Mapping[str, Any], block: int, start: int, number: int
    ) -> Iterator[Step]:
        for i, step in enumerate(self.tables(table, "step", f"block {block}"), 1):
            where = f"block {block}, step {i}"
            self.known(step, STEP_KEYS, where)
            kind = self.text(step, "kind", where, needed=f"one of {', '.join(KINDS)}")
            if kind and kind not in KINDS:
                self.wrong(f"{where}, kind", f"{kind!r} is unknown; known: {', '.join(KINDS)}")
            minutes = self.whole(step, "minutes", where, needed="how long it takes")
            if minutes > LONGEST_STEP:
                self.wrong(
                    f"{where}, minutes",
                    f"{minutes} minutes in one step, and {LONGEST_STEP} is the most: split it, "
                    "and give each part something for the fingers",
                )
            elif "minutes" in step and minutes < 1:
                self.wrong(f"{where}, minutes", f"is {minutes}: a step takes at least one minute")
            rest = kind == "break"
            exempt = self.text(step, "exempt", where)
            if exempt and self.road.exempt.get(name) != kind:
                self.wrong(
                    f"{where}, exempt",
                    f"only {self.road.exempt_words} may do without fingers: give it some",
                )
                exempt = ""
            stage = self.whole(step, "stage", where)
            if "stage" in step and stage < 1:
                self.wrong(f"{where}, stage", f"is {stage}: the stages of a lab count from 1")
            check = None
            if "check" in step:
                check = self.answered(step["check"], f"{where}, check")
            elif not rest:
                self.wrong(f"{where}, check", 'is missing: write {ask = "…", answer = "…"}')
            yield Step(
                where=where,
                number=number,
                block=block,
                start=start,
                minutes=minutes,
                kind=kind,
                title=self.text(step, "title", where, needed="what the step is called"),
                say=self.text(step, "say", where, needed="" if rest else "what to say"),
                board=self.text(step, "board", where),
                fingers=self.text(
                    step,
                    "fingers",
                    where,
                    needed=""
                    if exempt
                    else "what the students' fingers do, and what stands there at the end",
                ),
                room=self.text(step, "room", where),
                anchor=self.text(step, "anchor", where),
                demo=self.text(step, "demo", where),
                stage=stage,
                feeds=self.text(step, "feeds", where),
                check=check,
                cut=self.text(
                    step, "cut", where, needed="" if rest else "what to drop when late, and what is lost"
                ),
                trip=self.text(step, "trip", where),
                exempt=exempt,
            )
            start += minutes
            number += 1

    # --- across the file --------------------------------------------------------------------------

    def check_demos(self, session: Session) -> None:
        run = {step.demo for step in session.steps()}
        names = [demo.name for demo in session.demos]
        for step in session.steps():
            if step.demo and step.demo not in names:
                self.wrong(
                    f"{step.where}, demo",
                    f"{step.demo!r} is no [[demo]] of this map; there are {', '.join(names) or 'none'}",
                )
            if step.stage and not session.lab:
                self.wrong(f"{step.where}, stage", "the map names no `lab` whose stage this could be")
        for i, demo in enumerate(session.demos, 1):
            if demo.name and demo.name not in run:
                self.wrong(f"demo {i}", f'{demo.name!r} is run by no step: write demo = "{demo.name}" in one')

    def check_titles(self, session: Session) -> None:
        """Minutes are handed in under a step's title."""
        seen: dict[str, str] = {}
        for step in session.steps():
            same = normalised(step.title)
            if same and same in seen:
                self.wrong(
                    f"{step.where}, title",
                    f"{step.title!r} is the title of {seen[same]} too: name them apart",
                )
            seen.setdefault(same, step.where)

    def check_fingers(self, session: Session) -> None:
        seen: dict[str, str] = {}
        for step in session.steps():
            if not step.fingers:
                continue
            if is_idle(step.fingers):
                self.wrong(
                    f"{step.where}, fingers",
                    f"{step.fingers!r} moves no finger: say what they type, write or draw",
                )
            same = normalised(step.fingers)
            if same in seen:
                self.wrong(
                    f"{step.where}, fingers", f"the same text as in {seen[same]}: say what is new here"
                )
            seen.setdefault(same, step.where)
