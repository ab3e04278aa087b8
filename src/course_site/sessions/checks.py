"""What a session map says of the rest of the course, checked: pages and their headings, labs, measured waits."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from course_labs.lab import Lab, LabError, find_labs
from course_site.numbers.values import ExpressionError, Scope
from course_site.pages.addresses import shown_file
from course_site.pages.headings import headings
from course_site.pages.page import Page
from course_site.pages.plain_text import without_code
from course_site.sessions.minutes import Taken, read_minutes
from course_site.sessions.session import Complaint, Session, Step, read_sessions
from course_site.sessions.stops import FILE as ROAD_FILE
from course_site.sessions.stops import FOLDER, Road, load_road

_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_FORMULA = re.compile(r"(?<![\\$])\$(?![\s$])[^$\n]*?(?<![\s\\])\$(?!\d)|\\\(.+?\\\)")


@dataclass
class Report:
    """The maps of a course and what they wait for.

    Attributes:
        to_come: for each session, how many steps await their page.
        unmeasured: names of demos whose wait is not measured yet.
        slow_here: demos that are slower than their step on this card, which is not the reference.
        taken: the minutes that mentors handed in, by session and step.
    """

    sessions: dict[str, Session] = field(default_factory=dict)
    road: Road = field(default_factory=Road)
    complaints: list[Complaint] = field(default_factory=list)
    to_come: dict[str, int] = field(default_factory=dict)
    unmeasured: list[str] = field(default_factory=list)
    slow_here: list[str] = field(default_factory=list)
    taken: dict[str, dict[int, Taken]] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """What is to come, in one line each."""
        for name, count in self.to_come.items():
            session = self.sessions[name]
            yield (
                f"{session.path}: {count} of {len(session.steps())} steps await their page, "
                f"{session.student_page}"
            )
        if self.unmeasured:
            yield f"{FOLDER}: demos that are not measured yet: {', '.join(self.unmeasured)}"
        yield from self.slow_here


class Course(Protocol):
    """What the maps ask of the course that they are of."""

    root: Path
    pages: list[Page]
    scopes: dict[str, Scope]
    maps: Report

    @property
    def is_reference(self) -> bool:
        """True when this is the edition whose claims gate the build."""

    def has_numbers(self, page_id: str) -> bool:
        """True when the page has a record that holds."""


def check(course: Course) -> Report:
    """Read every map of the course and check it; nothing is raised."""
    if not (course.root / FOLDER).is_dir():
        return Report()
    sessions, complaints = read_sessions(course.root)
    report = Report(sessions, load_road(course.root), complaints)
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
    """The dict DEMOS of the page that measures the waits: a demo's name to what is typed."""
    for cell in page.code:
        for node in ast.parse(cell.source).body:
            if isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == ["DEMOS"]:
                demos: dict[str, str] = ast.literal_eval(node.value)
                return demos
    return {}


# What a mentor types the day before: it asks and measures, and does nothing else.
_PREFLIGHT = re.compile(
    r"(?:PYTHONPATH=src )?(?:nvidia-smi|python -m course_kernels\.\w+"
    r"|python -c \"from course_kernels[\w.]* import (\w+); print\(\1\(\)\)\")(?: [\w./,=:+-]+)*"
)


def one_line(command: str) -> str:
    """A command without the ends of its lines."""
    return " ".join(command.replace("\\\n", " ").split())


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
        waiting = sum(self.awaits_page(step) for step in self.session.steps())
        if waiting:
            self.report.to_come[self.session.id] = waiting

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
        session = self.session
        if not session.lab:
            return
        lab = self.labs.get(session.lab)
        if lab is None:
            self.wrong("lab", f"there is no lab {session.lab!r}; there are {', '.join(self.labs) or 'none'}")
            return
        page = self.pages.get(session.student_page)
        mark = rf"^///[ \t]+lab[ \t]*\|[ \t]*{re.escape(session.lab)}[ \t]*$"
        if page and not any(re.search(mark, cell.source, re.MULTILINE) for cell in page.cells):
            self.wrong(
                "lab", f"{session.student_page} does not have it: write `/// lab | {session.lab}` there"
            )
        for step in session.steps():
            if step.stage > len(lab.stages):
                self.wrong(
                    f"{step.where}, stage",
                    f"is {step.stage}, and the lab {lab.name} has {len(lab.stages)} stages",
                )

    # --- demos ------------------------------------------------------------------------------------

    def check_demos(self) -> None:
        course, session, measured = self.course, self.session, self.report.road.waits
        page = next((page for page in course.pages if page.id == measured), None)
        commands = measured_commands(page) if page else {}
        for i, demo in enumerate(session.demos, 1):
            if demo.fallback:
                self.check_target(f"demo {i}, fallback", demo.fallback)
            if not _PREFLIGHT.fullmatch(one_line(demo.preflight)):
                self.wrong(
                    f"demo {i}, preflight",
                    "mentors type it as it stands: write nvidia-smi or `python -m course_kernels.…` with plain options",
                )
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

    def awaits_page(self, step: Step) -> bool:
        """True if the step's page is to come; a step that needs an anchor and has none is wrong."""
        if step.anchor:
            return not self.check_target(f"{step.where}, anchor", step.anchor)
        if step.kind == "break" or step.demo:
            return False
        student = self.session.student_page
        if student in self.pages:
            self.wrong(
                f"{step.where}, anchor", f"is missing: name the heading this step is about, {student}#…"
            )
            return False
        return bool(student)

    def check_target(self, key: str, target: str, *, heading: bool = True) -> bool:
        """True if a page#heading is there (or wrong, and said so); False if its page is to come."""
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


def _near(name: str, known: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(name, list(known), cutoff=0.75)
    return f"; did you mean {close[0]}?" if close else ""


def _some(names: Mapping[str, object]) -> str:
    shown = [f"#{name}" for name in list(names)[1:7]]
    return ", ".join(shown) + (" …" if len(names) > 7 else "")
