"""Checks of a session map against the rest of the course: pages and their headings, labs, measured waits."""

from __future__ import annotations

import ast
import difflib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from course_kernels.measure.machine import MACHINES
from course_labs.lab import Lab, LabError, find_labs
from course_site.lint.predictions import expressions
from course_site.pages.headings import headings
from course_site.pages.page import Page
from course_site.pages.plain_text import without_code
from course_site.pages.urls import shown_file
from course_site.sessions import cuts, preflights, remote_class, worked_answers
from course_site.sessions.course_road import FILE as ROAD_FILE
from course_site.sessions.course_road import FOLDER, Road, load_road
from course_site.sessions.plan_file import PlanError
from course_site.sessions.preflights import one_line
from course_site.sessions.session import Complaint, Session, Step, read_sessions
from course_site.sessions.taught_minutes import Taken, read_minutes
from course_site.sessions.units import UnitRoad, read_units
from course_site.sessions.year import Year, read_year
from course_site.values.values import ExpressionError, Scope

_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
# So many steps of a session may be about a heading of another page.
LOOK_BACK = 3
# Below this share of the lab's own minutes the map says why.
LAB_SHARE = 0.75
_CARD = re.compile(
    r"\b(?:" + "|".join(sorted({m.slug for m in MACHINES})) + r")\b|\[\^nvidia-", re.IGNORECASE
)
_TYPED_RIDGE = re.compile(
    r"\bridges?\b[^.;:{}]*?\b(?:near|at|is|about|of) (?:about )?\d+(?:\.\d+)?", re.IGNORECASE
)
_OF_A_CARD = re.compile(r"\b(?:ridges?|rooms|SMs|multiprocessors|roofs?)\b")
_WHOLE = re.compile(r"(?<![\d.,])\d{3,4}(?![\d.,]\d|\d)")


def figures() -> frozenset[str]:
    """Whole numbers of three digits or more that hold on one card only: its ridges, and its multiprocessors."""
    ridges = {
        round(1000 * peak / machine.bandwidth_gb_per_s)
        for machine in MACHINES
        for peak in machine.peak_tflops.values()
    }
    rooms = {machine.multiprocessors.count for machine in MACHINES if machine.multiprocessors}
    return frozenset(str(figure) for figure in ridges | rooms if figure > 99)


FIGURES = figures()
_FORMULA = re.compile(r"(?<![\\$])\$(?![\s$])[^$\n]*?(?<![\s\\])\$(?!\d)|\\\(.+?\\\)")


@dataclass
class Report:
    """The maps of a course, and what they still wait for.

    Attributes:
        to_come: for each session whose page is to come, the steps that await it.
        unmeasured: names of demos whose wait is not measured yet.
        roads: every road with its units, the course and those beside it.
        year: the weeks of the year, with all that is said of them.
        slow_here: demos that are slower than their step on this card, which is not the reference.
        taken: the minutes that mentors handed in, by session and step.
    """

    sessions: dict[str, Session] = field(default_factory=dict)
    road: Road = field(default_factory=Road)
    roads: dict[str, UnitRoad] = field(default_factory=dict)
    year: Year = field(default_factory=Year)
    complaints: list[Complaint] = field(default_factory=list)
    to_come: dict[str, list[Step]] = field(default_factory=dict)
    unmeasured: list[str] = field(default_factory=list)
    slow_here: list[str] = field(default_factory=list)
    taken: dict[str, dict[int, Taken]] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """Yield lines about what is to come, one each."""
        for name, steps in self.to_come.items():
            session = self.sessions[name]
            borrowed = sum(_elsewhere(step, session) for step in steps)
            yield (
                f"{session.path}: {len(steps)} of {len(session.steps())} steps await their page, "
                f"{session.student_page}; {borrowed} of them point to another page until then"
            )
        if self.unmeasured:
            yield f"{FOLDER}: demos that are not measured yet: {', '.join(self.unmeasured)}"
        yield from self.slow_here


class Course(Protocol):
    """The part of a course that its maps need."""

    root: Path
    pages: list[Page]
    scopes: dict[str, Scope]
    sources: dict[str, Any]
    maps: Report

    @property
    def is_reference(self) -> bool:
        """True when this is the edition whose claims gate the build."""

    def has_numbers(self, page_id: str) -> bool:
        """Return True when the page has a record that holds."""

    def lab(self, name: str) -> Lab:
        """Return the lab of this name; LabError where there is none."""


