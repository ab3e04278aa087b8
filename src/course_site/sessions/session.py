"""Session maps: what a mentor does at every minute, read from handbook/sessions/*.toml and checked.

Here is what one file shows by itself: its keys, its minutes, its texts. What it says of pages, labs and measured
waits is checked in `checks`; how it looks on its page is in `map`. Standard library only.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_site.sessions import fields
from course_site.sessions.course_road import FILE as ROAD_FILE
from course_site.sessions.course_road import FOLDER, KINDS, Road, read_road
from course_site.sessions.plan_file import PlanError

LONGEST_STEP = 15
# Files of the folder that are no session map.
NO_MAPS = frozenset({"cohort", Path(ROAD_FILE).stem})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SESSION_KEYS = _words(
    "title kind about artifact student_page map_page chapter lab lab_time prepare exit_ticket exit_headings questions "
    "homework worklog read board demo block"
)
# Keys of a step beside its `fields`.
STEP_KEYS = _words("minutes kind lab priority saves needs protected")
# Texts by their keys, each with what to write there; "" for one that may be left out.
SESSION_TEXTS = {
    "title": "the session's title",
    "about": "one sentence: what it is really about",
    "artifact": "the one thing every student leaves with",
    "map_page": "the page with this map",
    "chapter": "the mentor's chapter",
    "lab_time": "",
    "homework": "",
}
BOARD_TEXTS = {"figure": "the drawing of the finished board", "alt": "what the drawing shows"}
DEMO_TEXTS = {
    "name": "a Python name, such as w1_benchmark",
    "title": "what it shows",
    "command": "what is typed in the room",
    "preflight": "what is typed the day before",
    "fallback": "page#anchor with the recorded result",
}
WORKLOG = "Worklog: "  # how the line for the capstone's worklog begins
READ = 3  # what to read after a session, so many
ASKED = '{ask = "…", answer = "…"}'
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
        card: the name of the card that it was measured on.
    """

    name: str
    title: str
    command: str
    preflight: str
    fallback: str
    wait: str
    card: str


@dataclass(frozen=True)
class Step:
    """One step of a session. Its texts are Markdown, by their keys in `fields`: step["say"] is what to say.

    Links are relative to the repository root.

    Attributes:
        where: its place in the file, "block 2, step 3".
        number: from 1, over the whole session.
        start, end: minutes from the start of the session, computed.
        anchor: page#anchor on the students' side, or "".
        demo: the name of the demo that runs, or "".
        lab: the lab whose stage is typed: the session's own unless the step names another.
        stage: the stage of that lab that is typed, or 0.
        check: None in a break.
        priority: which cut goes first, from 1; 0 without a cut.
        saves: minutes that the cut wins; as many as the step has, and it falls out as a whole.
        needs: titles of earlier steps that this one needs: none of their cuts is proposed while it is kept.
        protected: the heart of the session, or a part of it: no cut.
    """

    where: str
    number: int
    block: int
    start: int
    minutes: int
    kind: str
    texts: Mapping[str, str]
    anchor: str
    demo: str
    lab: str
    stage: int
    check: Answered | None
    priority: int
    saves: int
    needs: tuple[str, ...]
    protected: bool

    def __getitem__(self, key: str) -> str:
        """Return one of its texts, or ""."""
        return self.texts[key]

    @property
    def title(self) -> str:
        """The name of the step."""
        return self.texts["title"]

    @property
    def end(self) -> int:
        """The minute at which it ends."""
        return self.start + self.minutes


