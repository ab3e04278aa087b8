"""Limits of a stranger's process: how much time, memory and disk it may use. Needs the standard library only."""

from __future__ import annotations

from dataclasses import dataclass

GIB = 2**30


@dataclass(frozen=True)
class Limits:
    """Resources that a stranger's process may use.

    Seconds are the wall's, or working ones where the task says so (`course_judge.working_clock`).

    Attributes:
        seconds: for loading the file, and for each of its answers.
        seconds_in_all: for everything.
        memory_bytes: of memory, over what Python and torch themselves take.
        disk_bytes: in its own folder, the only place where it may write.
        processes: how many it may run at once, itself included.
        printed_bytes: of what it prints.
    """

    seconds: float = 60.0
    seconds_in_all: float = 3600.0
    memory_bytes: int = 16 * GIB
    disk_bytes: int = GIB
    processes: int = 64
    printed_bytes: int = 4 * 2**20
