"""What Dask does by itself (distributed 2026.8.0), and that a fleet does something else: each on purpose."""

import asyncio
import contextlib
import os
import pickle
import signal
import time
from pathlib import Path

import dask
import distributed
import pytest
from distributed import Client, Scheduler, Worker
from distributed.scheduler import NoValidWorkerError
from fleet_of_stand_ins import SLUG, free_address, make_tree, records, runs, workers

from course_site.pages.page import find_pages
from course_site.records.fleet import coordinator, guard, opening, settings
from course_site.records.fleet.address import read_address
from course_site.records.fleet.tasks import Assignment, run_task
from course_site.records.plan import Job
from course_site.records.queue import measure_all
from course_site.records.store import Outcome


@contextlib.asynccontextmanager
async def a_scheduler_and_a_worker(**options):
    async with (
        Scheduler(host="127.0.0.1", port=0, **settings.of_a_scheduler()) as scheduler,
        Worker(scheduler.address, nthreads=1, memory_limit=0, extensions={}, **options) as worker,
        Client(scheduler.address, asynchronous=True, set_as_default=False) as client,
    ):
        yield scheduler, worker, client


async def outcome_of(resource, seconds):
    """What becomes of a task that asks for a resource."""
    async with a_scheduler_and_a_worker(resources={"gpu": 1}) as (_, _, client):
        future = client.submit(abs, -1, key="task", resources={resource: 1})
        try:
            return await asyncio.wait_for(future.result(), seconds)
        except TimeoutError:
            return "waits without a word"
        except NoValidWorkerError:
            return "refused"


def test_a_misspelt_resource_waits_for_ever_unless_the_timeout_is_set(monkeypatch):
    quiet = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
    with dask.config.set(quiet):
        assert asyncio.run(outcome_of("gpu", 10)) == 1
        assert asyncio.run(outcome_of("gpus", 1.5)) == "waits without a word"
    monkeypatch.setattr(settings, "NO_WORKERS_S", 0.5)
    with dask.config.set(settings.settings()):
        assert asyncio.run(outcome_of("gpus", 10)) == "refused"


def test_resources_say_nothing_to_a_process_about_its_cards():
    async def seen():
        async with a_scheduler_and_a_worker(resources={"gpu": 1}) as (_, _, client):
            return await client.submit(os.environ.get, "CUDA_VISIBLE_DEVICES", resources={"gpu": 1})

    with dask.config.set(settings.settings()):
        assert asyncio.run(seen()) == os.environ.get("CUDA_VISIBLE_DEVICES")


# --- with workers in processes that can be killed -------------------------------------------------


@pytest.fixture
def fleet(tmp_path, monkeypatch):
    """Two stand-ins, and pages: two that are quick, one that ends its worker for ever, one that takes long."""
    monkeypatch.setattr(opening, "SETTLED_S", 0.3)
    root = make_tree(
        tmp_path,
        monkeypatch,
        {"quick": ("", 1), "fast": ("", 1), "deadly": ("die=9", 1), "slow": ("sleep=2", 1)},
    )
    address = free_address()
    started = workers(root, address, 2)
    try:
        with opening.opened(root, 2, read_address(address, None)) as fleet:
            yield fleet
    finally:
        started.terminate()
        started.wait(20)


def assigned(fleet, page):
    """Hand a page to the first worker, past the coordinator; its future."""
    post = next(iter(fleet.coordinator.places.posts.values()))
    one = post.statement
    text = Assignment(page, f"{page}|1", one.process, "page", (one.gpu.visible,)).as_text()
    return fleet.coordinator.client.submit(
        run_task, text, key=f"{page}|1", workers=[post.address], allow_other_workers=False, pure=False
    )


async def no_longer_pending(future):
    while future.status == "pending":
        await asyncio.sleep(0.02)


def began(root, name):
    return int((root.parent / f"began-{name}").read_text())


def names(root):
    return [run[0] for run in runs(root)]


def test_a_task_that_ends_its_worker_is_run_on_no_other_by_dask(fleet):
    root = fleet.coordinator.root

    async def result():
        with pytest.raises(distributed.scheduler.KilledWorker):
            await assigned(fleet, "docs/deadly.py")
        await asyncio.sleep(1.0)

    fleet.runner.run(result())
    assert len(list(root.parent.glob("died-deadly-*"))) == 1