@dataclass(frozen=True)
class Reading:
    """One thing to read after a session: a key of the bibliography, and why, in Markdown."""

    source: str
    why: str


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
        number: its stop on the road, from 1; 0 before the road.
        minutes: how long it is, by its kind.
        student_page, map_page, chapter: repository paths; the student page may be to come, or "".
        labs: the names of its labs, its own first.
        lab_time: why the room has far less time for its own lab than the lab says, or "".
        exit_headings: for each question of the exit ticket page#anchor where its answer is.
        worklog: the line of the homework that goes into the capstone's worklog, or "".
        read: what to read afterwards.
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
    labs: tuple[str, ...]
    lab_time: str
    prepare: tuple[str, ...]
    exit_ticket: tuple[Answered, ...]
    exit_headings: tuple[str, ...]
    questions: tuple[Answered, ...]
    homework: str
    worklog: str
    read: tuple[Reading, ...]
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

    @property
    def lab(self) -> str:
        """The name of its own lab, or ""."""
        return next(iter(self.labs), "")

    @property
    def at_home(self) -> str:
        """All that is to do until the next session, Markdown; the line for the worklog comes last."""
        return "\n\n".join(filter(None, (self.homework, self.worklog)))

    def steps(self) -> tuple[Step, ...]:
        """Return all steps in order, with computed start and end."""
        return tuple(step for block in self.blocks for step in block.steps)

    def demo(self, name: str) -> Demo | None:
        """Return the demo of this name."""
        return next((demo for demo in self.demos if demo.name == name), None)

    def strings(self) -> Iterator[tuple[str, str]]:
        """Yield every Markdown string with its place in the file."""
        yield from (("about", self.about), ("artifact", self.artifact), ("homework", self.homework))
        yield from (("worklog", self.worklog), ("lab_time", self.lab_time))
        yield from ((f"read {i}, why", item.why) for i, item in enumerate(self.read, 1))
        yield from ((f"prepare {i}", text) for i, text in enumerate(self.prepare, 1))
        for name, pairs in (("exit_ticket", self.exit_ticket), ("questions", self.questions)):
            for i, pair in enumerate(pairs, 1):
                yield f"{name} {i}, ask", pair.ask
                yield f"{name} {i}, answer", pair.answer
        for step in self.steps():
            for name, text in step.texts.items():
                yield f"{step.where}, {name}", text
            if step.check:
                yield f"{step.where}, check, ask", step.check.ask
                yield f"{step.where}, check, answer", step.check.answer


@dataclass
class Complaint:
    """A fault of a map: its file, its key, what is wrong and what to do."""

    path: str
    key: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.key}: {self.message}" if self.key else f"{self.path}: {self.message}"


def load_sessions(root: Path) -> dict[str, Session]:
    """Return every session map of a repository by its id, in the order of the road.

    Faults are left to `read_sessions`.
    """
    return read_sessions(root)[0]


def read_sessions(root: Path) -> tuple[dict[str, Session], list[Complaint]]:
    """Return every session map, and all that is wrong with the files by themselves."""
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
    """Return one session map and all that is wrong with it.

    The map is None for a file that is not TOML or no session of the road.
    """
    reader = _Reader(path.relative_to(root).as_posix(), path.stem, road)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reader.wrong("", f"cannot be read as TOML: {str(error).splitlines()[0]}")
        return None, reader.complaints
    if path.stem not in road.sessions:
        reader.wrong("", f"{path.stem!r} is not a session; the files are called {', '.join(road.sessions)}")
        return None, reader.complaints
    return reader.session(data), reader.complaints


def visible(text: str) -> str:
    """Return a Markdown string as a reader sees it, for its length: a link is its words, a value a few digits."""
    text = re.sub(r"\[\^[^\]]+\]", "", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\{\{.*?\}\}", "0000", text)
    return " ".join(re.sub(r"[`*]", "", text).split())


def normalised(text: str) -> str:
    """Return words only, in small letters: two texts that say the same are equal."""
    return " ".join(re.findall(r"\w+", visible(text).lower()))


def is_idle(fingers: str) -> bool:
    """Return True for "listen", "they watch" and their kin: nobody's fingers move."""
    words = set(re.findall(r"[a-z']+", fingers.lower()))
    return bool(words & _PASSIVE) and not words - _PASSIVE - _FILLER


_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]"
)  # also what turns the writing round


