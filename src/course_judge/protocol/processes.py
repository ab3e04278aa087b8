"""Processes that run and who started them, on a system with /proc."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path


def children() -> dict[int, list[int]]:
    """Return the children of every process, by its number; empty on a system that does not tell."""
    found: dict[int, list[int]] = {}
    for entry in _running():
        with contextlib.suppress(OSError, ValueError, IndexError):
            # "pid (name) state parent …", and a name may hold anything
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            found.setdefault(parent, []).append(int(entry.name))
    return found


def is_running(process: int) -> bool:
    """Return True while a process runs: not for one that has ended, even if nobody has asked yet how."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return not Path("/proc/self/stat").exists()  # a system that says nothing of its processes


def cpu_seconds(process: int) -> float | None:
    """Return the CPU seconds that a process has used, with those of its children that have ended.

    None where there is no such process, or on a system that does not tell.
    """
    try:
        waited_for = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[13:15]
        # Linux's number for the clock of another process. In "stat" are hundredths alone, and a call may be shorter.
        own = time.clock_gettime(~process << 3 | 2)
        return own + sum(map(int, waited_for)) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, OverflowError):
        return None


def tree(root: int) -> set[int]:
    """Return a process and all below it; one that has left its parent is found when that one ends."""
    below, found, new = children(), set(), [root]
    while new:
        one = new.pop()
        found.add(one)
        new += below.get(one, [])
    return found


def _running() -> Iterable[Path]:
    with contextlib.suppress(OSError):
        return [entry for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return []
