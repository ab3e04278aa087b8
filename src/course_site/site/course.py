"""The course in memory: what it is made of on every card, and what one edition shows of it.

A page is *static* (nothing runs), *fresh* (its record holds, or it measures nothing and was executed just now),
*waiting* (listed in records/waiting.toml), *stale* (its record no longer holds; only a draft shows it) or *foreign*
(measured on another card, and stamped with it: the reference edition has it and this card cannot run it, or the
reference edition lacks it and a card beside has it).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_kernels.measure.machine import Machine
from course_labs.lab import Lab, find_lab, find_labs
from course_site.pages import bibliography, glossary
from course_site.pages.bibliography import BibliographyError
from course_site.pages.build_cache import KEPT
from course_site.pages.glossary import GlossaryError
from course_site.pages.page import Page, PageError, find_pages
from course_site.records import gpu_test_records, run_history, waiting
from course_site.records.cpu_pages import computed
from course_site.records.edition import Edition, Fault, impossible, machine_of
from course_site.records.execute import PageFailed
from course_site.records.manifest import strangers
from course_site.records.record import Record, record_path
from course_site.records.record_checks import of_no_card
from course_site.records.waiting import GPU_TESTS, Waiting, WaitingError
from course_site.sessions import checks
from course_site.site.about import FILE as SETTINGS
from course_site.site.about import About, AboutError, about
from course_site.site.choice import Choice, choose
from course_site.values.values import Scope


@dataclass(frozen=True, order=True)
class Problem:
    """A fault that stops the build: which file, and what is wrong and what to do, in one line."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


@dataclass(kw_only=True)
class Material:
    """Pages, words, sources and labs: what the course is made of on every card.

    Attributes:
        reference: the edition whose claims gate the build.
        also: editions that stand in where the reference edition has no record that holds.
        about: who makes the course, and where to get it.
        executed: pages that measure nothing, by id: their record, or why they failed.
        waiting: what awaits a GPU, by its path.
        labs: those that were read so far.
        problems: everything found so far that stops a strict build.
    """

    root: Path
    reference: str
    also: tuple[str, ...] = ()
    about: About = field(default_factory=About)
    pages: list[Page] = field(default_factory=list)
    sources: dict[str, Any] = field(default_factory=dict)
    terms: tuple[Any, ...] = ()
    executed: dict[str, Record | PageFailed] = field(default_factory=dict)
    waiting: dict[str, Waiting] = field(default_factory=dict)
    labs: dict[str, Lab] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def page(self, page_id: str) -> Page:
        """Return the page with this id."""
        return next(page for page in self.pages if page.id == page_id)

    def problem(self, path: Path | str, message: str) -> None:
        """Note something that stops the build; the same line is kept once."""
        entry = Problem(path.as_posix() if isinstance(path, Path) else path, message)
        if entry not in self.problems:
            self.problems.append(entry)

    def lab(self, name: str) -> Lab:
        """Return the lab of this name.

        Raises:
            LabError: there is none, or one of the labs is wrong.
        """
        if name not in self.labs:
            self.labs.update(find_labs(self.root))
        return self.labs[name] if name in self.labs else find_lab(self.root, name)


@dataclass(kw_only=True)
class Course(Material):
    """The course as one edition shows it.

    Attributes:
        edition: the one that is shown.
        picked: the edition that a page's values come from, by its id; of a page that measures nothing there is none.
        draft: show stale pages without their numbers instead of failing.
        rebuilt: the records were measured by the one who builds; a claim that they cannot decide is then told,
            and stops nothing.
        records: what was measured or worked out for a page, by its id; also of a page that is shown without it.
        states: the state of every page, by its id.
        scopes: the names that every page can see, by its id.
        undecided: claims whose margin lies inside the spread, in a rebuilt edition.
        maps: the session maps, and what they wait for.
    """

    edition: Edition
    picked: dict[str, Edition] = field(default_factory=dict)
    draft: bool = False
    rebuilt: bool = False
    records: dict[str, Record] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    scopes: dict[str, Scope] = field(default_factory=dict)
    undecided: list[Problem] = field(default_factory=list)
    maps: checks.Report = field(default_factory=checks.Report)

    @property
    def slug(self) -> str:
        """Folder under records/ of the edition that is shown, e.g. nvidia-h200."""
        return self.edition.slug

    @property
    def is_reference(self) -> bool:
        """True when this is the edition whose claims gate the build."""
        return self.slug == self.reference

    def machine(self, page: Page) -> Machine | None:
        """Return the data sheet of the card a page was measured on; None for a card without an entry."""
        return machine_of(self.records.get(page.id))

    def artifacts(self, page_id: str) -> dict[str, Path]:
        """Paths of the files that a page's record seals, by name; none of a page without its numbers."""
        has_any = page_id in self.picked and self.has_numbers(page_id)
        return self.picked[page_id].artifacts(page_id) if has_any else {}

    def has_numbers(self, page_id: str) -> bool:
        """Return True when the page has a record that holds."""
        return self.states[page_id] in ("fresh", "foreign")

    def scope(self, page: Page) -> Scope:
        """Return the names that a page can see, from the edition that was picked for it."""
        record = self.records.get(page.id)
        names = record.names if record and self.has_numbers(page.id) else {}
        run = record.run if record else page.id
        between = self.picked.get(page.id, self.edition).between
        awaited = self.states[page.id] in ("waiting", "stale")
        # On a card of the reader's own, pages of two cards stand side by side by necessity.
        gpu = record.edition["gpu"] if record and record.measured and names else ""
        card = gpu if self.is_reference else ""
        return Scope(
            page.id, names, self.machine(page), run, between, awaited, card, gpu, others=self.scopes.get
        )

    def _note(self, faults: Iterable[Fault]) -> None:
        for fault in faults:
            self.problem(fault.path, fault.message)


