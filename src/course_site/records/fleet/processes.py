"""Processes of a fleet: none outlives the one that it belongs to."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

PROCESS = (
    "COURSE_WORKER"  # in the environment of a worker and of all that it starts, so that they can be found
)


def end_with_parent() -> None:
    """Have this process asked to end (SIGTERM) when the one that started it dies."""
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # 1 is PR_SET_PDEATHSIG
    if os.getppid() == 1:  # it died before this was said
        os.kill(os.getpid(), signal.SIGTERM)


def kill_marked(tag: str) -> None:
    """End what a worker that is gone has left running: a page's process outlives it, and would keep the card."""
    wanted = f"{PROCESS}={tag}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)
