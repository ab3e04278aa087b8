"""Measure: GPU tests first, then one page after another on each GPU, and every record kept as soon as it is whole."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_site.records.environments import environment_on_gpu, with_source
from course_site.records.gpus import Gpu
from course_site.records.plan import UNKNOWN_S, Job

if TYPE_CHECKING:
    from course_site.pages.page import Page
    from course_site.records.execute import PageFailed, Progress
    from course_site.records.record import Record
    from course_site.records.tested import Verdict

# Processes of GPU tests at once: most of their time is compiling, and no part can be shorter than its longest group.
SIDE_BY_SIDE = 5


@dataclass
class Outcome:
    """What measuring came to, kept up to date while it runs."""

    slug: str = ""  # set once measuring begins
    written: list[Path] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    left: list[Job] = field(default_factory=list)
    out_of_minutes: bool = False


def run_tests(root: Path, groups: list[Verdict], outcome: Outcome) -> None:
    """Run the groups of GPU tests: side by side, but for those that look at time, and for the labs.

    A wrong answer that races is found by what it leaves behind, and that is another thing beside a busy neighbour.
    """
    from course_site.records import tested

    project = tested.Project(root)
    alone = [
        verdict
        for verdict in groups
        if project.looks_at_time(verdict.group) or verdict.group.startswith(tested.LAB)
    ]
    parts = _shared_out([verdict for verdict in groups if verdict not in alone], SIDE_BY_SIDE)
    print(f"docs: GPU tests of {len(groups)} group{'s' * (len(groups) != 1)}", flush=True)
    codes = _pytest(root, parts) + _pytest(root, [alone] if alone else [])
    wrong = [code for code in codes if code]
    if wrong:
        outcome.failed.append(("tests/gpu", f"pytest ended with {wrong[0]}, see above"))


def _shared_out(groups: list[Verdict], parts: int) -> list[list[Verdict]]:
    """The groups in so many parts at most that take about as long as each other: each to the shortest one so far."""
    found: list[list[Verdict]] = [[] for _ in range(min(parts, len(groups)))]

    def seconds(verdicts: list[Verdict]) -> float:
        return sum(UNKNOWN_S if verdict.seconds is None else verdict.seconds for verdict in verdicts)

    for verdict in sorted(groups, key=lambda verdict: seconds([verdict]), reverse=True):
        min(found, key=seconds).append(verdict)
    return found


def _pytest(root: Path, parts: list[list[Verdict]]) -> list[int]:
    """Run the GPU tests of each part in a process of its own, all at once; what each says comes when it ends."""
    environment = with_source(root, environment_on_gpu(root))
    if len(parts) > 1:  # each would take all cores for an answer that it works out without the card
        environment["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // len(parts)))
    running = []
    try:
        for part in parts:
            options = [word for verdict in part for word in ("--group", verdict.group)]
            command = [sys.executable, "-m", "pytest", "-q", "tests/gpu", *options]
            said = tempfile.TemporaryFile() if len(parts) > 1 else None  # noqa: SIM115
            process = subprocess.Popen(
                command, cwd=root, env=environment, stdout=said, stderr=subprocess.STDOUT if said else None
            )
            running.append((process, said))
        codes = []
        for process, said in running:
            codes.append(process.wait())
            if said:
                said.seek(0)
                print(said.read().decode(errors="replace"), end="", flush=True)
        return codes
    finally:
        for process, said in running:
            if process.poll() is None:
                process.terminate()
                process.wait()
            if said:
                said.close()


def measure_all(
    root: Path, jobs: list[Job], gpus: list[Gpu], deadline: float | None, outcome: Outcome
) -> None:
    """Measure the pages, one at a time on each GPU; none is begun that would not end before the deadline."""
    board = Board()
    outcome.left = list(jobs)
    total = sum(job.forecast_s for job in jobs) / 60
    board.say(
        f"docs: {len(jobs)} pages to measure on {len(gpus)} × {gpus[0].name}, about {total:.1f} GPU minutes"
    )
    asyncio.run(_measure(root, gpus, deadline, board, outcome))


async def _measure(
    root: Path, gpus: list[Gpu], deadline: float | None, board: Board, outcome: Outcome
) -> None:
    task = asyncio.current_task()
    if task is not None:
        with contextlib.suppress(NotImplementedError, ValueError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    ticker = asyncio.create_task(board.run())
    try:
        async with asyncio.TaskGroup() as group:
            for gpu in gpus:
                group.create_task(_measure_on(gpu, root, deadline, board, outcome))
    finally:
        ticker.cancel()
        board.clear()


async def _measure_on(gpu: Gpu, root: Path, deadline: float | None, board: Board, outcome: Outcome) -> None:
    """One device's pages, one after another, from the queue all devices share."""
    from course_site.records.execute import PageFailed, Progress, execute_async

    while outcome.left and not outcome.out_of_minutes:
        job = outcome.left[0]
        if deadline is not None and time.monotonic() + job.forecast_s > deadline:
            outcome.out_of_minutes = True
            return
        outcome.left.pop(0)
        state = Progress(job.page, gpu, job.forecast_s)
        board.running.append(state)
        try:
            record = await execute_async(job.page, root, state, board.update)
            _keep(root, gpu.slug, job.page, record, state, board, outcome)
        except PageFailed as error:
            _report(error, board)
            outcome.failed.append((job.page.path.as_posix(), str(error)))
        except Exception as error:  # a full disk, or a fault of ours: the other pages still run
            line = f"{job.page.path}: cannot be recorded: {type(error).__name__}: {error}"
            board.say(
                f"FAILED {line}" if isinstance(error, OSError) else f"FAILED {line}\n{traceback.format_exc()}"
            )
            outcome.failed.append((job.page.path.as_posix(), line))
        finally:
            board.running.remove(state)


