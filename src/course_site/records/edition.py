"""An edition: all that one folder of records/ holds, and whether it still holds.

It is read by itself and knows no other edition and no setting of the build. Which edition a page of the site shows,
and what may wait, is the course's choice (`course_site.site.course`).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from course_kernels.measure.machine import Machine, machine_for
from course_site.pages.page import Page
from course_site.records import artifacts, changes, gpu_test_records, renames, run_history, speed_of_light
from course_site.records.record import Record, RecordError, record_path, stale_reasons
from course_site.records.record_checks import NOT_CHECKED, doubt_of_commit, doubts
from course_site.values.uncertainty import BetweenRuns

FRESH, STALE, MISSING = "fresh", "stale", "missing"


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
        tests: the verdict on every group of GPU tests; none unless it was asked for.
        faults: files of its own that cannot be read.
    """

    root: Path
    slug: str
    pages: Mapping[str, PageRecord] = field(default_factory=dict)
    runs: Sequence[dict[str, Any]] = ()
    moves: Sequence[dict[str, Any]] = ()
    tests: Sequence[gpu_test_records.Verdict] = ()
    faults: Sequence[Fault] = ()

    @functools.cached_property
    def between(self) -> BetweenRuns:
        """The terms that runs made apart add to every interval."""
        return run_history.between(self.runs)

    @functools.cached_property
    def earlier_seals(self) -> frozenset[str]:
        """Seals of records that were made before their runs kept them."""
        return run_history.earlier_seals(self.root)

    @property
    def card(self) -> str:
        """The GPU's own name, as its records give it; "" where no record does."""
        named = (kept.record.edition["gpu"] for kept in self.pages.values() if kept.record)
        return next(named, "")

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

    def left_over(self) -> Iterator[Fault]:
        """Yield a fault for each record of a group of GPU tests that is there no more."""
        for old in gpu_test_records.left_over(
            self.root, self.slug, [verdict.group for verdict in self.tests]
        ):
            yield Fault(self._name(old), "there is no such group of GPU tests: delete this record")

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def machine_of(record: Record | None) -> Machine | None:
    """Return the data sheet of the card of a record; None for a card without an entry."""
    return machine_for(record.edition["gpu"]) if record and record.measured else None


def impossible(record: Record) -> Iterator[tuple[str, bool]]:
    """Return numbers of a record that its card's data sheet forbids: see `speed_of_light`."""
    return speed_of_light.impossible(record.names, machine_of(record))


def load_edition(
    root: Path, slug: str, pages: Iterable[Page], tests: Sequence[gpu_test_records.Verdict] = ()
) -> Edition:
    """Read an edition: the records of these pages, and the histories of its runs.

    Args:
        root: the repository.
        slug: its folder under records/; there may be none yet.
        pages: those that measure.
        tests: what `gpu_test_records.verdicts` says of it, if anybody wants to know.
    """
    faults: list[Fault] = []
    runs = _history(root, slug, run_history.NAME, run_history.load, faults)
    moves = _history(root, slug, changes.NAME, changes.load, faults)
    kept = {page.id: _page_record(root, slug, page) for page in pages}
    return Edition(root, slug, kept, tuple(runs), tuple(moves), tuple(tests), tuple(faults))


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
