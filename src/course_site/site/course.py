"""The whole course in memory: every page with its record, its state and the names it can see.

A page is *static* (nothing runs), *fresh* (its record holds, or it measures nothing and was executed just now),
*waiting* (listed in records/waiting.toml), *stale* (its record no longer holds; only a draft shows it) or *foreign*
(measured on another card, and stamped with it: the reference edition has it and this card cannot run it, or the
reference edition lacks it and a card beside has it).
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_kernels.measure.machine import Machine, machine_for
from course_labs.lab import Lab, find_lab, find_labs
from course_site.numbers.spread import BetweenRuns
from course_site.numbers.values import Scope
from course_site.pages import bibliography, glossary
from course_site.pages.page import Page, PageError, find_pages
from course_site.records import artifacts, changes, renames, run_history, speed_of_light, tested
from course_site.records.manifest import strangers
from course_site.records.record import Record, RecordError, record_path, stale_reasons
from course_site.records.record_checks import NOT_CHECKED, doubt_of_commit, doubts
from course_site.sessions import checks
from course_site.site.about import FILE as SETTINGS
from course_site.site.about import About, AboutError, about
from course_site.site.kept import KEPT

GPU_TESTS = "tests/gpu"  # in records/waiting.toml: all groups of them; tests/gpu/<group> is one


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
        reference: the edition whose claims gate the build.
        also: editions that stand in where the reference edition has no record that holds.
        draft: show stale pages without their numbers instead of failing.
        rebuilt: the records were measured by the one who builds; a claim that they cannot decide is then told,
            and stops nothing.
        problems: everything found so far that stops a strict build.
        undecided: claims whose margin lies inside the spread, in a rebuilt edition.
        maps: the session maps, and what they wait for.
        about: who makes the course, and where to get it.
        labs: those that were read so far.
    """

    root: Path
    slug: str
    reference: str
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
    beside: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    sources: dict[str, Any] = field(default_factory=dict)
    terms: tuple[Any, ...] = ()
    maps: checks.Report = field(default_factory=checks.Report)
    about: About = field(default_factory=About)
    also: tuple[str, ...] = ()
    labs: dict[str, Lab] = field(default_factory=dict)

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
        return machine_for(record.edition["gpu"]) if record and record.measured else None

    def artifacts(self, page_id: str) -> dict[str, Path]:
        """Where the files lie that a page's record seals, by name; none of a page without its numbers."""
        record = self.records.get(page_id)
        if record is None or not record.measured or not self.has_numbers(page_id):
            return {}
        folder = artifacts.folder_of(record_path(self.root, record.edition["slug"], self.page(page_id)))
        return {name: folder / name for name in record.artifacts}

    def lab(self, name: str) -> Lab:
        """The lab of this name.

        Raises:
            LabError: there is none, or one of the labs is wrong.
        """
        if name not in self.labs:
            self.labs = find_labs(self.root)
        return self.labs[name] if name in self.labs else find_lab(self.root, name)

    def has_numbers(self, page_id: str) -> bool:
        """True when the page has a record that holds."""
        return self.states[page_id] in ("fresh", "foreign")

    def _scope(self, page: Page) -> Scope:
        record = self.records.get(page.id)
        names = record.names if record and self.has_numbers(page.id) else {}
        run = record.run if record else page.id
        slug = record.edition.get("slug", self.slug) if record else self.slug
        awaited = self.states[page.id] in ("waiting", "stale")
        # On a card of the reader's own, pages of two cards stand side by side by necessity.
        card = record.edition["gpu"] if record and record.measured and self.is_reference else ""
        return Scope(
            page.id, names, self.machine(page), run, self.between(slug), awaited, card, others=self.scopes.get
        )

    def between(self, slug: str) -> BetweenRuns:
        """What is known of runs made apart on one model."""
        if slug not in self.terms_between:
            self.terms_between[slug] = run_history.between(self.runs(slug))
        return self.terms_between[slug]

    def runs(self, slug: str) -> list[dict[str, Any]]:
        """Every run that an edition keeps; none where the file cannot be read, which is a problem."""
        return self._beside(slug, run_history.NAME, run_history.load)

    def moved(self, slug: str) -> list[dict[str, Any]]:
        """Everything that ever moved in an edition; none where the file cannot be read, which is a problem."""
        return self._beside(slug, changes.NAME, changes.load)

    def _beside(
        self, slug: str, name: str, load: Callable[[Path, str], list[dict[str, Any]]]
    ) -> list[dict[str, Any]]:
        place = f"records/{slug}/{name}"
        if place not in self.beside:
            self.beside[place] = []
            try:
                self.beside[place] = load(self.root, slug)
            except RecordError as error:
                self.problem(place, str(error).split(": ", 1)[1])
        return self.beside[place]