def settings(root: Path) -> dict[str, Any]:
    """Read pyproject.toml."""
    with (root / SETTINGS).open("rb") as file:
        return tomllib.load(file)


def load_course(root: Path, slug: str | None = None, *, draft: bool = False, rebuilt: bool = False) -> Course:
    """Read every page and record. What is wrong is collected in `problems`, never raised.

    Args:
        root: the repository.
        slug: edition to show; the reference edition if None.
        draft: stale pages are shown without numbers and are no problem.
        rebuilt: see `Course`.
    """
    return show(load_material(root), slug, draft=draft, rebuilt=rebuilt)


def load_material(root: Path) -> Material:
    """Read what is the same on every card. What is wrong is collected in `problems`, never raised."""
    KEPT.read(root)
    chosen = settings(root)
    reference, also = (chosen["tool"]["course"].get(key, ()) for key in ("reference", "also"))
    material = Material(root=root, reference=reference, also=tuple(also))
    try:
        material.about = about(chosen)
    except AboutError as error:
        material.problem(SETTINGS, str(error))
    for path, message in strangers(root.resolve()):
        material.problem(path, message)
    if material.problems:
        # A library that is not what it seems can break what comes next, and then nobody reads why.
        return material
    # What else would be found on pages without one of these follows from that.
    try:
        material.sources = bibliography.load(root / "docs" / "bibliography.toml", run_history.today(root))
        material.terms = glossary.load(root / "docs" / "glossary.toml")
        material.waiting = waiting.load(root)
        material.pages = find_pages(root)
    except (BibliographyError, GlossaryError, WaitingError, PageError) as error:
        path, _, message = str(error).partition(": ")
        material.problem(path.removeprefix(f"{root}/"), message)
        return material
    material.executed = computed([page for page in material.pages if page.runs and not page.measures], root)
    return material


def show(
    material: Material, slug: str | None = None, *, draft: bool = False, rebuilt: bool = False
) -> Course:
    """Show the course in one edition; several may be shown of the same material.

    Args:
        slug: edition to show; the reference edition if None.
        draft: stale pages are shown without numbers and are no problem.
        rebuilt: see `Course`.
    """
    root, slug = material.root, slug or material.reference
    mine = {**vars(material), "problems": [*material.problems], "draft": draft, "rebuilt": rebuilt}
    if material.problems:
        return Course(**mine, edition=Edition(root, slug))
    measuring = [page for page in material.pages if page.measures]
    choice = choose(root, slug, material.reference, material.also, measuring)
    course = Course(**mine, edition=choice.own, picked=choice.picked)
    for edition in choice.used:
        course._note(edition.faults)
    for page in course.pages:
        course.states[page.id] = _state(course, page)
    _check_waiting(course)
    for edition in choice.ours if not draft else ():
        course._note(edition.ownerless())
    shown = [page.id for page in measuring if course.states[page.id] == "fresh"]
    course._note(course.edition.strays(shown))
    _check_tests(course, choice)
    for page in course.pages:
        _check_physics(course, page)
    for page in course.pages:
        course.scopes[page.id] = course.scope(page)
    course.maps = checks.check(course)
    for complaint in course.maps.complaints if not draft else ():
        course.problem(complaint.path, f"{complaint.key}: {complaint.message}".removeprefix(": "))
    return course