def check(course: Course) -> Report:
    """Read every map of the course and check it; nothing is raised."""
    if not (course.root / FOLDER).is_dir():
        return Report()
    sessions, complaints = read_sessions(course.root)
    report = Report(sessions, load_road(course.root), complaints=complaints)
    try:
        report.roads = read_units(course.root)
        report.year = read_year(course.root)
    except PlanError as error:
        path, _, message = str(error).partition(": ")
        wrong_road = Complaint(path, "", message)
        complaints += [wrong_road] if wrong_road not in complaints else []
    try:
        labs = find_labs(course.root)
    except LabError as error:
        labs = {}
        path, _, message = str(error).removeprefix(f"{course.root}/").partition(": ")
        complaints.append(Complaint(path, "", message))
    report.taken, wrong = read_minutes(course.root, sessions)
    complaints += wrong
    for session in sessions.values():
        _Checker(course, session, labs, report).check()
    waits = report.road.waits
    if any(s.demos for s in sessions.values()) and all(page.id != waits for page in course.pages):
        complaints.append(Complaint(ROAD_FILE, "waits", f"no page has the id {waits!r}, so no wait is known"))
    return report


def missing(report: Report) -> list[str]:
    """Sessions without a map."""
    return [name for name in report.road.sessions if name not in report.sessions]


def measured_commands(page: Page) -> dict[str, str]:
    """Return the dict DEMOS of the page that measures the waits: a demo's name to what is typed."""
    for cell in page.code:
        for node in ast.parse(cell.source).body:
            if isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == ["DEMOS"]:
                demos: dict[str, str] = ast.literal_eval(node.value)
                return demos
    return {}


