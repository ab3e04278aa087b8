"""The course in memory: what it is made of on every card, and what one edition shows of it.

A page is *static* (nothing runs), *fresh* (its record holds, or it measures nothing and was executed just now) or
without numbers: in the reference edition *waiting* (listed in records/waiting.toml) or *stale* (its record no longer
holds; only a draft shows it), in any other edition *absent* (its card has not measured it as it stands).
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from course_kernels.measure.machine import Machine, machine_for
from course_labs.lab import Lab, find_lab, find_labs
from course_site.pages import bibliography, glossary
from course_site.pages.bibliography import BibliographyError
from course_site.pages.build_cache import KEPT
from course_site.pages.glossary import GlossaryError
from course_site.pages.page import Page, PageError, find_pages
from course_site.records import run_history, waiting
from course_site.records.cpu_pages import computed
from course_site.records.edition import (
    FRESH,
    STALE,
    Edition,
    Fault,
    PageRecord,
    impossible,
    load_edition,
    machine_of,
)
from course_site.records.execute import PageFailed
from course_site.records.manifest import strangers
from course_site.records.record import Record, record_path
from course_site.records.record_checks import of_no_card
from course_site.records.waiting import Waiting, WaitingError
from course_site.sessions import checks
from course_site.site import card_tests
from course_site.site.about import FILE as SETTINGS
from course_site.site.about import About, AboutError, about
from course_site.site.editions import SIDE_BY_SIDE, SiteEdition, editions, measured
from course_site.values.values import ExpressionError, Scope


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
        editions: those that the site holds, the reference first.
        about: who makes the course, and where to get it.
        executed: pages that measure nothing, by id: their record, or why they failed.
        waiting: what awaits a GPU, by its path.
        labs: those that were read so far.
        problems: everything found so far that stops a strict build.
    """

    root: Path
    reference: str
    editions: tuple[SiteEdition, ...] = ()
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
    draft: bool = False
    rebuilt: bool = False
    records: dict[str, Record] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    scopes: dict[str, Scope] = field(default_factory=dict)
    undecided: list[Problem] = field(default_factory=list)
    maps: checks.Report = field(default_factory=checks.Report)
    _others: dict[str, Course] = field(default_factory=dict)
    _references: dict[str, Scope] = field(default_factory=dict)

    @property
    def slug(self) -> str:
        """Folder under records/ of the edition that is shown, e.g. nvidia-h200."""
        return self.edition.slug

    @property
    def is_reference(self) -> bool:
        """True when this is the edition whose claims gate the build."""
        return self.slug == self.reference

    @cached_property
    def here(self) -> SiteEdition:
        """The edition that is shown, as readers know it."""
        known = (one for one in self.editions if one.slug == self.slug)
        return next(known, None) or SiteEdition(self.slug, "", self.slug, self.is_reference)

    def machine(self, page: Page) -> Machine | None:
        """Return the data sheet of the card a page was measured on; None for a card without an entry."""
        return machine_of(self.records.get(page.id))

    def artifacts(self, page_id: str) -> dict[str, Path]:
        """Paths of the files that a page's record seals, by name; none of a page without its numbers."""
        has_any = page_id in self.edition.pages and self.has_numbers(page_id)
        return self.edition.artifacts(page_id) if has_any else {}

    def has_numbers(self, page_id: str) -> bool:
        """Return True when the page has a record that holds."""
        return self.states[page_id] == "fresh"

    def is_absent(self, page_id: str) -> bool:
        """Return True for a page that this edition does not have, and the site may have in another one."""
        return self.states[page_id] == "absent"

    @cached_property
    def _elsewhere(self) -> dict[str, frozenset[str]]:
        pages = [page for page in self.pages if page.measures]
        others = [one.slug for one in self.editions if one.slug != self.slug]
        return {slug: measured(self.root, slug, pages) for slug in others}

    def has(self, edition: SiteEdition, page: Page) -> bool:
        """Return whether an edition of the site has a page: measured, or with nothing to measure."""
        if edition.slug == self.slug:
            return not self.is_absent(page.id)
        return not page.measures or page.id in self._elsewhere[edition.slug]

    def elsewhere(self, page: Page) -> SiteEdition | None:
        """Return the first other edition of the site that has a page; None where no card measured it."""
        return next((one for one in self.editions if one.slug != self.slug and self.has(one, page)), None)

    def scope(self, page: Page) -> Scope:
        """Return the names that a page can see, all of this edition."""
        record = self.records.get(page.id)
        gpu = self.here.gpu
        return Scope(
            page.id,
            record.names if record and self.has_numbers(page.id) else {},
            machine_for(gpu),
            record.run if record else page.id,
            self.edition.between,
            self.states[page.id] in ("waiting", "stale", "absent"),
            gpu,
            others=self.scopes.get,
            prefixes={one.prefix: one.name for one in self.editions},
            beside=self._beside if page.id == SIDE_BY_SIDE else None,
            known=functools.partial(self._known_elsewhere, page),
        )

    def _beside(self, prefix: str) -> Scope | None:
        """Return the names of an edition, for the page that holds several side by side."""
        return next((self._whole(one) for one in self.editions if one.prefix == prefix), None)

    def _whole(self, edition: SiteEdition) -> Scope:
        other = self.of(edition)
        return Scope(edition.prefix, {}, machine_for(edition.gpu), gpu=edition.gpu, others=other.scopes.get)

    def of(self, edition: SiteEdition) -> Course:
        """Return the course in an edition of the site; what is wrong in another one is told where that one is built."""
        if edition.slug == self.slug:
            return self
        if edition.slug not in self._others:
            material = Material(
                **{one.name: getattr(self, one.name) for one in fields(Material)} | {"problems": []}
            )
            self._others[edition.slug] = show(material, edition.slug, draft=True)
        return self._others[edition.slug]

    def _known_elsewhere(self, page: Page, name: str) -> bool:
        """Return whether the reference has measured a value of a page that this edition measured without it."""
        if self.is_reference or not page.measures:
            return False
        if page.id not in self._references:
            edition = load_edition(self.root, self.reference, [page])
            record = edition.pages[page.id].record
            names = record.names if record else {}
            self._references[page.id] = Scope(page.id, names, machine_of(record))
        try:
            self._references[page.id].resolve(name)
        except ExpressionError:
            return False
        return True

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
    return show(load_material(root, slug), slug, draft=draft, rebuilt=rebuilt)