def _keep(
    root: Path, slug: str, page: Page, record: Record, state: Progress, board: Board, outcome: Outcome
) -> None:
    from course_site.records import changes, run_history
    from course_site.records.record import Record, RecordError, record_path

    path = record_path(root, slug, page)
    old = None
    if path.exists():
        with contextlib.suppress(RecordError):
            old = Record.load(path)
    record.save(path)
    outcome.written.append(path)
    known = run_history.load(root, slug)  # without this run: an interval is held against what came after it
    run_history.append(root, slug, record)
    board.say(f"measured {page.path} on GPU {state.gpu.index} in {state.elapsed_s:.0f} s")
    if record.meta["provenance"]["dirty"]:
        board.say(f"  made from files that differ from commit {record.meta['provenance']['commit'][:12]}")
    terms = run_history.between(known)
    inside, of = run_history.covered(old, record, terms) if old is not None else (0, 0)
    if of:
        board.say(f"  {inside} of {of} timings lie inside the interval that the record before stated")
    moved = changes.moved(old, record, terms)
    if moved:
        changes.append(root, slug, moved)
        for line in moved:
            board.say(f"  {line}")


def _report(error: PageFailed, board: Board) -> None:
    board.say(f"FAILED {error}")
    for line in error.detail.splitlines():
        board.say(f"  | {line}")


class Board:
    """The lines of a measuring run: a terminal rewrites the last one, elsewhere every cell is a line."""

    def __init__(self) -> None:
        self.running: list[Progress] = []
        self.rewrites = sys.stdout.isatty()
        self.width = 0

    def clear(self) -> None:
        """Take the rewritten line off the screen."""
        if self.width:
            print("\r" + " " * self.width + "\r", end="", flush=True)
            self.width = 0

    def say(self, text: str) -> None:
        """A line that stays."""
        self.clear()
        print(text, flush=True)

    def update(self, state: Progress) -> None:
        """A page reached its next cell."""
        if self.rewrites:
            self.draw()
        else:
            print(self.line(state), flush=True)

    def line(self, state: Progress) -> str:
        """Page, cell, elapsed, expected."""
        expected = f" of about {_clock(state.expected_s)}" if state.expected_s else ""
        cell = f"cell {max(state.cell, 1)}/{len(state.page.code)}"
        return f"{state.page.path}  {cell}  {_clock(state.elapsed_s)}{expected}"

    def draw(self) -> None:
        """Rewrite the line."""
        room = shutil.get_terminal_size().columns - 1
        text = "  |  ".join(self.line(state) for state in self.running)[:room]
        print("\r" + text.ljust(self.width), end="", flush=True)
        self.width = len(text)

    async def run(self) -> None:
        """Keep the seconds going on a terminal."""
        while self.rewrites:
            if self.running:
                self.draw()
            await asyncio.sleep(1)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


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
