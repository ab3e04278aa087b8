"""The store of a measuring run: what came of it, each record kept as soon as it is whole, and all of them packed.

Wherever a task ran, its record is written here, by the one process that commands the run, and once.
"""

from __future__ import annotations

import contextlib
import json
import os
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_site.records.plan import GroupJob, Task

if TYPE_CHECKING:
    from course_site.pages.page import Page
    from course_site.records.board import Board
    from course_site.records.record import Record


@dataclass(frozen=True)
class Bundle:
    """A page that was measured: its record with its artifacts, and where and how long it ran.

    Attributes:
        device: for the terminal, e.g. "GPU 0".
        seconds: wall time, the start of its process included.
    """

    page: Page
    record: Record
    device: str
    seconds: float


@dataclass(frozen=True)
class GroupBundle:
    """A group of GPU tests that ran elsewhere, and its record.

    Attributes:
        record: sealed, as `gpu_test_records` reads it; None where the tests left none.
        failure: one line; "" where all passed.
        said: the end of what pytest printed.
    """

    job: GroupJob
    record: dict[str, Any] | None
    device: str
    seconds: float
    failure: str = ""
    said: str = ""


class RecordedTwice(RuntimeError):
    """A second record of a task in one run: the first one stands. One line, with the checksums of both."""


@dataclass
class Outcome:
    """Outcome of a measuring run, kept up to date while it runs.

    Attributes:
        taken: the checksum of the one record of every task that has one, by the task's name.
        standing: tasks that turned out to need what no card here has: the last record of each stands.
    """

    slug: str = ""  # set once measuring begins
    written: list[Path] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    left: list[Task] = field(default_factory=list)
    taken: dict[str, str] = field(default_factory=dict)
    standing: list[str] = field(default_factory=list)
    out_of_minutes: bool = False

    def take(self, name: str, checksum: str) -> None:
        """Note that a task has its record now.

        Raises:
            RecordedTwice: it has one.
        """
        if name in self.taken:
            first = self.taken[name]
            same = "the same" if first == checksum else f"another, {checksum[:12]}"
            raise RecordedTwice(
                f"{name}: has a record of this run ({first[:12]}), and {same} came: not written"
            )
        self.taken[name] = checksum

    def lost(self, tasks: list[Task]) -> list[str]:
        """Return the tasks of a run that is over of which nothing is known: neither a record nor why there is none."""
        known = {
            *self.taken,
            *self.standing,
            *(name for name, _ in self.failed),
            *(job.name for job in self.left),
        }
        return [task.name for task in tasks if task.name not in known]


def keep_tests(root: Path, bundle: GroupBundle, board: Board, outcome: Outcome) -> None:
    """Write the record of a group of GPU tests, and say how it went.

    Raises:
        RecordedTwice: the group has one of this run.
    """
    from course_site.records.gpu_test_records import record_path
    from course_site.records.record import write_atomically

    name = bundle.job.name
    if bundle.record is not None:
        outcome.take(name, bundle.record["checksum"])
        path = record_path(root, bundle.record["edition"]["slug"], bundle.job.verdict.group)
        write_atomically(path, json.dumps(bundle.record, indent=1, ensure_ascii=False) + "\n")
    if bundle.failure:
        board.say(bundle.said.rstrip())
        board.say(f"FAILED {bundle.failure}")
        outcome.failed.append((name, bundle.failure))
    else:
        board.say(f"tested {bundle.job.verdict.group} on {bundle.device} in {bundle.seconds:.0f} s")


def keep(root: Path, bundle: Bundle, board: Board, outcome: Outcome) -> None:
    """Write the record of a page, add its run to the history, and say what moved.

    Raises:
        RecordedTwice: the page has one of this run.
    """
    from course_site.records import changes, run_history
    from course_site.records.record import Record, RecordError, record_path

    page, record, slug = bundle.page, bundle.record, bundle.record.edition["slug"]
    outcome.take(page.path.as_posix(), record.meta["checksum"])
    path = record_path(root, slug, page)
    old = None
    if path.exists():
        with contextlib.suppress(RecordError):
            old = Record.load(path)
    record.save(path)
    outcome.written.append(path)
    known = run_history.load(root, slug)  # without this run: an interval is held against what came after it
    terms = run_history.between(known)
    moved = changes.moved(old, record, terms)
    run_history.append(root, slug, record, len(moved))
    board.say(f"measured {page.path} on {bundle.device} in {bundle.seconds:.0f} s")
    if record.meta["provenance"]["dirty"]:
        board.say(f"  made from files that differ from commit {record.meta['provenance']['commit'][:12]}")
    inside, of = run_history.covered(old, record, terms) if old is not None else (0, 0)
    if of:
        board.say(f"  {inside} of {of} timings lie inside the interval that the record before stated")
    if moved:
        changes.append(root, slug, moved)
        for line in moved:
            board.say(f"  {line}")


def archive(root: Path, file: Path, slug: str, written: list[Path]) -> None:
    """Put records with their artifacts, those of the GPU tests and what moved into a .tar.gz; unpack it at the root."""
    from course_site.records.artifacts import folder_of

    folder = root / "records" / slug
    beside = [path for path in (*folder.glob("*"), *folder.glob("tests/*.json")) if path.is_file()]
    made = [path for record in written for path in folder_of(record).glob("*")]
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with tarfile.open(partial, "w:gz") as tar:
            for path in sorted({*written, *made, *beside}):
                tar.add(path, path.relative_to(root).as_posix(), recursive=False, filter=_anonymous)
        os.replace(partial, file)
    finally:
        partial.unlink(missing_ok=True)
    print(
        f"docs: {len(written)} new records in {file}; unpack with `tar -xzf {file.name}` at the root",
        flush=True,
    )


def _anonymous(member: tarfile.TarInfo) -> Any:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