def _state(course: Course, page: Page) -> str:
    """Judge a page by its record, and note what stops the build."""
    if not page.runs:
        return "static"
    if not page.measures:
        return _state_of_executed(course, page)
    edition = course.picked[page.id]
    kept = edition.pages[page.id]
    awaited = page.path.as_posix() in course.waiting
    excused = awaited or course.draft
    if kept.record:
        course.records[page.id] = kept.record
    if kept.faults:
        course._note(kept.faults if not excused else ())
        return "waiting" if awaited else "stale"
    if course.is_reference and kept.record and kept.record.dirty:
        if awaited:
            return "waiting"
        if not course.draft:
            course.problem(
                page.path,
                "its record was made from files that differ from their commit: commit them, "
                f"then measure it on a GPU: nox -s docs -- --page {page.path}",
            )
    course._note(edition.doubts(page.id, committed=edition.slug in (course.reference, *course.also)))
    return "fresh" if edition is course.edition else "foreign"


def _state_of_executed(course: Course, page: Page) -> str:
    """Judge a page that measures nothing: its numbers are those of every edition."""
    found = course.executed[page.id]
    path = record_path(course.root, course.slug, page)
    if path.exists():
        course.problem(path.relative_to(course.root), f"{page.path} measures nothing: delete this record")
    if isinstance(found, Record):
        course.records[page.id] = found
        for fault in of_no_card(found):
            course.problem(page.path, fault)
        return "fresh"
    if not course.draft:
        course.problem(page.path, str(found).removeprefix(f"{page.path}: "))
    return "stale"


def _check_waiting(course: Course) -> None:
    by_path = {page.path.as_posix(): page for page in course.pages}
    for path, entry in course.waiting.items():
        for fault in waiting.faults_of(entry):
            course.problem(waiting.FILE, f"{path}: {fault}")
        if entry.is_of_tests:
            continue
        if path not in by_path:
            course.problem(waiting.FILE, f"{path} is not a page")
        elif course.states[by_path[path].id] in ("fresh", "static") or (
            course.is_reference and course.states[by_path[path].id] == "foreign"
        ):
            course.problem(waiting.FILE, f"{path} does not wait any more: take it off the list")


def _check_physics(course: Course, page: Page) -> None:
    """Note every number that cannot be, of a page that shows its numbers; one that cannot be read has none."""
    record = course.records.get(page.id)
    if record is None or not course.has_numbers(page.id):
        return
    for message, readable in impossible(record):
        if not readable:
            course.states[page.id] = "stale"
        if readable or not course.draft:
            course.problem(page.path, message)


def _check_tests(course: Course, choice: Choice) -> None:
    """Note groups of GPU tests without a record that holds: they do not count as checked on the card."""
    if choice.tests_unknown:
        path, _, message = choice.tests_unknown.partition(": ")
        course.problem(path, message)
        return
    entries = [path for path, entry in course.waiting.items() if entry.is_of_tests]
    standing: dict[str, str] = {}
    for edition in choice.ours:
        for verdict in edition.tests:
            why = verdict.why or (_of_another_edition(course, verdict) if edition is choice.own else "")
            if (
                verdict.failed
                and not course.draft
                and not {GPU_TESTS, f"{GPU_TESTS}/{verdict.group}"} & set(entries)
            ):
                record = gpu_test_records.record_path(course.root, edition.slug, verdict.group)
                course.problem(
                    record.relative_to(course.root),
                    f"{verdict.why}; no pass on another card stands in for it",
                )
                continue
            # Passed on one of the cards it is checked on a card; what is said else is said of the first.
            standing[verdict.group] = why and standing.get(verdict.group, why)
    for group, why in standing.items():
        if why and not course.draft and not {GPU_TESTS, f"{GPU_TESTS}/{group}"} & set(entries):
            record = gpu_test_records.record_path(course.root, course.slug, group).relative_to(course.root)
            course.problem(record, f"{why}; run them on the card: {gpu_test_records.run_again(group)}")
    for edition in choice.ours if not course.draft else ():
        course._note(edition.left_over())
    for entry in entries:
        group = entry.removeprefix(f"{GPU_TESTS}/")
        if entry != GPU_TESTS and group not in standing:
            course.problem(waiting.FILE, f"{entry} is not a group of GPU tests")
        elif not (any(standing.values()) if entry == GPU_TESTS else standing[group]):
            course.problem(waiting.FILE, f"{entry} does not wait any more: take it off the list")


def _of_another_edition(course: Course, verdict: gpu_test_records.Verdict) -> str:
    for page_id, record in course.records.items() if course.is_reference else ():
        if course.states[page_id] == "fresh" and record.measured and record.edition != verdict.edition:
            return f"is of another edition than {record.meta['page']}"
    return ""
