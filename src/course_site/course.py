"""The whole course in memory: every page with its record, its state and the names it can see.

A page is *static* (nothing runs), *fresh* (its record holds), *waiting* (listed in records/waiting.toml),
*stale* (its record no longer holds; only a draft shows it) or *foreign* (this card cannot run it; the
reference edition is shown, stamped).
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_kernels.measure.machine import Machine, machine_for
from course_site import bibliography, glossary, physics, runs, session_checks
from course_site.pages import Page, PageError, find_pages
from course_site.record import (
    Record,
    RecordError,
    changed_files,
    edition_of,
    is_sealed,
    record_path,
    stale_reasons,
)
from course_site.spread import BetweenRuns
from course_site.values import Scope


@dataclass(frozen=True, order=True)
class Problem:
    """Something that stops the build: which file, and what is wrong and what to do, in one line."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


@dataclass(frozen=True)
class Waiting:
    """One entry of records/waiting.toml: a page that awaits a GPU."""

    path: str
    since: str
    reason: str


@dataclass
class Course:
    """Pages, records and what follows from them for one edition.

    Attributes:
        slug: folder under records/ that is shown, e.g. nvidia-h200.
        draft: show stale pages without their numbers instead of failing.
        rebuilt: the records were measured by the one who builds; a claim that they cannot decide is then told,
            and stops nothing.
        problems: everything found so far that stops a strict build.
        undecided: claims whose margin lies inside the spread, in a rebuilt edition.
        maps: the session maps, and what they wait for.
    """

    root: Path
    slug: str
    reference: str
    organisation: str
    draft: bool = False
    rebuilt: bool = False
    pages: list[Page] = field(default_factory=list)
    records: dict[str, Record] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, Waiting] = field(default_factory=dict)
    scopes: dict[str, Scope] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    undecided: list[Problem] = field(default_factory=list)
    terms_between: dict[str, BetweenRuns] = field(default_factory=dict)
    sources: dict[str, Any] = field(default_factory=dict)
    terms: tuple[Any, ...] = ()
    maps: session_checks.Report = field(default_factory=session_checks.Report)

    @property
    def is_reference(self) -> bool:
        """True when this is the edition whose claims gate the build."""
        return self.slug == self.reference

    def page(self, page_id: str) -> Page:
        """The page with this id."""
        return next(page for page in self.pages if page.id == page_id)

    def problem(self, path: Path | str, message: str) -> None:
        """Note something that stops the build; the same line is kept once."""
        entry = Problem(path.as_posix() if isinstance(path, Path) else path, message)
        if entry not in self.problems:
            self.problems.append(entry)

    def machine(self, page: Page) -> Machine | None:
        """Data sheet of the card a page was measured on; None for a card without an entry."""
        record = self.records.get(page.id)
        return machine_for(record.edition["gpu"]) if record else None

    def has_numbers(self, page_id: str) -> bool:
        """True when the page has a record that holds."""
        return self.states[page_id] in ("fresh", "foreign")

    def _scope(self, page: Page) -> Scope:
        record = self.records.get(page.id)
        names = record.names if record and self.has_numbers(page.id) else {}
        run = str(record.meta["provenance"]["date"]) if record else ""
        slug = record.edition["slug"] if record else self.slug
        return Scope(page.id, names, self.machine(page), run, self.between(slug), others=self.scopes.get)

    def between(self, slug: str) -> BetweenRuns:
        """What is known of runs made apart on one model."""
        if slug not in self.terms_between:
            try:
                self.terms_between[slug] = runs.between(runs.load(self.root, slug))
            except RecordError as error:
                self.problem(f"records/{slug}/{runs.NAME}", str(error).split(": ", 1)[1])
                self.terms_between[slug] = BetweenRuns()
        return self.terms_between[slug]


def settings(root: Path) -> dict[str, str]:
    """The [tool.course] table of pyproject.toml."""
    with (root / "pyproject.toml").open("rb") as file:
        table: dict[str, str] = tomllib.load(file)["tool"]["course"]
    return table


def load_course(
    root: Path, slug: str | None = None, *, draft: bool = False, rebuilt: bool = False
) -> Course:
    """Read every page and record. What is wrong is collected in `problems`, never raised.

    Args:
        root: the repository.
        slug: edition to show; the reference edition if None.
        draft: stale pages are shown without numbers and are no problem.
        rebuilt: see `Course`.
    """
    chosen = settings(root)
    course = Course(
        root, slug or chosen["reference"], chosen["reference"], chosen["organisation"], draft, rebuilt
    )
    try:
        course.pages = find_pages(root)
    except PageError as error:
        path, _, message = str(error).partition(": ")
        course.problem(path, message)
        return course
    course.sources = bibliography.load(root / "docs" / "bibliography.toml")
    course.terms = glossary.load(root / "docs" / "glossary.toml")
    _load_waiting(course)
    for page in course.pages:
        course.states[page.id] = _load_state(course, page)
    _check_waiting(course)
    _check_editions(course)
    _check_tests(course)
    physics.check(course)
    for page in course.pages:
        course.scopes[page.id] = course._scope(page)
    course.maps = session_checks.check(course)
    for complaint in course.maps.complaints if not draft else ():
        course.problem(complaint.path, f"{complaint.key}: {complaint.message}".removeprefix(": "))
    return course