def settings(root: Path) -> dict[str, Any]:
    """What pyproject.toml says."""
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
    KEPT.read(root)
    chosen = settings(root)
    reference, also = (chosen["tool"]["course"].get(key, ()) for key in ("reference", "also"))
    course = Course(root, slug or reference, reference, draft, rebuilt, also=tuple(also))
    try:
        course.about = about(chosen)
    except AboutError as error:
        course.problem(SETTINGS, str(error))
    for path, message in strangers(root.resolve()):
        course.problem(path, message)
    if course.problems:
        # A library that is not what it seems can break what comes next, and then nobody reads why.
        return course
    try:
        course.pages = find_pages(root)
    except PageError as error:
        path, _, message = str(error).partition(": ")
        course.problem(path, message)
        return course
    course.sources = bibliography.load(root / "docs" / "bibliography.toml")
    course.terms = glossary.load(root / "docs" / "glossary.toml")
    _load_waiting(course)
    _load_computed(course)
    for page in course.pages:
        if page.id not in course.states:
            course.states[page.id] = _load_state(course, page)
    _check_waiting(course)
    for edition in _ours(course) if not course.draft else ():
        for folder in artifacts.ownerless(course.root, edition):
            course.problem(folder.relative_to(course.root), "lies beside no record: delete it")
    _check_editions(course)
    _check_tests(course)
    _check_physics(course)
    for page in course.pages:
        course.scopes[page.id] = course._scope(page)
    course.maps = checks.check(course)
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


def _load_computed(course: Course) -> None:
    """Pages that measure nothing are executed here, or were before: their numbers are those of every edition."""
    from course_site.records.cpu_pages import computed

    pages = [page for page in course.pages if page.runs and not page.measures]
    for page_id, found in computed(pages, course.root).items():
        page = course.page(page_id)
        if isinstance(found, Record):
            course.records[page_id] = found
        elif not course.draft:
            course.problem(page.path, str(found).removeprefix(f"{page.path}: "))
        course.states[page_id] = "fresh" if isinstance(found, Record) else "stale"
        path = record_path(course.root, course.slug, page)
        if path.exists():
            course.problem(path.relative_to(course.root), f"{page.path} measures nothing: delete this record")


def _ours(course: Course) -> tuple[str, ...]:
    """The editions whose files a build answers for: the one that is shown, and those beside the reference."""
    return (course.slug, *(course.also if course.is_reference else ()))


def _edition_of(course: Course, page: Page) -> str:
    """Whose record of a page is shown: the first that there is; in the reference edition the first that holds."""
    editions = dict.fromkeys((course.slug, course.reference, *course.also))
    there = [slug for slug in editions if record_path(course.root, slug, page).exists()]
    if course.is_reference and len(there) > 1:
        there = [slug for slug in there if _holds(course, page, slug)] or there
    return (there or [course.slug])[0]


def _holds(course: Course, page: Page, slug: str) -> bool:
    path = record_path(course.root, slug, page)
    try:
        record = Record.load(path, renames.load(course.root))
    except RecordError:
        return False
    beside = any(artifacts.faults(path, record.artifacts))
    return not (beside or record.made_up or stale_reasons(page, record, course.root))


def _load_state(course: Course, page: Page) -> str:
    if not page.runs:
        return "static"
    awaited = page.path.as_posix() in course.waiting
    edition = _edition_of(course, page)
    path = record_path(course.root, edition, page)
    state = "fresh" if edition == course.slug else "foreign"
    again = f"measure it on a GPU: nox -s docs -- --page {page.path}"
    if not path.exists():
        if not (awaited or course.draft):
            course.problem(page.path, f"has no record in records/{course.slug}; {again}")
        return "waiting" if awaited else "stale"
    try:
        record = Record.load(path, renames.load(course.root))
    except RecordError as error:
        if not (awaited or course.draft):
            course.problem(path.relative_to(course.root), str(error).split(": ", 1)[1])
        return "waiting" if awaited else "stale"
    beside = list(artifacts.faults(path, record.artifacts))
    if beside:
        if not (awaited or course.draft):
            folder = artifacts.folder_of(path).relative_to(course.root)
            for name, fault in beside:
                course.problem(folder / name, fault)
        return "waiting" if awaited else "stale"
    course.records[page.id] = record
    reasons = stale_reasons(page, record, course.root)
    made_up = record.made_up
    if made_up and not (awaited or course.draft):
        course.problem(page.path, f"its record is of a GPU that COURSE_FAKE_GPUS made up; {again}")
    dirty = course.is_reference and record.dirty
    if dirty and not reasons and not made_up:
        if awaited:
            return "waiting"
        if not course.draft:
            course.problem(
                page.path,
                f"its record was made from files that differ from their commit: commit them, then {again}",
            )
    if not reasons and not made_up:
        _check_record(course, path, record)
        return state
    if not (awaited or course.draft):
        for reason in reasons:
            course.problem(page.path, f"is stale: {reason} since the record was made; {again}")
    return "waiting" if awaited else "stale"


