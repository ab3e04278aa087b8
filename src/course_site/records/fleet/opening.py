"""Opening of a fleet: a coordinator with workers of this machine, of others, or of SLURM; and its closing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dask
from distributed import Client, Scheduler

import course_site
from course_site.records.board import Board
from course_site.records.environments import with_source
from course_site.records.fleet import guard
from course_site.records.fleet.address import Address
from course_site.records.fleet.coordinator import Coordinator
from course_site.records.fleet.settings import of_a_scheduler, quiet, settings
from course_site.records.fleet.slurm import SlurmFile, start_cluster
from course_site.records.fleet.statement import tree_of
from course_site.records.plan import CannotStart

LOCAL_S = 120.0  # for the workers of this machine to start
ELSEWHERE_S = 600.0  # for the first ones of other machines
SETTLED_S = 2.0  # without another one coming: those of one machine come together


@dataclass
class Fleet:
    """An open fleet: the queue, and the event loop that it lives in."""

    coordinator: Coordinator
    runner: asyncio.Runner


@dataclass
class _Opening:
    """Processes and connections of a fleet: started in one order, ended in the opposite one."""

    root: Path
    stack: contextlib.AsyncExitStack = field(default_factory=contextlib.AsyncExitStack)
    workers: subprocess.Popen[bytes] | None = None


@contextlib.contextmanager
def opened(
    root: Path, wanted: int, address: Address | None = None, slurm: SlurmFile | None = None
) -> Iterator[Fleet]:
    """Open a fleet, and close it in the end, whatever happens.

    Args:
        wanted: how many GPUs are waited for.
        address: where the coordinator listens for workers that are started elsewhere; None for its own on this machine.
        slurm: has SLURM start the workers.
    Raises:
        CannotStart: no worker came, or the tree is not one that others can have; one line.
    """
    quiet()
    opening = _Opening(root)
    with guard.installed(), dask.config.set(settings()), asyncio.Runner() as runner:
        try:
            coordinator = runner.run(_open(opening, wanted, address, slurm))
            yield Fleet(coordinator, runner)
        finally:
            runner.run(opening.stack.aclose())


async def _open(
    opening: _Opening, wanted: int, address: Address | None, slurm: SlurmFile | None
) -> Coordinator:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await _opened(opening, wanted, address, slurm)
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


async def _opened(
    opening: _Opening, wanted: int, address: Address | None, slurm: SlurmFile | None
) -> Coordinator:
    root, stack, board = opening.root, opening.stack, Board()
    local = address is None and slurm is None
    stand = uuid.uuid4().hex[:12] if local else None
    listening = slurm.address if slurm else address or Address("tcp", "127.0.0.1", 0)
    tree = None if local else tree_of(root)
    if tree and tree.fault:
        raise CannotStart(f"workers elsewhere run the commit of this tree, and {tree.fault}")
    security = listening.security()
    if slurm:
        cluster = await stack.enter_async_context(start_cluster(slurm, root))
        scheduler = cluster.scheduler
    else:
        scheduler = await _scheduler(listening, security)
        stack.push_async_callback(scheduler.close)
    guard.keep_only(scheduler, guard.OF_THE_SCHEDULER)
    client = await Client(scheduler.address, security=security, asynchronous=True, set_as_default=False)
    stack.push_async_callback(client.close)
    stack.push_async_callback(_end_workers, opening)
    coordinator = Coordinator(root, scheduler, client, tree=tree, stand=stand, board=board)
    stack.push_async_callback(coordinator.dismiss)
    if local:
        opening.workers = _start_workers(root, scheduler.address, str(stand), wanted)
    elif not slurm:
        tls = f" --tls {listening.tls}" if listening.tls else ""
        board.say(
            f"docs: waiting for workers: `nox -s worker -- {listening}{tls}` in the same commit, elsewhere"
        )
    else:
        board.say(f"docs: waiting for SLURM to start {slurm.jobs} job{'s' * (slurm.jobs != 1)}")
    await _wait(opening, coordinator, wanted, LOCAL_S if local else slurm.wait_s if slurm else ELSEWHERE_S)
    return coordinator


async def _scheduler(address: Address, security: Any) -> Any:
    """Start Dask's scheduler in this process.

    Raises:
        CannotStart: the address is taken, or not one of this machine.
    """
    try:
        return await Scheduler(
            host=address.host.strip("[]"),
            port=address.port,
            protocol=address.protocol,
            security=security,
            **of_a_scheduler(),
        )
    except OSError as error:
        raise CannotStart(f"{address}: cannot listen there: {error.strerror or error}") from None


def _start_workers(root: Path, address: str, stand: str, gpus: int) -> subprocess.Popen[bytes]:
    """Start the workers of this machine; they end with this process, whatever ends it."""
    environment = with_source(root, os.environ)
    environment["PYTHONPATH"] += os.pathsep + str(Path(course_site.__file__).parents[1])
    words = ("worker", address, "--stand", stand, "--gpus", str(gpus), "--wait", "30")
    return subprocess.Popen(
        [sys.executable, "-m", "course_site", *words], cwd=root, env=environment, start_new_session=True
    )


async def _end_workers(opening: _Opening) -> None:
    """Wait for the workers of this machine to end; they have been told to."""
    workers = opening.workers
    if workers is None:
        return
    for seconds, insist in ((10, workers.terminate), (15, workers.kill)):
        until = time.monotonic() + seconds
        while workers.poll() is None and time.monotonic() < until:
            await asyncio.sleep(0.05)
        if workers.poll() is None:
            insist()


async def _wait(opening: _Opening, coordinator: Coordinator, wanted: int, patience_s: float) -> None:
    """Wait for workers: as many as are wanted, or those that came in time.

    Raises:
        CannotStart: none came.
    """
    until = time.monotonic() + patience_s
    came, last = 0, time.monotonic()
    while True:
        now = time.monotonic()
        if coordinator.width != came:
            came, last = coordinator.width, now
        # One is wanted by whoever says nothing: the others of its machine come within moments.
        settled = wanted > 1 or opening.workers is not None or now - last > SETTLED_S
        if came >= wanted and settled:
            return
        over = opening.workers is not None and opening.workers.poll() is not None
        if over or now > until:
            if came:
                coordinator.board.say(f"docs: {wanted} GPUs wanted, {came} came: it begins with those")
                return
            raise CannotStart(
                "no worker came: see what each says" if over else f"no worker came in {patience_s:.0f} s"
            )
        await asyncio.sleep(0.1)
