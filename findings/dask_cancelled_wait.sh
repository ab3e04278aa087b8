#!/usr/bin/env bash
# In Dask, who stops waiting for one future stops others: `await a` raises CancelledError after `task_of_b.cancel()`.
#
# Seen with distributed 2026.8.0. A client in an event loop fetches results together: who comes while a fetch is being
# prepared awaits the same asyncio task (`Client._gather`: `response = await self._gather_future`), and cancelling a task
# cancels what it awaits. So a time limit (`asyncio.wait_for`) on one result, or any other cancellation, ends the wait for
# results that are there, and CancelledError is no Exception: it passes `except Exception`, and looks like a Ctrl-C.
# It matters to whoever waits for many futures one by one, and gives one of them up. Wait under `asyncio.shield`, or leave
# the task that waits alone.
#
# Exits with 0 while this is so, with 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check distributed==2026.8.0
cat >"$folder/waits.py" <<'PYTHON'
import asyncio
import logging
import sys

import distributed
from distributed import Client, Scheduler, Worker


async def waited(shielded):
    async with (
        Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0") as scheduler,
        Worker(scheduler.address),
        Client(scheduler.address, asynchronous=True) as client,
    ):
        a, b = client.submit(abs, -1), client.submit(abs, -2)
        await distributed.wait([a, b])

        async def result(future):
            return await (asyncio.shield(asyncio.ensure_future(future._result())) if shielded else future)

        of_a, of_b = asyncio.create_task(result(a)), asyncio.create_task(result(b))
        while client._gather_future is None:
            await asyncio.sleep(0)
        of_b.cancel()
        try:
            return await of_a
        except asyncio.CancelledError:
            return "CancelledError"


logging.disable(logging.CRITICAL)
found = asyncio.run(waited(shielded=False)), asyncio.run(waited(shielded=True))
print(f"distributed {distributed.__version__}: the other result: {found[0]}; waited for under a shield: {found[1]}")
print("as described" if found == ("CancelledError", 1) else "this has changed")
sys.exit(found != ("CancelledError", 1))
PYTHON
"$folder/venv/bin/python" "$folder/waits.py"