@dataclass
class _Checker:
    course: Course
    session: Session
    labs: Mapping[str, Lab]
    report: Report

    def __post_init__(self) -> None:
        self.pages = {page.path.as_posix(): page for page in self.course.pages}
        self.awaited = {s.student_page for s in self.report.sessions.values()} - set(self.pages) - {""}

    def wrong(self, key: str, message: str) -> None:
        self.report.complaints.append(Complaint(self.session.path, key, message))

    def check(self) -> None:
        self.check_files()
        self.check_lab()
        self.check_demos()
        for key, text in self.session.strings():
            self.check_text(key, text)
        for key, message in (*cuts.faults(self.session), *remote_class.faults(self.session)):
            self.wrong(key, message)
        self.check_minutes()
        self.check_ends()
        self.check_anchors()
        self.check_questions()
        if worked_answers.are_kept(self.course.root):
            for wrong in (worked_answers.of_map, worked_answers.of_board):
                for key, message in wrong(self.course.root, self.session):
                    self.wrong(key, message)

    def check_files(self) -> None:
        session = self.session
        for key in ("map_page", "chapter"):
            path = getattr(session, key)
            if path and path not in self.pages:
                self.wrong(key, f"there is no page {path}{_near(path, self.pages)}")
        page = self.pages.get(session.map_page)
        mark = rf"^///[ \t]+session[ \t]*\|[ \t]*{session.id}[ \t]*$"
        if page and not any(re.search(mark, cell.source, re.MULTILINE) for cell in page.cells):
            self.wrong(
                "map_page", f"{session.map_page} does not show it: write `/// session | {session.id}` there"
            )
        student = session.student_page
        if student and not student.startswith("docs/"):
            self.wrong("student_page", f"{student} does not lie in docs/, where the students' pages are")
        if session.figure and not session.figure.endswith(f"/board_{session.id}.svg"):
            self.wrong(
                "board, figure", f"{session.figure} is not this session's: call it board_{session.id}.svg"
            )
        elif session.figure:
            try:
                shown_file(self.course.root, session.figure)
            except ValueError as error:
                self.wrong("board, figure", str(error))

    def check_lab(self) -> None:
        """Check that its own lab is on its page, and any other lab on the page that this lab names."""
        session = self.session
        for name in session.labs:
            lab = self.labs.get(name)
            if lab is None:
                self.wrong("lab", f"there is no lab {name!r}; there are {', '.join(self.labs) or 'none'}")
                continue
            path = session.student_page if name == session.labs[0] else lab.page
            page = self.pages.get(path)
            if page and lab.page != path and _leads_to(page, lab.page):
                page = self.pages.get(lab.page)  # a lab of an earlier session once more, in another language
            mark = rf"^///[ \t]+lab[ \t]*\|[ \t]*{re.escape(name)}[ \t]*$"
            if page and not any(re.search(mark, cell.source, re.MULTILINE) for cell in page.cells):
                self.wrong("lab", f"{path} does not have it: write `/// lab | {name}` there")
            steps = [step for step in session.steps() if step.lab == name and step.stage]
            for step in steps:
                if step.stage > len(lab.stages):
                    self.wrong(
                        f"{step.where}, stage",
                        f"is {step.stage}, and the lab {lab.name} has {len(lab.stages)} stages",
                    )
            self.check_lab_time(lab, sum(step.minutes for step in steps))

    def check_lab_time(self, lab: Lab, room: int) -> None:
        """Check that the room has about as many minutes as the lab says, or that the map says why not."""
        said = f"its stages have {room} minutes here, and the lab {lab.name} says {lab.minutes}"
        if room > 1.1 * lab.minutes:
            self.wrong("lab", f"{said}: give them less, or mend `minutes` in its lab.toml")
        elif (
            room < LAB_SHARE * lab.minutes and lab.name == self.session.labs[0] and not self.session.lab_time
        ):
            self.wrong("lab", f"{said}: say in `lab_time` where the others are")

    # --- cards, sources and headings --------------------------------------------------------------

    def check_minutes(self) -> None:
        """Check that a step begins at every minute that a text names."""
        starts = {step.start for step in self.session.steps()}
        for key, text in self.session.strings():
            for minute in remote_class.MINUTE.findall(text):
                if int(minute) not in starts:
                    self.wrong(key, f"names minute {minute}, and no step begins then")

    def check_ends(self) -> None:
        """Check the sources of what to read, and the heading where each exit question is answered."""
        session = self.session
        for i, item in enumerate(session.read, 1):
            if item.source and item.source not in self.course.sources:
                near = _near(item.source, self.course.sources)
                self.wrong(f"read {i}, source", f"docs/bibliography.toml does not have {item.source!r}{near}")
        for i, target in enumerate(session.exit_headings, 1):
            self.check_target(f"exit_headings {i}", target)
        together: dict[str, dict[str, str]] = {}
        for (
            key,
            text,
        ) in session.strings():  # a step's texts belong together, and so do a question and its answer
            together.setdefault(re.sub(r", (?:ask|answer|check.*|\w+)$", "", key), {})[key] = text
        for texts in together.values():
            self.check_card(texts)

    def check_card(self, texts: Mapping[str, str]) -> None:
        """Check that a figure of one card, such as its ridge, names the card: on another it differs."""
        whole = " ".join(texts.values())
        if _CARD.search(whole):
            return
        for key, text in texts.items():
            bare = re.sub(r"\{\{.*?\}\}", "", text)
            typed = _TYPED_RIDGE.search(bare)
            if not typed and _OF_A_CARD.search(whole):
                typed = next((match for match in _WHOLE.finditer(bare) if match[0] in FIGURES), None)
            if typed:
                self.wrong(
                    key,
                    f"{typed[0]!r} holds on one card only: take a value, such as {{{{ l1.ridge_bf16:.0f }}}}, "
                    "or name the card",
                )

    # --- demos ------------------------------------------------------------------------------------

    def check_demos(self) -> None:
        course, session, measured = self.course, self.session, self.report.road.waits
        page = next((page for page in course.pages if page.id == measured), None)
        commands = measured_commands(page) if page else {}
        for i, demo in enumerate(session.demos, 1):
            if demo.fallback:
                self.check_target(f"demo {i}, fallback", demo.fallback)
            for message in preflights.faults(demo):
                self.wrong(f"demo {i}, preflight", message)
            wanted = commands.get(demo.name)
            if wanted is not None and page and one_line(demo.command) != one_line(wanted):
                self.wrong(f"demo {i}, command", f"is not what {page.path} measures: {one_line(wanted)}")
            if page is None or not course.has_numbers(measured):
                self._unmeasured(demo.name)
                continue
            try:
                wait = float(course.scopes[measured].resolve(f"{demo.name}.wait_s").value)
            except ExpressionError:
                self.wrong(
                    f"demo {i}",
                    f"{demo.name!r} was never measured: add it to DEMOS in {page.path} and run "
                    f"`nox -s docs -- --page {page.path}`",
                )
                self._unmeasured(demo.name)
                continue
            for step in session.steps():
                if step.demo == demo.name and wait > 60 * step.minutes:
                    late = (
                        f"{demo.name!r} takes {wait:.0f} s, and its step has {60 * step.minutes} s "
                        f"({step.minutes} min): give it more minutes or less work"
                    )
                    if course.is_reference:
                        self.wrong(f"{step.where}, demo", late)
                    else:  # another card is no fault of the map
                        self.report.slow_here.append(f"{session.path}: {step.where}, demo: {late}")

    def _unmeasured(self, name: str) -> None:
        if name and name not in self.report.unmeasured:
            self.report.unmeasured.append(name)

    # --- anchors and texts ------------------------------------------------------------------------

    def check_anchors(self) -> None:
        """Check that every step but a break has a heading of the session's page; a few may look back at another."""
        session, student = self.session, self.session.student_page
        steps = [step for step in session.steps() if step.kind != "break"]
        for step in session.steps():
            if step.anchor:
                self.check_target(f"{step.where}, anchor", step.anchor)
        if student not in self.pages:
            if student and steps:
                self.report.to_come[session.id] = steps
            return
        for step in steps:
            if not step.anchor:
                self.wrong(
                    f"{step.where}, anchor", f"is missing: name the heading this step is about, {student}#…"
                )
        back = [step for step in steps if _elsewhere(step, session)]
        if len(back) > LOOK_BACK:
            where = ", ".join(str(step.number) for step in back)
            self.wrong(
                "block",
                f"steps {where} point to other pages, and {LOOK_BACK} may look back: name headings of {student}",
            )

    def check_questions(self) -> None:
        """Check that board and projector give away no number that the students are to find."""
        for step in self.session.steps():
            answer = (
                expressions(step.check.answer) - expressions(step.check.ask) if step.check else frozenset()
            )
            for key in ("board", "room"):
                if answer and answer <= expressions(step[key]):
                    self.wrong(f"{step.where}, {key}", "shows the answer of its own check: let it ask")
            found = expressions(step["fingers"]) - expressions(f"{step['say']} {step['board']}")
            if given := sorted(found & expressions(step["room"])):
                self.wrong(
                    f"{step.where}, room",
                    f"shows {{{{ {given[0]} }}}}, which `fingers` has them find: ask for it",
                )

    def check_target(self, key: str, target: str, *, heading: bool = True) -> bool:
        """Return True if a page#heading is there (or wrong, and said so); False if its page is to come."""
        path, _, fragment = target.partition("#")
        page = self.pages.get(path)
        if page is None:
            if path in self.awaited:
                return False
            self.wrong(key, f"there is no page {path!r}{_near(path, self.pages)}")
        elif heading and not fragment:
            self.wrong(key, f"names no heading: write {path}#…, one of {_some(headings(page))}")
        elif fragment and fragment not in headings(page):
            near = _near(fragment, headings(page)) or f"; there are {_some(headings(page))}"
            self.wrong(key, f"{path} has no heading #{fragment}{near}")
        return True

    def check_text(self, key: str, text: str) -> None:
        for match in _LINK.finditer(without_code(text)):
            target = match["target"]
            if "://" in target or target.startswith("mailto:"):
                continue
            if re.search(r"\.(?:py|md)(?:#|$)", target):
                self.check_target(key, target, heading=False)
            else:
                self.wrong(
                    key, f"the link to {target!r} names no page; write docs/….py#heading or handbook/…"
                )
        mark = re.match(r"(?:\d+[.)]|[-+*#>])\s", text)
        if mark:
            self.wrong(
                key, f"begins with {mark[0].strip()!r}, which makes it a list or a heading: begin with a word"
            )
        if _FORMULA.search(without_code(text)):
            self.wrong(key, "holds a formula, and the run view and the sheet have none: use plain characters")


def _elsewhere(step: Step, session: Session) -> bool:
    """Return True for a step that points to a page that is not the session's own."""
    return step.anchor.partition("#")[0] not in ("", session.student_page)


def _leads_to(page: Page, other: str) -> bool:
    """Return whether the prose of a page has a link to another page; `other` is a path in the repository."""
    folder = page.path.parent
    links = (link["target"] for cell in page.cells for link in _LINK.finditer(cell.source))
    return any(os.path.normpath(folder / link.partition("#")[0]) == os.path.normpath(other) for link in links)


def _near(name: str, known: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(name, list(known), cutoff=0.75)
    return f"; did you mean {close[0]}?" if close else ""


def _some(names: Mapping[str, object]) -> str:
    shown = [f"#{name}" for name in list(names)[1:7]]
    return ", ".join(shown) + (" …" if len(names) > 7 else "")
