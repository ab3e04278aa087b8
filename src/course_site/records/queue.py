"""A queue takes a page to measure and hands back its bundle: here the GPUs of this machine, elsewhere any other.

`measure_all` gives a queue as many pages at once as it has devices, and keeps every record as soon as it is whole.
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

from course_site.pages.needs import gpus_of
from course_site.records.board import Board
from course_site.records.gpus import Gpu
from course_site.records.plan import Job
from course_site.records.store import Bundle, Outcome, keep

if TYPE_CHECKING:
    from course_site.records.execute import PageFailed


class Queue(Protocol):
    """Devices of one GPU model, wherever they are."""

    @property
    def name(self) -> str:
        """The devices in words: how many, and of which model."""

    @property
    def width(self) -> int:
        """Pages that run at once."""

    async def submit(self, job: Job, board: Board) -> Bundle:
        """Measure one page; cancelling it ends the page.

        Raises:
            PageFailed: the page did not run to its end.
        """


class LocalQueue:
    """The GPUs of this machine, one page at a time on each; a page that needs several has them to itself.

    Args:
        width: pages at once, at most as many as there are GPUs.
    """

    def __init__(self, root: Path, gpus: Sequence[Gpu], width: int) -> None:
        self.root = root
        self.width = min(width, len(gpus))
        self.name = f"{self.width} × {gpus[0].name}"
        self._free = list(gpus)
        self._change = asyncio.Condition()

    async def submit(self, job: Job, board: Board) -> Bundle:
        """Measure a page as soon as enough devices are free; no more than `width` at once."""
        from course_site.records.execute import Progress, execute_async

        count = gpus_of(job.page.needs)
        async with self._change:
            await self._change.wait_for(lambda: len(self._free) >= count)
            taken, self._free = self._free[:count], self._free[count:]
        gpu = dataclasses.replace(taken[0], visible=",".join(one.visible for one in taken))
        state = Progress(job.page, gpu, job.forecast_s)
        board.running.append(state)
        try:
            record = await execute_async(job.page, self.root, state, board.update)
            where = " and ".join(f"GPU {one.index}" for one in taken)
            return Bundle(job.page, record, where, state.elapsed_s)
        finally:
            board.running.remove(state)
            async with self._change:
                self._free = sorted((*self._free, *taken), key=lambda one: one.index)
                self._change.notify_all()


def measure_all(root: Path, queue: Queue, jobs: list[Job], deadline: float | None, outcome: Outcome) -> None:
    """Measure the pages; none is begun that would not end before the deadline.

    Args:
        deadline: in seconds of `time.monotonic`; None for no end.
        outcome: kept up to date while they run.
    """
    board = Board()
    outcome.left = list(jobs)
    total = sum(job.forecast_s for job in jobs) / 60
    board.say(f"docs: {len(jobs)} pages to measure on {queue.name}, about {total:.1f} GPU minutes")
    asyncio.run(_measure(root, queue, deadline, board, outcome))


async def _measure(root: Path, queue: Queue, deadline: float | None, board: Board, outcome: Outcome) -> None:
    task = asyncio.current_task()
    if task is not None:
        with contextlib.suppress(NotImplementedError, ValueError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    ticker = asyncio.create_task(board.run())
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(queue.width):
                group.create_task(_one_after_another(root, queue, deadline, board, outcome))
    finally:
        ticker.cancel()
        board.clear()


async def _one_after_another(
    root: Path, queue: Queue, deadline: float | None, board: Board, outcome: Outcome
) -> None:
    """Submit pages until none is left, each when the one before it is kept."""
    from course_site.records.execute import PageFailed

    while outcome.left and not outcome.out_of_minutes:
        job = outcome.left[0]
        if deadline is not None and time.monotonic() + job.forecast_s > deadline:
            outcome.out_of_minutes = True
            return
        outcome.left.pop(0)
        try:
            keep(root, await queue.submit(job, board), board, outcome)
        except PageFailed as error:
            _report(error, board)
            outcome.failed.append((job.page.path.as_posix(), str(error)))
        except Exception as error:  # a full disk, or a fault of ours: the other pages still run
            line = f"{job.page.path}: cannot be recorded: {type(error).__name__}: {error}"
            board.say(
                f"FAILED {line}" if isinstance(error, OSError) else f"FAILED {line}\n{traceback.format_exc()}"
            )
            outcome.failed.append((job.page.path.as_posix(), line))


def _report(error: PageFailed, board: Board) -> None:
    board.say(f"FAILED {error}")
    for line in error.detail.splitlines():
        board.say(f"  | {line}")