def test_a_lost_result_is_computed_nowhere_again_by_dask(fleet):
    root = fleet.coordinator.root

    async def lost():
        future = assigned(fleet, "docs/quick.py")
        await no_longer_pending(future)
        os.kill(began(root, "quick"), signal.SIGKILL)
        await asyncio.sleep(3.0)
        return future.status

    assert fleet.runner.run(lost()) != "finished"
    assert names(root) == ["quick"]


def test_a_page_whose_result_is_lost_runs_once_more_and_is_recorded_once(fleet, monkeypatch, capsys):
    root, of_dask, killed = fleet.coordinator.root, coordinator._result, []

    async def after_a_kill(future):
        if not killed:
            await no_longer_pending(future)
            killed.append(began(root, "quick"))
            os.kill(killed[0], signal.SIGKILL)
        return await of_dask(future)

    monkeypatch.setattr(coordinator, "_result", after_a_kill)
    outcome = Outcome(SLUG)
    jobs = [Job(page, ["new"], 1.0, "") for page in find_pages(root) if page.id == "quick"]
    measure_all(root, fleet.coordinator, jobs, None, outcome, runner=fleet.runner)
    assert outcome.failed == []
    assert names(root) == ["quick", "quick"]
    assert [path.name for path in records(root)] == ["quick.ipynb"]
    assert capsys.readouterr().out.count("measured docs/quick.py") == 1


def test_what_dask_cancels_by_itself_stops_no_run():
    """Seen among a hundred workers: one was given up while answers were fetched, and the wait for another ended."""

    async def fetched():
        fetch = asyncio.get_running_loop().create_future()
        fetch.cancel()
        with pytest.raises(coordinator.WorkerDied, match="cancelled by Dask"):
            await coordinator._result(fetch)
        never = asyncio.get_running_loop().create_future()
        ours = asyncio.ensure_future(coordinator._result(never))
        await asyncio.sleep(0)
        ours.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ours

    asyncio.run(fetched())


def test_who_gives_one_task_up_still_gets_the_others(fleet, monkeypatch):
    """Two results are fetched together; the worker of one is said to be gone in that moment."""
    root, posts = fleet.coordinator.root, list(fleet.coordinator.places.posts.values())
    pages = {page.id: Job(page, ["new"], 1.0, "") for page in find_pages(root)}
    of_dask, asked = Client._gather_remote, []

    async def one_goes(self, *rest):
        await asyncio.sleep(0.2)  # the other one comes, too
        asked.append(list(self._gather_keys))
        fleet.coordinator._members[posts[1].address].gone.set()
        await asyncio.sleep(0.2)
        return await of_dask(self, *rest)

    async def together(future):
        """Both results are there before one is fetched."""
        await no_longer_pending(future)
        there.add(future.key)
        while len(there) < 2:
            await asyncio.sleep(0.02)
        return await of_us(future)

    async def both():
        of_one = fleet.coordinator._attempt(pages["quick"], posts[:1])
        of_other = fleet.coordinator._attempt(pages["fast"], posts[1:])
        return await asyncio.gather(of_one, of_other, return_exceptions=True)

    there, of_us = set(), coordinator._result
    monkeypatch.setattr(coordinator, "_result", together)
    monkeypatch.setattr(Client, "_gather_remote", one_goes)
    parcel, died = fleet.runner.run(both())
    assert [len(keys) for keys in asked][:1] == [2]
    assert isinstance(died, coordinator.WorkerDied)
    assert parcel.outcome == "recorded"


def answer(fleet, **changes):
    post = next(iter(fleet.coordinator.places.posts.values()))
    one = post.statement
    data = {
        "task": "docs/quick.py",
        "attempt": "1",
        "process": one.process,
        "kind": "page",
        "visible": (one.gpu.visible,),
    }
    text = Assignment(**(data | changes)).as_text()

    async def asked():
        key = str(time.monotonic())
        parcel = await fleet.coordinator.client.submit(run_task, text, key=key, workers=[post.address])
        return coordinator.unpack(parcel, (data | changes)["task"], (data | changes)["attempt"])

    return fleet.runner.run(asked())