class _Table:
    """One table of the file, read leniently: what is wrong is noted with its place, and reading goes on."""

    def __init__(
        self,
        data: Mapping[str, Any],
        keys: Collection[str],
        note: Callable[[str, str], None],
        where: str = "",
    ) -> None:
        self.data, self.note, self.where = data, note, where
        for key in data:
            if key not in keys:
                self.wrong(key, f"unknown key; known: {', '.join(sorted(keys))}")

    def place(self, key: str) -> str:
        return f"{self.where}, {key}" if self.where else key

    def wrong(self, key: str, message: str) -> None:
        self.note(self.place(key), message)

    def text(self, key: str, needed: str = "") -> str:
        """Return a text; `needed` says what to write there, and makes it an error to leave it out."""
        value = self.data.get(key)
        if value is None:
            if needed:
                self.wrong(key, f"is missing: write {needed}")
        elif not isinstance(value, str):
            self.wrong(key, f"is not a text: {value!r}")
        elif not value.strip():
            self.wrong(key, f"is empty: write {needed}" if needed else "is empty: fill it or take it out")
        elif odd := _CONTROL.search(value):
            self.wrong(key, f"holds a control character, {odd[0]!r}: take it out")
        else:
            limit = fields.limit(key) if self.where.startswith("block") else 0
            length = len(visible(value))
            if limit and length > limit:
                self.wrong(key, f"has {length} characters, and {limit} fit: shorten it by {length - limit}")
            return value.strip()
        return ""

    def texts(self, needed: Mapping[str, str]) -> dict[str, Any]:
        """Several texts by their keys."""
        return {key: self.text(key, words) for key, words in needed.items()}

    def whole(self, key: str, needed: str = "") -> int:
        value = self.data.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if value is not None:
            self.wrong(key, f"is not a whole number: {value!r}")
        elif needed:
            self.wrong(key, f"is missing: write {needed}")
        return 0

    def texts_of(self, key: str) -> tuple[str, ...]:
        """Return a list of texts; none if it is left out."""
        value = self.data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
            self.wrong(key, "is not a list of texts")
            return ()
        return tuple(item.strip() for item in value)

    def true(self, key: str) -> bool:
        value = self.data.get(key, False)
        if not isinstance(value, bool):
            self.wrong(key, f"is not true or false: {value!r}")
        return value is True

    def tables(self, key: str, keys: Collection[str]) -> Iterator[_Table]:
        value = self.data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.wrong(key, f"is not a list of tables: write [[{key}]]")
            return
        for i, item in enumerate(value, 1):
            yield _Table(item, keys, self.note, self.place(f"{key} {i}"))

    def answered(self, value: Any, key: str) -> Answered | None:
        if not isinstance(value, dict):
            self.wrong(key, f"is not {ASKED}")
            return None
        pair = _Table(value, ("ask", "answer"), self.note, self.place(key))
        return Answered(pair.text("ask", "the question"), pair.text("answer", "its answer"))

    def pairs(self, key: str, least: int, most: int) -> tuple[Answered, ...]:
        value = self.data.get(key, [])
        if not isinstance(value, list):
            self.wrong(key, f"is not a list of {ASKED}")
            return ()
        if not least <= len(value) <= most:
            self.wrong(key, f"has {len(value)} entries: write {least} to {most}")
        pairs = [self.answered(item, f"{key} {i}") for i, item in enumerate(value, 1)]
        return tuple(filter(None, pairs))


