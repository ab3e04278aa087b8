"""Coordinator: the queue whose devices are workers that Dask knows of; see `places` for who runs what.

Dask's scheduler runs in this process and is told of one worker for each task, so it never chooses one. Nor does it run
anything again by itself: a lost result would be computed anew, but the only worker that may do so is gone by then.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distributed import Client
from distributed.client import FutureCancelledError
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.scheduler import KilledWorker, NoValidWorkerError

from course_site.records.board import Board
from course_site.records.execute import PageFailed
from course_site.records.fleet.parcel import ARTIFACT, RECORD, Parcel, ParcelRefused, unpack
from course_site.records.fleet.places import RESTART_S, NoPlace, Places, Post
from course_site.records.fleet.statement import Statement, Tree, fault_of
from course_site.records.fleet.tasks import Assignment, run_task
from course_site.records.gpu_test_records import record_path as path_of_tests
from course_site.records.gpus import Gpu
from course_site.records.plan import ALONE, PAGE, TESTS, GroupJob, Job, Task
from course_site.records.queue import Stands
from course_site.records.record import Record, RecordError, edition_of, is_sealed, record_path
from course_site.records.store import Bundle, GroupBundle

TRIES = 2  # a task whose worker died goes elsewhere once more: it may be the task that ends them
ORPHANS_S = 1.0  # what a dead worker has left running is ended within this time by the one that started it
LEAVE_S = 5.0  # for a worker to hear that it may go


def in_order(tasks: Sequence[Task]) -> list[Task]:
    """Return tasks in the order of a fleet: pages, tests, tests that are alone; of each the longest first."""
    kinds = (PAGE, TESTS, ALONE)
    return sorted(tasks, key=lambda task: (kinds.index(task.kind), -task.forecast_s))


class WorkerDied(RuntimeError):
    """The worker of a task went while it ran, or what it sent back was not whole; one line."""


@dataclass
class _Member:
    post: Post
    gone: asyncio.Event


class _Door(SchedulerPlugin):
    """Tells the coordinator who comes and goes."""

    def __init__(self, coordinator: Coordinator) -> None:
        self.coordinator = coordinator

    def add_worker(self, scheduler: Any, worker: str, **_: Any) -> None:
        self.coordinator.came(worker)

    def remove_worker(self, scheduler: Any, worker: str, **_: Any) -> None:
        self.coordinator.went(worker)


class Coordinator:
    """A queue of workers; a `Queue` of pages and of groups of GPU tests.

    Args:
        scheduler: Dask's, started in this process's event loop.
        client: Dask's, connected to it.
        tree: that workers must have; None where they run in this very tree.
        stand: of the only workers that take part; None for any.
        board: where it is said who comes and goes.
    """

    def __init__(
        self,
        root: Path,
        scheduler: Any,
        client: Client,
        *,
        tree: Tree | None,
        stand: str | None,
        board: Board,
        patience_s: float = RESTART_S,
    ) -> None:
        self.root, self.scheduler, self.client = root, scheduler, client
        self.tree, self.stand, self.board = tree, stand, board
        self.places = Places(patience_s)
        self.first: Statement | None = None
        self._members: dict[str, _Member] = {}
        self._refused: set[str] = set()
        self._over = False
        self._telling: set[asyncio.Task[None]] = set()
        self._left_alone: set[asyncio.Task[Any]] = set()
        self._run = uuid.uuid4().hex[:8]
        scheduler.add_plugin(_Door(self), name="course-door")
        for address in list(scheduler.workers):
            self.came(address)

    # --- who takes part ---------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The workers that are here, in words."""
        model = self.first.gpu.name if self.first else "no GPU"
        return f"{self.width} × {model}"

    @property
    def width(self) -> int:
        """Tasks at once: one for each GPU."""
        return len(self.places.posts)

    @property
    def gpus(self) -> list[Gpu]:
        """The cards that one task can have together."""
        return [post.statement.gpu for post in self.places.together]

    def came(self, address: str) -> None:
        """Let a worker take part, or say why not."""
        try:
            one = Statement.of_message(self.scheduler.workers[address].extra["statement"])
        except (KeyError, ValueError):
            self._refuse(address, address, "it says nothing of itself: start it with `nox -s worker`")
            return
        if fault := fault_of(one, self.first, self.tree, self.stand):
            self._refuse(address, one.worker, fault)
            return
        self.first = self.first or one
        self._members[address] = _Member(Post(address, one), asyncio.Event())
        self.places.add(self._members[address].post)
        self.board.say(f"docs: worker {one.worker} is here: {one.in_words}")

    def went(self, address: str) -> None:
        """Note that a worker is gone; whoever waits for its task hears of it."""
        member = self._members.pop(address, None)
        if member:
            self.places.remove(address)
            member.gone.set()
            if not self._over:
                self.board.say(f"docs: worker {member.post.statement.worker} is gone")

    def _refuse(self, address: str, worker: str, why: str) -> None:
        if (worker + why) not in self._refused:  # said once, also of one that comes again
            self.board.say(f"docs: worker {worker} is refused: {why}")
        self._refused.add(worker + why)
        self._tell(address, 2, f"refused: {why}")

    def _tell(self, address: str, code: int, reason: str) -> None:
        """Tell a worker to leave, and with which exit code."""

        async def tell() -> None:
            try:
                async with self.scheduler.rpc(address) as worker:
                    await asyncio.wait_for(worker.leave(code=code, reason=reason), LEAVE_S)
            except Exception:  # it is gone, or none of ours
                await self.scheduler.remove_worker(address, stimulus_id="refused", expected=True)

        telling = asyncio.ensure_future(tell())
        self._telling.add(telling)
        telling.add_done_callback(self._telling.discard)

    async def dismiss(self) -> None:
        """Tell all workers that the run is over."""
        self._over = True
        for address in list(self._members):
            self._tell(address, 0, "" if self.stand else "the coordinator is done")
        if self._telling:
            await asyncio.wait(self._telling, timeout=2 * LEAVE_S)

    # --- a task ----------------------------------------------------------------------------------

    async def submit(self, job: Task, board: Board) -> Bundle | GroupBundle:
        """Run a task where its cards are free; one whose worker dies goes elsewhere once more.

        Raises:
            PageFailed: it failed, or ended two workers, or no worker is left for it.
            Stands: no host has the cards that it needs, or no card what it asks for.
        """
        died: list[Post] = []
        said: list[str] = []
        while len(died) < TRIES:
            try:
                posts = await self.places.take(job.name, job.kind, job.gpus, died)
            except NoPlace as error:
                if job.gpus > 1 and self.places.posts and not died:
                    raise Stands(str(error).replace(f"{job.name}: ", f"{job.name} ", 1)) from None
                raise PageFailed("; ".join([str(error), *said])) from None
            try:
                parcel = await self._attempt(job, posts)
                return self._bundle(job, parcel, " and ".join(post.statement.worker for post in posts))
            except WorkerDied as error:
                died.append(posts[0])
                said.append(str(error))
                board.say(f"docs: {job.name}: {error}")
                await asyncio.sleep(ORPHANS_S)
            finally:
                self.places.release(posts)
        raise PageFailed(f"{job.name}: {'; '.join(said)}: it is not tried again")

    async def _attempt(self, job: Task, posts: list[Post]) -> Parcel:
        """Have the first post's worker run a task; its parcel.

        Raises:
            WorkerDied: it did not send one.
        """
        post = posts[0]
        one, member = post.statement, self._members.get(post.address)
        if member is None:
            raise WorkerDied(f"worker {one.worker} died before it began")
        attempt = f"{job.name}|{self._run}|{uuid.uuid4().hex[:8]}"
        visible = tuple(each.statement.gpu.visible for each in posts)
        assignment = Assignment(job.name, attempt, one.process, job.kind, visible, self.places.beside(post))
        self.board.say(f"begun {job.name} on {one.worker}, about {job.forecast_s / 60:.1f} min")
        future = self.client.submit(
            run_task,
            assignment.as_text(),
            key=attempt,
            workers=[post.address],
            allow_other_workers=False,
            pure=False,
        )
        result = asyncio.ensure_future(_result(future))
        gone = asyncio.ensure_future(member.gone.wait())
        try:
            await asyncio.wait({result, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not result.done() or isinstance(result.exception(), WorkerDied):
                raise WorkerDied(f"worker {one.worker} died while it ran")
            return unpack(result.result(), job.name, attempt)
        except ParcelRefused as error:
            raise WorkerDied(f"worker {one.worker}: {error}") from None
        finally:
            gone.cancel()
            # Not cancelled where it still waits: that would end the wait of others for their results, which Dask
            # fetches together.
            self._left_alone.add(result)
            result.add_done_callback(self._forget)
            future.release()  # Dask forgets the task, and with it how to run it again

    def _forget(self, result: asyncio.Task[Any]) -> None:
        self._left_alone.discard(result)
        if not result.cancelled():
            result.exception()  # looked at, or asyncio says that nobody did

    def _bundle(self, job: Task, parcel: Parcel, device: str) -> Bundle | GroupBundle:
        """Read what a parcel holds.

        Raises:
            PageFailed: the task failed there, or its record is not one.
            Stands: the card lacks something that the page needs.
        """
        if isinstance(job, GroupJob):
            return self._of_tests(job, parcel, device)
        if parcel.outcome == "lacking":
            raise Stands(f"{job.name} {parcel.line}")
        if parcel.outcome == "failed":
            where = parcel.line if parcel.line.startswith(job.name) else f"{job.name}: {parcel.line}"
            raise PageFailed(f"{where} (on {device})", parcel.detail)
        record = self._of_page(job, parcel)
        return Bundle(job.page, record, device, parcel.seconds)

    def _of_page(self, job: Job, parcel: Parcel) -> Record:
        """Read the record of a page, and see that it is of this page and this edition."""
        assert self.first is not None
        files = {name.removeprefix(ARTIFACT): data for name, data in parcel.files.items() if name != RECORD}
        try:
            text = parcel.files[RECORD].decode()
            record = Record.of_text(text, record_path(self.root, self.first.gpu.slug, job.page), files=files)
        except (KeyError, UnicodeError, RecordError) as error:
            raise PageFailed(f"{job.name}: what came back is no record of it: {error}") from None
        from course_site.records.artifacts import stated

        if record.meta["page"] != job.name:
            raise PageFailed(f"{job.name}: what came back is the record of {record.meta['page']}")
        if record.edition.get("slug") != self.first.gpu.slug:
            raise PageFailed(
                f"{job.name}: its record is of {record.edition.get('slug')}, not {self.first.gpu.slug}"
            )
        if record.artifacts != stated(files):
            raise PageFailed(f"{job.name}: the files that came back are not those that its record states")
        return record

    def _of_tests(self, job: GroupJob, parcel: Parcel, device: str) -> GroupBundle:
        """Read the record of a group of GPU tests; one of tests that failed is a record too."""
        assert self.first is not None
        record, failure = None, ""
        if parcel.outcome != "recorded":
            failure = f"{parcel.line if parcel.line.startswith(job.name) else f'{job.name}: {parcel.line}'} on {device}"
        if RECORD in parcel.files:
            record = json.loads(parcel.files[RECORD])
            wrong = not is_sealed(record) or record["group"] != job.verdict.group
            if wrong or edition_of(record["provenance"]).get("slug") != self.first.gpu.slug:
                path = path_of_tests(self.root, self.first.gpu.slug, job.verdict.group)
                record, failure = None, f"{job.name}: what came back from {device} is no {path.name}"
        elif not failure:
            failure = f"{job.name}: pytest ended well on {device} and left no record"
        return GroupBundle(job, record, device, parcel.seconds, failure, parcel.detail)


async def _result(future: Any) -> Any:
    """Wait for what a task returned.

    Raises:
        WorkerDied: Dask has given the task up.
    """
    try:
        return await future
    except (FutureCancelledError, KilledWorker, NoValidWorkerError) as error:
        raise WorkerDied(type(error).__name__) from None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # Nobody here has cancelled this. It must not pass for a Ctrl-C, which ends the run.
        raise WorkerDied("cancelled by Dask") from None