def test_a_worker_runs_nothing_but_what_its_tree_has_and_nothing_twice(fleet):
    assert answer(fleet).outcome == "recorded"
    for changes, said in (
        ({}, "was begun here before: not run twice"),
        ({"process": "another", "attempt": "2"}, "was sent to another worker than this one: not run"),
        ({"task": "docs/../../secret.py", "attempt": "3"}, "is no page of this tree"),
        ({"task": "src/tiny/kernel.py", "attempt": "4"}, "is no page of this tree"),
        ({"task": "docs/gone.py", "attempt": "5"}, "is not in this worker's tree"),
        ({"task": "tests/gpu/gone", "attempt": "6"}, "is no group of GPU tests of this tree"),
        ({"visible": ("7",), "attempt": "7"}, "there is no GPU 7 here; there are 0, 1"),
    ):
        parcel = answer(fleet, **changes)
        assert (parcel.outcome, parcel.line.split(": ", 1)[1]) == ("failed", said)
    assert names(fleet.coordinator.root) == ["quick"]


class Shipped:
    """A pickle that does something when it is read."""

    def __reduce__(self):
        return os.mkdir, ("shipped",)


def test_no_code_comes_over_the_wire(fleet, tmp_path):
    """Neither to a worker nor to the coordinator, whose scheduler reads what clients send."""
    address = next(iter(fleet.coordinator.places.posts))

    async def tried():
        async with Client(
            fleet.coordinator.scheduler.address, asynchronous=True, set_as_default=False
        ) as stranger:
            for number, (function, argument) in enumerate(
                (
                    (os.mkdir, "shipped"),
                    (lambda name: os.mkdir(name), "shipped"),
                    (abs, Shipped()),
                )
            ):
                with pytest.raises(Exception, match="deserialization of the task graph"):
                    await asyncio.wait_for(
                        stranger.submit(function, argument, key=str(number), pure=False).result(), 10
                    )
            with pytest.raises((RuntimeError, AssertionError)):
                await stranger.run(os.mkdir, "shipped")
        async with fleet.coordinator.scheduler.rpc(address) as worker:
            for call in (
                lambda: worker.run(function=pickle.dumps(os.mkdir), args=pickle.dumps(("shipped",))),
                lambda: worker.upload_file(filename="shipped.py", data=b""),
                lambda: getattr(worker, "plugin-add")(plugin=pickle.dumps(Shipped())),
            ):
                with pytest.raises(Exception, match="has been explicitly disallowed"):
                    await call()

    fleet.runner.run(tried())
    root = fleet.coordinator.root
    assert not [*root.rglob("shipped*"), *Path.cwd().glob("shipped*")]
    assert len(fleet.coordinator.places.posts) == 2
    outcome = Outcome(SLUG)
    jobs = [Job(page, ["new"], 1.0, "") for page in find_pages(root) if page.id == "quick"]
    measure_all(root, fleet.coordinator, jobs, None, outcome, runner=fleet.runner)
    assert (len(outcome.written), outcome.failed) == (1, [])


def test_the_guard_names_what_it_refuses():
    with pytest.raises(guard.NotOurs, match=r"posix\.mkdir: is not run here"):
        guard.loads(pickle.dumps(Shipped()))
    with pytest.raises(guard.NotOurs, match=r"builtins\.eval"):
        guard.loads(pickle.dumps(eval))
    assert guard.loads(pickle.dumps(run_task)) is run_task
    assert guard.loads(pickle.dumps(ValueError("x"))).args == ("x",)


def test_a_page_beside_another_one_waits_for_neither(fleet):
    """The slow page holds its own card alone."""
    root, outcome = fleet.coordinator.root, Outcome(SLUG)
    jobs = [Job(page, ["new"], 1.0, "") for page in find_pages(root) if page.id in ("quick", "slow")]
    measure_all(root, fleet.coordinator, coordinator.in_order(jobs), None, outcome, runner=fleet.runner)
    assert outcome.failed == []
    assert sorted(run[2] for run in runs(root)) == [("0",), ("1",)]