def _check_record(course: Course, path: Path, record: Record) -> None:
    """What stands in a record several times agrees, and its commit is one of ours."""
    place, provenance = path.relative_to(course.root), record.meta["provenance"]
    if provenance.get("fake"):
        return
    again = "restore it with git, or measure it again"
    slug = path.relative_to(course.root / "records").parts[0]
    beside = (run_history.doubt(record, course.runs(slug)), changes.doubt(record, course.moved(slug)))
    for doubt in filter(None, (*doubts(record, slug), *beside)):
        course.problem(place, f"{doubt}; {again}")
    if slug in (course.reference, *course.also):
        named = str(provenance["commit"]), str(provenance["date"])
        doubt = doubt_of_commit(course.root, *named, record.meta["manifest"])
        if doubt and doubt != NOT_CHECKED:
            course.problem(place, f"{doubt}; {again}")


def _check_waiting(course: Course) -> None:
    by_path = {page.path.as_posix(): page for page in course.pages}
    for path in course.waiting:
        if path == GPU_TESTS or path.startswith(f"{GPU_TESTS}/"):
            continue
        if path not in by_path:
            course.problem("records/waiting.toml", f"{path} is not a page")
        elif course.states[by_path[path].id] in ("fresh", "static") or (
            course.is_reference and course.states[by_path[path].id] == "foreign"
        ):
            course.problem("records/waiting.toml", f"{path} does not wait any more: take it off the list")


def _check_editions(course: Course) -> None:
    """Two numbers of the site can be compared because they come from one edition."""
    shown = {i: r for i, r in course.records.items() if course.states[i] == "fresh" and r.measured}
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


def _check_physics(course: Course) -> None:
    """Note every number that cannot be, of every page that shows its numbers; one that cannot be read has none."""
    for page in course.pages:
        record = course.records.get(page.id)
        if record is None or not course.has_numbers(page.id):
            continue
        for message, readable in speed_of_light.impossible(record.names, course.machine(page)):
            if not readable:
                course.states[page.id] = "stale"
            if readable or not course.draft:
                course.problem(page.path, message)


def _check_tests(course: Course) -> None:
    """Every group of GPU tests leaves a record: without one that holds nothing counts as checked on the card."""
    entries = [path for path in course.waiting if path == GPU_TESTS or path.startswith(f"{GPU_TESTS}/")]
    standing: dict[str, str] = {}
    project = tested.Project(course.root)
    for edition in _ours(course) if (course.root / GPU_TESTS).exists() else ():
        try:
            found = tested.verdicts(project, edition, clean=course.is_reference)
        except ValueError as error:
            path, _, message = str(error).partition(": ")
            course.problem(path, message)
            return
        for verdict in found:
            why = verdict.why or (_of_another_edition(course, verdict) if edition == course.slug else "")
            # Passed on one of the cards it is checked on a card; what is said else is said of the first.
            standing[verdict.group] = why and standing.get(verdict.group, why)
    for group, why in standing.items():
        if why and not course.draft and not {GPU_TESTS, f"{GPU_TESTS}/{group}"} & set(entries):
            record = tested.record_path(course.root, course.slug, group).relative_to(course.root)
            course.problem(record, f"{why}; run them on the card: {tested.run_again(group)}")
    for edition in _ours(course) if not course.draft else ():
        for old in tested.left_over(course.root, edition, standing):
            gone = "there is no such group of GPU tests: delete this record"
            course.problem(old.relative_to(course.root), gone)
    for entry in entries:
        group = entry.removeprefix(f"{GPU_TESTS}/")
        if entry != GPU_TESTS and group not in standing:
            course.problem("records/waiting.toml", f"{entry} is no group of GPU tests")
        elif not (any(standing.values()) if entry == GPU_TESTS else standing[group]):
            course.problem("records/waiting.toml", f"{entry} does not wait any more: take it off the list")


def _of_another_edition(course: Course, verdict: tested.Verdict) -> str:
    for page_id, record in course.records.items() if course.is_reference else ():
        if course.states[page_id] == "fresh" and record.measured and record.edition != verdict.edition:
            return f"is of another edition than {record.meta['page']}"
    return ""
