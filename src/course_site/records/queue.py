"""A queue takes a page to measure and hands back its bundle: here the GPUs of this machine, elsewhere any other.

`measure_all` gives a queue as many tasks at once as it takes, keeps every record as soon as it is whole, and knows at
the end what became of each.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import signal
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from course_site.records.board import Board
from course_site.records.gpus import Gpu
from course_site.records.plan import GroupJob, Job, Task, in_words
from course_site.records.store import Bundle, GroupBundle, Outcome, keep, keep_tests

if TYPE_CHECKING:
    from course_site.records.execute import PageFailed

# A queue elsewhere may grow while nothing of it ends: how often that is looked at, in seconds.
LOOK_S = 1.0


class Stands(RuntimeError):
    """A task that no card of a queue can run, as is found out there: its last record stands. One line."""


class Queue(Protocol):
    """Devices of one GPU model, wherever they are."""

    @property
    def name(self) -> str:
        """The devices in words: how many, and of which model."""

    @property
    def width(self) -> int:
        """Tasks that it takes at once."""

    async def submit(self, job: Job, board: Board) -> Bundle | GroupBundle:
        """Measure one page, or run a group of GPU tests where the queue takes them; cancelling it ends the task.

        Raises:
            PageFailed: the page did not run to its end.
            Stands: no card here has what the page needs.
        """


class LocalQueue:
    """The GPUs of this machine, one page after another; a page that needs several GPUs has them."""

    width = 1

    def __init__(self, root: Path, gpus: Sequence[Gpu]) -> None:
        self.root, self.gpus = root, gpus
        self.name = f"1 × {gpus[0].name}"

    async def submit(self, job: Job, board: Board) -> Bundle:
        """Measure a page."""
        from course_site.records.execute import Progress, execute_async

        taken = self.gpus[: job.gpus]
        gpu = dataclasses.replace(taken[0], visible=",".join(one.visible for one in taken))
        state = Progress(job.page, gpu, job.forecast_s)
        board.running.append(state)
        try:
            record = await execute_async(job.page, self.root, state, board.update)
            where = " and ".join(f"GPU {one.index}" for one in taken)
            return Bundle(job.page, record, where, state.elapsed_s)
        finally:
            board.running.remove(state)


def measure_all(
    root: Path,
    queue: Queue,
    jobs: Sequence[Task],
    deadline: float | None,
    outcome: Outcome,
    *,
    after: Sequence[GroupJob] = (),
    runner: asyncio.Runner | None = None,
) -> None:
    """Run the tasks; none is begun that would not end before the deadline.

    Args:
        deadline: in seconds of `time.monotonic`; None for no end.
        outcome: kept up to date while they run.
        after: groups of GPU tests that the caller runs afterwards: the first line counts them.
        runner: of the queue's event loop, if it has one.
    """
    board = Board()
    outcome.left = list(jobs)
    words, forecast = in_words([*jobs, *after])
    verb = "to measure" if " and " not in words else "to run"
    board.say(f"docs: {words} {verb} on {queue.name}, {forecast}")
    measuring = _measure(root, queue, deadline, board, outcome)
    if runner is None:
        asyncio.run(measuring)
    else:
        runner.run(measuring)
    for name in outcome.lost(list(jobs)):
        line = f"{name}: came back neither with a record nor with a reason: a fault of ours, run it again"
        board.say(f"FAILED {line}")
        outcome.failed.append((name, line))


async def _measure(root: Path, queue: Queue, deadline: float | None, board: Board, outcome: Outcome) -> None:
    task = asyncio.current_task()
    if task is not None:
        with contextlib.suppress(NotImplementedError, ValueError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    ticker = asyncio.create_task(board.run())
    running: set[asyncio.Task[None]] = set()
    try:
        while True:
            while outcome.left and not outcome.out_of_minutes and len(running) < max(1, queue.width):
                fitting = (job for job in outcome.left if _ends_before(deadline, job))
                job = next(fitting, None)
                if job is None:
                    outcome.out_of_minutes = True
                    break
                outcome.left.remove(job)
                running.add(asyncio.create_task(_one(root, queue, job, board, outcome)))
            if not running:
                return
            done, running = await asyncio.wait(running, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
            for ended in done:
                ended.result()
    finally:
        for unfinished in running:
            unfinished.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        ticker.cancel()
        board.clear()


def _ends_before(deadline: float | None, job: Task) -> bool:
    return deadline is None or time.monotonic() + job.forecast_s <= deadline


async def _one(root: Path, queue: Queue, job: Task, board: Board, outcome: Outcome) -> None:
    """Submit a task, and keep what comes of it."""
    from course_site.records.edition import note_lacking
    from course_site.records.execute import PageFailed

    try:
        bundle = await queue.submit(job, board)  # type: ignore[arg-type]
        if isinstance(bundle, GroupBundle):
            keep_tests(root, bundle, board, outcome)
        else:
            keep(root, bundle, board, outcome)
    except Stands as error:
        note_lacking(root, outcome.slug, {job.name: str(error).removeprefix(f"{job.name} ")})
        board.say(f"docs: {error}: this edition has no numbers of it")
        outcome.standing.append(job.name)
    except PageFailed as error:
        _report(error, board)
        outcome.failed.append((job.name, str(error)))
    except Exception as error:  # a full disk, or a fault of ours: the other pages still run
        line = f"{job.name}: cannot be recorded: {type(error).__name__}: {error}"
        board.say(
            f"FAILED {line}" if isinstance(error, OSError) else f"FAILED {line}\n{traceback.format_exc()}"
        )
        outcome.failed.append((job.name, line))


def _report(error: PageFailed, board: Board) -> None:
    board.say(f"FAILED {error}")
    for line in error.detail.splitlines():
        board.say(f"  | {line}")
