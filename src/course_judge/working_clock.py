"""Clock of the judge's limits: working seconds, which do not go by while a busy machine gives the time to others.

Sizes are asked, and a file is ended, by seconds. On a machine with other work the wall's seconds are the others' too:
fewer sizes were then asked, and honest files ended. A working second is one of the wall's in which the judge, or a
stranger's processes, had the processor. What is read comes from the system, never from the stranger.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from course_judge.protocol.processes import cpu_seconds

# A file that sleeps works at nothing, and is ended by the wall: after so many times a limit. A machine is very busy
# where six others wait for each processor; an honest file is not ended there, and one that sleeps does not stay on.
BACKSTOP = 8


@dataclass(frozen=True)
class Moment:
    """A moment, in seconds of the clock and in seconds of the wall; only differences say something."""

    working: float
    wall: float


class Clock:
    """Clock that goes on, at each look, by the lesser of two differences: of the wall's seconds and of the CPU's.

    The CPU's seconds are those of the judge's own process and of the stranger's. Where the system does not tell them,
    and where there is no process, the clock is the wall's.
    """

    def __init__(
        self,
        process: int | None = None,
        *,
        wall: Callable[[], float] = time.monotonic,
        own: Callable[[], float] = time.process_time,
        cpu: Callable[[int], float | None] = cpu_seconds,
    ) -> None:
        """
        Args:
            process: the stranger's; None for a clock of the wall's seconds.
            wall, own, cpu: readings in seconds: of the wall, of the CPU in this process, and in another one, with those
                of its children that have ended; None where there is no reading.
        """
        self._wall, self._own, self._cpu = wall, own, cpu
        self.of_work = process is not None and cpu(process) is not None
        self._processes = {process} if process is not None else set[int]()
        self._now = 0.0
        self._before = self._readings()

    def watch(self, processes: Iterable[int]) -> None:
        """Look at these processes from now on: the stranger's and all below it."""
        self._processes = set(processes)

    def now(self) -> float:
        """Return the time: seconds, from where on says nothing."""
        before, self._before = self._before, self._readings()
        wall, cpu = (after - earlier for after, earlier in zip(self._before, before, strict=True))
        # A process that has ended takes its seconds with it.
        self._now += max(0.0, min(wall, cpu) if self.of_work else wall)
        return self._now

    def moment(self) -> Moment:
        """Return what `left` and `past` count from."""
        return Moment(self.now(), self._wall())

    def left(self, since: Moment, limit: float) -> float:
        """Return how soon a limit may be reached, in seconds of the wall; below 0 where it was."""
        working = limit - (self.now() - since.working)
        return min(working, BACKSTOP * limit - (self._wall() - since.wall)) if self.of_work else working

    def past(self, since: Moment, limit: float, of: str) -> str:
        """Return how a limit was passed, in words; empty where it was not.

        Args:
            of: what the limit is for.
        """
        if self.now() - since.working >= limit:
            return f"it {'worked' if self.of_work else 'ran'} for {limit:g} s, the limit of {of}"
        if self.of_work and self._wall() - since.wall >= BACKSTOP * limit:
            return f"it mostly waited for {BACKSTOP * limit:g} s, {BACKSTOP} times the limit of {of}"
        return ""

    def _readings(self) -> tuple[float, float]:
        if not self.of_work:
            return self._wall(), 0.0
        theirs = (self._cpu(process) or 0.0 for process in self._processes)
        return self._wall(), self._own() + sum(theirs)
