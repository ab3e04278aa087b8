"""An edition: all that one folder of records/ holds, and whether it still holds.

It is read by itself and knows no other edition and no setting of the build. What may wait, and what a page without a
record that holds is shown as, is the course's choice (`course_site.site.course`).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from course_kernels.measure.machine import Machine, machine_for
from course_site.pages.page import PAGE_FOLDERS, Page
from course_site.records import artifacts, changes, renames, run_history, speed_of_light
from course_site.records.record import Record, RecordError, record_path, stale_reasons, write_atomically
from course_site.records.record_checks import NOT_CHECKED, doubt_of_commit, doubts
from course_site.values.uncertainty import BetweenRuns

FRESH, STALE, MISSING = "fresh", "stale", "missing"
RECORDS = "records"
LACKING = (
    "lacking.json"  # beside an edition's records: pages that its card cannot run, each with what it lacks
)


class Fault(NamedTuple):
    """A fault of an edition: which file, and what is wrong and what to do, in one line."""

    path: str
    message: str


@dataclass(frozen=True)
class PageRecord:
    """The record of one page in one edition.

    Attributes:
        state: "fresh" (it holds), "stale" (it does not, or cannot be read) or "missing".
        record: None where none can be read, or a file beside it is not the one that it seals.
        faults: why it does not hold; none of a fresh one.
    """

    path: Path
    state: str = MISSING
    record: Record | None = None
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True)
class Edition:
    """The records of one card.

    Attributes:
        slug: its folder under records/, e.g. nvidia-h200.
        pages: the record of every page that it was asked for, by the page's id.
        runs: every run that it keeps.
        moves: everything that ever moved in it.
        lacking: pages that the card cannot run, by their paths, each with what it lacks.
        faults: files of its own that cannot be read.
    """

    root: Path
    slug: str
    pages: Mapping[str, PageRecord] = field(default_factory=dict)
    runs: Sequence[dict[str, Any]] = ()
    moves: Sequence[dict[str, Any]] = ()
    lacking: Mapping[str, str] = field(default_factory=dict)
    faults: Sequence[Fault] = ()

    @functools.cached_property
    def between(self) -> BetweenRuns:
        """The terms that runs made apart add to every interval."""
        return run_history.between(self.runs)

    @functools.cached_property
    def earlier_seals(self) -> frozenset[str]:
        """Seals of records that were made before their runs kept them."""
        return run_history.earlier_seals(self.root)

    def holds(self, page_id: str) -> bool:
        """Return whether the page's record holds."""
        return page_id in self.pages and self.pages[page_id].state == FRESH

    def artifacts(self, page_id: str) -> dict[str, Path]:
        """Paths of the files that a page's record seals, by name."""
        kept = self.pages[page_id]
        folder = artifacts.folder_of(kept.path)
        return {name: folder / name for name in kept.record.artifacts} if kept.record else {}

    def ownerless(self) -> Iterator[Fault]:
        """Folders of artifacts without their record."""
        for folder in artifacts.ownerless(self.root, self.slug):
            yield Fault(self._name(folder), "lies beside no record: delete it")

    def doubts(self, page_id: str, *, committed: bool) -> Iterator[Fault]:
        """Contradictions of a page's record: with itself, with the runs beside it, with the commit it names.

        Args:
            committed: the repository ships this edition, so the commit must be one of its own.
        """
        kept = self.pages[page_id]
        if kept.record is None or kept.record.meta["provenance"].get("fake"):
            return
        record, provenance = kept.record, kept.record.meta["provenance"]
        beside = (
            run_history.doubt(record, self.runs, self.earlier_seals),
            changes.doubt(record, self.moves),
            run_history.doubt_of_moves(record, self.runs, self.moves),
        )
        found = [*doubts(record, self.slug), *beside]
        if committed:
            named = str(provenance["commit"]), str(provenance["date"])
            found += [doubt_of_commit(self.root, *named, record.meta["manifest"])]
        for doubt in found:
            if doubt and doubt != NOT_CHECKED:
                yield Fault(self._name(kept.path), f"{doubt}; restore it with git, or measure it again")

    def strays(self, page_ids: Iterable[str]) -> Iterator[Fault]:
        """Pages among these whose versions are not those of the newest: only one edition can be compared."""
        shown = [kept.record for i in page_ids if (kept := self.pages.get(i)) and kept.record]
        if len({json.dumps(record.edition, sort_keys=True) for record in shown}) <= 1:
            return
        newest = max(shown, key=lambda record: str(record.meta["provenance"]["date"]))
        for record in shown:
            if record.edition != newest.edition:
                yield Fault(
                    record.meta["page"],
                    f"its record is of another edition ({_words(record.edition)}) than {newest.meta['page']} "
                    f"({_words(newest.edition)}); measure both on one: nox -s docs",
                )

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def slugs(root: Path, reference: str) -> list[str]:
    """Return the editions that have a record of a page: the reference first in any case, the others by name."""
    found = {path.name for path in (root / RECORDS).glob("*") if next(_notebooks(path), None)}
    return [reference, *sorted(found - {reference})]