def _load_waiting(course: Course) -> None:
    path = course.root / "records" / "waiting.toml"
    if not path.exists():
        return
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8")).get("page", [])
        course.waiting = {e["path"]: Waiting(e["path"], str(e["since"]), e["reason"]) for e in entries}
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        course.problem("records/waiting.toml", f"every [[page]] needs path, since and reason ({error})")


def _load_state(course: Course, page: Page) -> str:
    if not page.runs:
        return "static"
    awaited = page.path.as_posix() in course.waiting
    path = record_path(course.root, course.slug, page)
    state = "fresh"
    if not path.exists() and not course.is_reference:
        path, state = record_path(course.root, course.reference, page), "foreign"
    again = f"measure it on a GPU: nox -s docs -- --page {page.path}"
    if not path.exists():
        if not (awaited or course.draft):
            course.problem(page.path, f"has no record in records/{course.slug}; {again}")
        return "waiting" if awaited else "stale"
    try:
        record = Record.load(path)
    except RecordError as error:
        course.problem(path.relative_to(course.root), str(error).split(": ", 1)[1])
        return "stale"
    course.records[page.id] = record
    reasons = stale_reasons(page, record, course.root)
    made_up = record.meta["provenance"].get("fake") and not os.environ.get("COURSE_FAKE_GPUS")
    if made_up and not (awaited or course.draft):
        course.problem(page.path, f"its record is of a GPU that COURSE_FAKE_GPUS made up; {again}")
    if not reasons and not made_up:
        return state
    if not (awaited or course.draft):
        for reason in reasons:
            course.problem(page.path, f"is stale: {reason} since the record was made; {again}")
    return "waiting" if awaited else "stale"


def _check_waiting(course: Course) -> None:
    by_path = {page.path.as_posix(): page for page in course.pages}
    for path in course.waiting:
        if path == "tests/gpu":
            continue
        if path not in by_path:
            course.problem("records/waiting.toml", f"{path} is not a page")
        elif course.states[by_path[path].id] in ("fresh", "static"):
            course.problem("records/waiting.toml", f"{path} does not wait any more: take it off the list")


def _check_editions(course: Course) -> None:
    """Two numbers of the site can be compared because they come from one edition."""
    shown = {i: r for i, r in course.records.items() if course.states[i] == "fresh"}
    editions = {json.dumps(record.edition, sort_keys=True) for record in shown.values()}
    if len(editions) <= 1:
        return
    newest = max(shown.values(), key=lambda record: str(record.meta["provenance"]["date"]))
    for record in shown.values():
        if record.edition != newest.edition:
            course.problem(
                record.meta["page"],
                f"its record is of another edition ({_words(record.edition)}) than {newest.meta['page']} "
                f"({_words(newest.edition)}); measure both on one: nox -s docs",
            )


def _words(edition: dict[str, str]) -> str:
    return f"{edition['gpu']}, CUDA {edition['cuda']}, torch {edition['torch']}, triton {edition['triton']}"


def _check_tests(course: Course) -> None:
    """The GPU tests leave a record too: without a fresh one no kernel counts as checked on the card."""
    if course.draft or not (course.root / "tests" / "gpu").exists():
        return
    complaints = list(_against_tests(course))
    if "tests/gpu" not in course.waiting:
        for complaint in complaints:
            course.problem(
                f"records/{course.slug}/tests.json",
                f"{complaint}; run the GPU tests on the card: nox -s tests",
            )
    elif not complaints:
        course.problem("records/waiting.toml", "tests/gpu does not wait any more: take it off the list")


def _against_tests(course: Course) -> Iterator[str]:
    """What speaks against the record of the GPU tests, if anything does."""
    path = course.root / "records" / course.slug / "tests.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        yield "is missing"
        return
    except ValueError:
        yield "is cut short or not JSON"
        return
    if not is_sealed(data):
        yield "was changed by hand (its checksum does not match)"
        return
    if data["failed"] or not data["passed"]:
        yield f"{data['failed']} GPU tests failed, {data['passed']} passed; mend them"
    for reason in changed_files(data["manifest"], course.root):
        yield f"is stale: {reason} since the GPU tests ran"
    for record in course.records.values():
        if course.is_reference and record.edition != edition_of(data["provenance"]):
            yield f"is of another edition than {record.meta['page']}"
            return