def load_material(root: Path, slug: str | None = None) -> Material:
    """Read what is the same on every card. What is wrong is collected in `problems`, never raised.

    Args:
        root: the repository.
        slug: the edition that will be shown, whose build keeps what it made in a file of its own.
    """
    chosen = settings(root)
    reference = chosen["tool"]["course"]["reference"]
    KEPT.of("" if slug in (None, reference) else str(slug))
    KEPT.read(root)
    material = Material(root=root, reference=reference, editions=editions(root))
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
    mine = {one.name: getattr(material, one.name) for one in fields(Material)}
    mine |= {"problems": [*material.problems], "draft": draft, "rebuilt": rebuilt}
    if material.problems:
        return Course(**mine, edition=Edition(root, slug))
    measuring = [page for page in material.pages if page.measures]
    course = Course(**mine, edition=load_edition(root, slug, measuring))
    course._note(course.edition.faults)
    for page in course.pages:
        course.states[page.id] = _state(course, page)
    if course.is_reference:
        _check_waiting(course)
    course._note(course.edition.ownerless() if not draft else ())
    shown = [page.id for page in measuring if course.states[page.id] == "fresh"]
    course._note(course.edition.strays(shown))
    card_tests.check(course)
    for page in course.pages:
        _check_physics(course, page)
        _check_id(course, page)
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
    kept = course.edition.pages[page.id]
    if kept.record:
        course.records[page.id] = kept.record
    if not course.is_reference:
        return _state_beside(course, page, kept)
    awaited = page.path.as_posix() in course.waiting
    if kept.faults:
        course._note(kept.faults if not (awaited or course.draft) else ())
        return "waiting" if awaited else "stale"
    if kept.record and kept.record.dirty:
        if awaited:
            return "waiting"
        if not course.draft:
            course.problem(
                page.path,
                "its record was made from files that differ from their commit: commit them, "
                f"then measure it on a GPU: nox -s docs -- --page {page.path}",
            )
    course._note(course.edition.doubts(page.id, committed=True))
    return "fresh"


def _state_beside(course: Course, page: Page, kept: PageRecord) -> str:
    """Judge a page of an edition beside the reference: what its card has not measured as it stands, it does not have.

    A record that cannot be read stops the build in every edition.
    """
    if kept.state == STALE and kept.record is None and not course.draft:
        course._note(kept.faults)
    if kept.state != FRESH:
        return "absent"
    own = course.rebuilt or (kept.record is not None and kept.record.dirty)
    course._note(course.edition.doubts(page.id, committed=not own))
    return "fresh"


def _check_id(course: Course, page: Page) -> None:
    """Note a page whose id says an edition: on the page of several cards it would name two things."""
    for edition in course.editions:
        if page.id == edition.prefix:
            course.problem(
                page.path,
                f"its id is {page.id!r}, by which {SIDE_BY_SIDE} names the values of the {edition.name}: "
                "give it another one",
            )


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
        elif course.states[by_path[path].id] in ("fresh", "static"):
            course.problem(waiting.FILE, f"{path} does not wait any more: take it off the list")


def _check_physics(course: Course, page: Page) -> None:
    """Note every number that cannot be, of a page that shows its numbers; one that cannot be read has none."""
    record = course.records.get(page.id)
    if record is None or not course.has_numbers(page.id):
        return
    for message, readable in impossible(record):
        if not readable:
            course.states[page.id] = "stale" if course.is_reference else "absent"
        if readable or not course.draft:
            course.problem(page.path, message)