def gpu_of(root: Path, slug: str) -> str:
    """Return the card of an edition by the name that its driver gives, as its records say it; "" where none does."""
    for path in _notebooks(root / RECORDS / slug):
        try:
            return str(json.loads(path.read_bytes())["metadata"]["course"]["edition"]["gpu"])
        except (ValueError, KeyError, TypeError):  # told where the record is read
            continue
    return ""


def _notebooks(folder: Path) -> Iterator[Path]:
    """Yield the records of pages in an edition's folder, the smallest first."""
    found = [path for part in PAGE_FOLDERS for path in (folder / part).rglob("*.ipynb")]
    yield from sorted(found, key=lambda path: (path.stat().st_size, path))


def lacking(root: Path, slug: str) -> dict[str, str]:
    """Read which pages an edition's card cannot run, by their paths, each with what it lacks.

    There are none where nobody noted any.

    Raises:
        RecordError: the file is there and is no such list.
    """
    path = root / RECORDS / slug / LACKING
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(why, str) for why in found.values()):
        raise RecordError(f"{path}: is no list of pages with what the card lacks; measure again: nox -s docs")
    return found


def note_lacking(root: Path, slug: str, asked: Mapping[str, str | None]) -> None:
    """Write which pages the card of an edition cannot run; a card that runs all of them has no such file.

    Args:
        asked: pages by their paths, each with what the card lacks, or None; what is known of others is kept.
    """
    path = root / RECORDS / slug / LACKING
    found = {page: why for page, why in {**lacking(root, slug), **asked}.items() if why}
    if found:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(dict(sorted(found.items())), indent=1, ensure_ascii=False) + "\n")
    else:
        path.unlink(missing_ok=True)


def machine_of(record: Record | None) -> Machine | None:
    """Return the data sheet of the card of a record; None for a card without an entry."""
    return machine_for(record.edition["gpu"]) if record and record.measured else None


def impossible(record: Record) -> Iterator[tuple[str, bool]]:
    """Return numbers of a record that its card's data sheet forbids: see `speed_of_light`."""
    return speed_of_light.impossible(record.names, machine_of(record))


def load_edition(root: Path, slug: str, pages: Iterable[Page]) -> Edition:
    """Read an edition: the records of these pages, and the histories of its runs.

    Args:
        root: the repository.
        slug: its folder under records/; there may be none yet.
        pages: those that measure.
    """
    faults: list[Fault] = []
    runs = _history(root, slug, run_history.NAME, run_history.load, faults)
    moves = _history(root, slug, changes.NAME, changes.load, faults)
    try:
        lacks = lacking(root, slug)
    except RecordError as error:
        lacks = {}
        faults.append(Fault(f"{RECORDS}/{slug}/{LACKING}", str(error).split(": ", 1)[1]))
    kept = {page.id: _page_record(root, slug, page) for page in pages}
    return Edition(root, slug, kept, tuple(runs), tuple(moves), lacks, tuple(faults))


def _history(
    root: Path,
    slug: str,
    name: str,
    load: Callable[[Path, str], list[dict[str, Any]]],
    faults: list[Fault],
) -> list[dict[str, Any]]:
    try:
        return load(root, slug)
    except RecordError as error:
        faults.append(Fault(f"records/{slug}/{name}", str(error).split(": ", 1)[1]))
        return []


def _page_record(root: Path, slug: str, page: Page) -> PageRecord:
    path = record_path(root, slug, page)
    again = f"measure it on a GPU: nox -s docs -- --page {page.path}"
    here = page.path.as_posix()
    if not path.exists():
        return PageRecord(path, faults=(Fault(here, f"has no record in records/{slug}; {again}"),))
    try:
        record = Record.load(path, renames.load(root))
    except RecordError as error:
        fault = Fault(path.relative_to(root).as_posix(), str(error).split(": ", 1)[1])
        return PageRecord(path, STALE, None, (fault,))
    folder = artifacts.folder_of(path).relative_to(root)
    beside = [
        Fault((folder / name).as_posix(), fault) for name, fault in artifacts.faults(path, record.artifacts)
    ]
    if beside:
        return PageRecord(path, STALE, None, tuple(beside))
    reasons = [
        Fault(here, f"is stale: {reason} since the record was made; {again}")
        for reason in stale_reasons(page, record, root)
    ]
    if record.made_up:
        reasons.insert(0, Fault(here, f"its record is of a GPU that COURSE_FAKE_GPUS made up; {again}"))
    return PageRecord(path, STALE if reasons else FRESH, record, tuple(reasons))


def _words(edition: dict[str, str]) -> str:
    return f"{edition['gpu']}, CUDA {edition['cuda']}, torch {edition['torch']}, triton {edition['triton']}"
