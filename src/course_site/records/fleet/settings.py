"""Settings of Dask under which a fleet runs, each with what it would do otherwise (distributed 2026.8.0)."""

from __future__ import annotations

import logging
from typing import Any

# A task for which no worker will ever do waits for ever, without a word, unless this is set.
NO_WORKERS_S = 60.0
# A machine that stops answering keeps its task for so long, in seconds.
SILENT_S = 60.0
# A worker waits so long for a coordinator, or for one that was lost to come back, in seconds.
WAIT_S = 600.0


def settings() -> dict[str, Any]:
    """Return what `dask.config.set` is given."""
    return {
        # A task whose worker dies would be run on three more: who runs it again, and how often, is for us to say.
        "distributed.scheduler.allowed-failures": 0,
        "distributed.scheduler.no-workers-timeout": f"{NO_WORKERS_S} s",
        "distributed.scheduler.worker-ttl": f"{SILENT_S} s",
        "distributed.scheduler.work-stealing": False,
        # Both would listen on every network that the machine has, without a certificate.
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
        # It looks at all threads a hundred times a second, beside what is measured.
        "distributed.worker.profile.enabled": False,
        # What a page needs is not the worker's memory, and Dask would pause or end it.
        "distributed.worker.memory.target": False,
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": False,
        "distributed.worker.memory.terminate": False,
        "distributed.comm.timeouts.connect": "10 s",
    }


def of_a_scheduler() -> dict[str, Any]:
    """Return what Dask's scheduler is made with.

    Without its extensions, none of which we use: one of them has every worker load a plugin, which is code.
    """
    return {"extensions": {}, "dashboard_address": "127.0.0.1:0"}


def quiet() -> None:
    """Leave the terminal to us: who came, went and failed is said in lines of our own."""
    for name in ("distributed", *logging.root.manager.loggerDict):
        if name.split(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
