"""One worker process: it serves one GPU to the coordinator at an address, until it is told to leave."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import dask
from distributed import Worker

from course_site.records.fleet import guard, tasks
from course_site.records.fleet.address import Address
from course_site.records.fleet.processes import PROCESS, end_with_parent
from course_site.records.fleet.settings import quiet, settings
from course_site.records.fleet.statement import Statement, statement
from course_site.records.gpus import Gpu
from course_site.records.plan import CannotStart

LOST_S = 1.0  # between one look for a coordinator and the next


def serve(root: Path, address: Address, gpus: list[Gpu], visible: str, stand: str, wait_s: float) -> int:
    """Serve until the coordinator says to leave; returns the exit code of the command.

    Args:
        gpus: of this machine; `visible` names the one that this worker is for.
        stand: the workers that were started together.
        wait_s: for a coordinator to come, or to come back, in seconds.
    Raises:
        CannotStart: there is no such GPU.
    """
    gpu = next((gpu for gpu in gpus if gpu.visible == visible), None)
    if gpu is None:
        raise CannotStart(f"there is no GPU {visible} here")
    end_with_parent()
    one = statement(root, gpu, stand, os.environ.get(PROCESS) or uuid.uuid4().hex)
    try:
        return asyncio.run(serve_as(root, address, gpus, one, wait_s))
    except asyncio.CancelledError:
        return 143


async def serve_as(root: Path, address: Address, gpus: list[Gpu], one: Statement, wait_s: float) -> int:
    """Serve under a statement; see `serve`."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    quiet()
    tasks.HERE = tasks.Here(root, one.process, gpus, set())
    temporary = tempfile.TemporaryDirectory(prefix="course-worker-")
    with guard.installed(), dask.config.set(settings()), temporary as folder:
        while True:
            if not await _listens(address, wait_s):
                print(
                    f"worker: {one.worker}: no coordinator at {address} for {wait_s:.0f} s", file=sys.stderr
                )
                return 3
            left = await _until_it_leaves(address, one, folder)
            if left is None:
                print(
                    f"worker: {one.worker}: the coordinator is lost; waiting for it to come back", flush=True
                )
                await asyncio.sleep(LOST_S)
                continue
            code, reason = left
            if reason:
                print(f"worker: {one.worker}: {reason}", file=sys.stderr if code else sys.stdout, flush=True)
            return code


async def _until_it_leaves(address: Address, one: Statement, folder: str) -> tuple[int, str] | None:
    """Take part until the coordinator says to leave, and with which exit code; None where it was lost."""
    left: list[tuple[int, str]] = []

    async def leave(code: int, reason: str) -> str:
        left.append((code, reason))
        asyncio.get_running_loop().call_later(0.1, lambda: asyncio.ensure_future(worker.close()))
        return "OK"

    worker: Any = Worker(
        str(address),
        name=one.process,
        nthreads=1,
        memory_limit=0,
        extensions={},
        security=address.security(),
        # On the address through which the coordinator is reached, and on no other.
        host="127.0.0.1" if address.is_loopback else None,
        protocol=address.protocol,
        dashboard_address="127.0.0.1:0",
        local_directory=folder,
        death_timeout="30 s",
        startup_information={"statement": lambda worker: one.as_message()},
    )
    worker.handlers["leave"] = leave
    guard.keep_only(worker, guard.OF_A_WORKER)
    try:
        await worker
        await worker.finished()
    except (OSError, TimeoutError, RuntimeError, ValueError):
        pass  # it went while we came
    finally:
        with contextlib.suppress(Exception):
            await worker.close(timeout=5)
    return left[0] if left else None


async def _listens(address: Address, wait_s: float) -> bool:
    """Wait until somebody listens at an address; False if nobody does in time."""
    until = time.monotonic() + wait_s
    while True:
        try:
            _, writer = await asyncio.open_connection(address.host.strip("[]"), address.port)
        except OSError:
            if time.monotonic() > until:
                return False
            await asyncio.sleep(LOST_S)
            continue
        writer.close()
        return True