@dataclass
class _Reader:
    """Reader of one map, which checks what the map shows by itself."""

    path: str
    name: str
    road: Road
    complaints: list[Complaint] = field(default_factory=list)

    def wrong(self, key: str, message: str) -> None:
        self.complaints.append(Complaint(self.path, key, message))

    # --- the parts --------------------------------------------------------------------------------

    def session(self, data: Mapping[str, Any]) -> Session:
        name, expected, number = self.name, self.road.kinds[self.name], self.road.number(self.name)
        table = _Table(data, SESSION_KEYS, self.wrong)
        kind = table.text("kind", f"{expected.name!r}, as in {ROAD_FILE}")
        if kind and kind != expected.name:
            self.wrong("kind", f"is {kind!r}, and {name} is a {expected.name}")
        board, wanted = data.get("board"), BOARD_TEXTS
        if not isinstance(board, dict) or not board:
            self.wrong("board", "is missing: write [board] with figure and alt")
            board, wanted = {}, dict.fromkeys(BOARD_TEXTS, "")
        prepare = table.texts_of("prepare")
        if not data.get("prepare", []):
            self.wrong("prepare", "is empty: write what is done the day before and before the door opens")
        labs = table.texts_of("lab") if isinstance(data.get("lab"), list) else (table.text("lab"),)
        session = Session(
            id=name,
            path=self.path,
            number=number,
            kind=expected.name,
            minutes=expected.minutes,
            student_page=table.text("student_page", "the students' page" if number else ""),
            labs=tuple(filter(None, labs)),
            prepare=prepare,
            exit_ticket=table.pairs("exit_ticket", expected.exit_ticket, 3),
            exit_headings=table.texts_of("exit_headings"),
            worklog=self.worklog(table),
            read=self.read(table),
            questions=table.pairs("questions", expected.questions, 8),
            demos=self.demos(table),
            blocks=self.blocks(table, next(filter(None, labs), "")),
            **table.texts(SESSION_TEXTS),
            **_Table(board, BOARD_TEXTS, self.wrong, "board").texts(wanted),
        )
        if len(session.exit_headings) != len(session.exit_ticket):
            self.wrong(
                "exit_headings",
                f"has {len(session.exit_headings)} entries, and the exit ticket {len(session.exit_ticket)}: "
                "write page#anchor for each, where its answer is",
            )
        self.check_demos(session)
        self.check_steps(session)
        return session

    def worklog(self, table: _Table) -> str:
        """Return the capstone's line, which the sessions from one of the road on have."""
        wanted = self.road.number(self.name) >= self.road.number(self.road.worklog_from) > 0
        needed = f"'{WORKLOG}…', one line that goes into the capstone's worklog" if wanted else ""
        text = table.text("worklog", needed)
        if text and (not text.startswith(WORKLOG) or "\n" in text):
            self.wrong("worklog", f"is one line that begins with {WORKLOG.strip()!r}: {text[:40]!r}")
        return text

    def read(self, table: _Table) -> tuple[Reading, ...]:
        items = [
            Reading(
                item.text("source", "a key of docs/bibliography.toml"),
                item.text("why", "what it is good for"),
            )
            for item in table.tables("read", ("source", "why"))
        ]
        if len(items) != READ and (self.road.number(self.name) or items):
            self.wrong("read", f'has {len(items)} entries: write {READ}, each {{source = "key", why = "…"}}')
        for i, item in enumerate(items, 1):
            if item.source in [other.source for other in items[: i - 1]]:
                self.wrong(f"read {i}, source", f"{item.source!r} is there twice")
        return tuple(items)

    def demos(self, session: _Table) -> tuple[Demo, ...]:
        demos: list[Demo] = []
        for table in session.tables("demo", DEMO_TEXTS):
            texts = table.texts(DEMO_TEXTS)
            waits = self.road.waits
            demo = Demo(wait=f"{waits}.{texts['name']}.wait_s", card=f"{waits}.gpu.name", **texts)
            if demo.name and not demo.name.isidentifier():
                table.wrong("name", f"{demo.name!r} is not a Python name, such as w1_benchmark")
            if any(other.name == demo.name for other in demos):
                table.wrong("name", f"{demo.name!r} is the name of another demo")
            demos.append(demo)
        return tuple(demos)

    def blocks(self, session: _Table, lab: str) -> tuple[Block, ...]:
        blocks: list[Block] = []
        steps = itertools.count(1)
        for i, table in enumerate(session.tables("block", ("from", "to", "title", "protected", "step")), 1):
            start = table.whole("from", "the minute it begins")
            end = table.whole("to", "the minute it ends")
            title = table.text("title", "what the block is called")
            given = {"protected": table.true("protected"), "lab": lab}
            block = Block(i, start, end, title, tuple(self.steps(table, i, start, steps, given)))
            blocks.append(block)
            off = sum(step.minutes for step in block.steps) - (end - start)
            if not block.steps:
                self.wrong(table.where, "has no steps: write [[block.step]]")
            elif end <= start:
                self.wrong(table.where, f"ends at minute {end}, before it begins at {start}")
            elif off:
                self.wrong(
                    table.where,
                    f"its steps sum to {end - start + off} minutes, and it has {end - start} ({start} to {end}): "
                    f"sum off by {abs(off)}, {'take away' if off > 0 else 'add'} as much",
                )
        self.check_cover(blocks)
        return tuple(blocks)

    def check_cover(self, blocks: list[Block]) -> None:
        kind, fixed = self.road.kinds[self.name], self.road.boundaries.get(self.name)
        if not blocks:
            self.wrong("block", f"there is none: write [[block]] from 0 to {kind.minutes}")
            return
        place = 0
        for block in blocks:
            where = f"block {block.number}"
            if block.start > place:
                self.wrong(where, f"gap: nothing is planned from minute {place} to {block.start}")
            elif block.start < place:
                self.wrong(where, f"overlap: minutes {block.start} to {place} are planned twice")
            place = max(place, block.end)
        if place < kind.minutes:
            self.wrong(where, f"gap: nothing is planned from minute {place} to {kind.minutes}")
        elif place > kind.minutes:
            self.wrong(where, f"ends at minute {place}, and a {kind.name} has {kind.minutes}")
        found = (blocks[0].start, *(block.end for block in blocks))
        if fixed and found != fixed:
            wanted, got = (" ".join(map(str, minutes)) for minutes in (fixed, found))
            self.wrong("block", f"the boundaries of {self.name} are {wanted}, not {got}")

    def steps(
        self, block: _Table, number: int, start: int, numbers: Iterator[int], given: Mapping[str, Any]
    ) -> Iterator[Step]:
        """Yield the steps of a block; `given` is what it and the session say for all of them."""
        for table in block.tables("step", STEP_KEYS | fields.keys()):
            kind = table.text("kind", f"one of {', '.join(KINDS)}")
            if kind and kind not in KINDS:
                table.wrong("kind", f"{kind!r} is unknown; known: {', '.join(KINDS)}")
            minutes = table.whole("minutes", "how long it takes")
            if minutes > LONGEST_STEP:
                table.wrong(
                    "minutes",
                    f"{minutes} minutes in one step, and {LONGEST_STEP} is the most: split it, "
                    "and give each part something for the fingers",
                )
            elif "minutes" in table.data and minutes < 1:
                table.wrong("minutes", f"is {minutes}: a step takes at least one minute")
            stage = table.whole("stage")
            if "stage" in table.data and stage < 1:
                table.wrong("stage", f"is {stage}: the stages of a lab count from 1")
            check = None
            if "check" in table.data:
                check = table.answered(table.data["check"], "check")
            elif kind != "break":
                table.wrong("check", f"is missing: write {ASKED}")
            wanted = fields.texts()
            if kind == "break":
                wanted["say"] = ""
            yield Step(
                where=table.where,
                number=next(numbers),
                block=number,
                start=start,
                minutes=minutes,
                kind=kind,
                texts=table.texts(wanted),
                anchor=table.text("anchor"),
                demo=table.text("demo"),
                lab=table.text("lab") or given["lab"],
                stage=stage,
                check=check,
                priority=table.whole("priority"),
                saves=table.whole("saves"),
                needs=table.texts_of("needs"),
                protected=(table.true("protected") or given["protected"]) and kind != "break",
            )
            start += minutes

    # --- across the file --------------------------------------------------------------------------

    def check_demos(self, session: Session) -> None:
        run = {step.demo for step in session.steps()}
        names = [demo.name for demo in session.demos]
        for step in session.steps():
            if step.demo and step.demo not in names:
                there = ", ".join(names) or "none"
                self.wrong(
                    f"{step.where}, demo", f"{step.demo!r} is not a [[demo]] of this map; there are {there}"
                )
            if step.stage and not session.labs:
                self.wrong(f"{step.where}, stage", "the map names no `lab` whose stage this could be")
            elif step.lab and step.lab not in session.labs:
                there = ", ".join(session.labs) or "none"
                self.wrong(
                    f"{step.where}, lab", f"{step.lab!r} is not a `lab` of this map; there are {there}"
                )
        for i, demo in enumerate(session.demos, 1):
            if demo.name and demo.name not in run:
                self.wrong(f"demo {i}", f'{demo.name!r} is run by no step: write demo = "{demo.name}" in one')

    def check_steps(self, session: Session) -> None:
        """No title twice, as minutes are handed in under it; fingers that move, and something new each time."""
        titles: dict[str, str] = {}
        fingers: dict[str, str] = {}
        for step in session.steps():
            if is_idle(step["fingers"]):
                said = f"{step['fingers']!r} moves no finger: say what they type, write or draw"
                self.wrong(f"{step.where}, fingers", said)
            other = titles.setdefault(normalised(step.title) or step.where, step.where)
            if other != step.where:
                self.wrong(
                    f"{step.where}, title", f"{step.title!r} is the title of {other} too: name them apart"
                )
            other = fingers.setdefault(normalised(step["fingers"]) or step.where, step.where)
            if other != step.where:
                self.wrong(f"{step.where}, fingers", f"the same text as in {other}: say what is new here")
