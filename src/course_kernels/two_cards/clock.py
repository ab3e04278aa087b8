"""Times of work that two cards do together, as each of them sees it.

The two cards begin together: a barrier lies on their streams right before the first mark, behind enough other work that
the host has asked for everything by then. What the host must wait for in the middle is then in the time, as it is for
whoever calls. A round is as long as the slower card's, which together.py works out.
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist

CACHES = 4  # the buffer that empties the L2 cache, in units of that cache
# Passes over that buffer ahead of each sample, which last until the host has asked for all of the call. At least and at
# most so many; in between, half as long again as the host took to ask for it when the card had nothing else to do.
LEAST, MOST, SPARE = 32, 256, 1.5
WARM_UP_S = 0.3
STAGES = ("dispatch", "multiply", "combine")

Call = Callable[[Callable[[str], None]], Any]


def passes_for(host_s: float, pass_s: float, asked_s: float) -> int:
    """Return how many passes keep a card busy until the host has asked for a call.

    Args:
        host_s: what the host takes to ask for the call.
        pass_s, asked_s: what a pass takes on the card, and what the host takes to ask for it.
    """
    ahead_s = pass_s - asked_s  # that the card falls behind with every pass
    if ahead_s * MOST <= SPARE * host_s:
        return MOST
    return max(LEAST, math.ceil(SPARE * host_s / ahead_s))


class HostEvent:
    """An event of the host's clock, which stands in for a card's."""

    def record(self) -> None:
        """Take the time."""
        self._at = time.perf_counter()

    def elapsed_time(self, later: HostEvent) -> float:
        """Milliseconds from this event to a later one."""
        return 1e3 * (later._at - self._at)


class Clock:
    """Samples of one card.

    Args:
        card: of this process, whose GPU is the current one.
        device: "cuda"; with "cpu" the host's clock stands in, so that a race can be tried without a card.
    """

    def __init__(self, card: int, device: str = "cuda") -> None:
        self._card, self._device = card, device
        l2_bytes = torch.cuda.get_device_properties(card).L2_cache_size if device == "cuda" else 2**16
        self._buffer = torch.ones(CACHES * l2_bytes // 4, dtype=torch.float32, device=device)
        self._sum = torch.empty((), dtype=torch.float32, device=device)
        self._together = torch.ones(1, device=device)
        self._taken: dict[str, list[list[float]]] = {}

    def rounds(self, calls: Mapping[str, Call], rounds: int, *, seed: int) -> dict[str, Any]:
        """Take a sample of every call in every round, in an order that is drawn anew and is the same on both cards.

        Args:
            calls: by name; each is handed the function that marks the end of a stage.
            rounds: how many.
            seed: draws the orders.
        Returns:
            What each call's last sample returned.
        """
        draw = random.Random(seed)
        names = sorted(calls)
        self._warm_up()
        passes = {name: self._passes(calls[name]) for name in names}
        last = {}
        for _ in range(rounds):
            for name in draw.sample(names, len(names)):
                marks, last[name] = self._sample(calls[name], passes[name])
                self._synchronize()
                spans = [1e3 * a.elapsed_time(b) for a, b in itertools.pairwise(marks)]
                self._taken.setdefault(name, []).append(spans)
        return last

    def taken(self) -> dict[str, Any]:
        """Hand over the samples of all rounds, and begin anew: "us" by name, and "stages_us" where there were marks."""
        taken, self._taken = self._taken, {}
        return {
            "us": {name: [sum(spans) for spans in samples] for name, samples in taken.items()},
            "stages_us": {
                name: dict(zip(STAGES, map(list, zip(*samples, strict=True)), strict=True))
                for name, samples in taken.items()
                if len(samples[0]) == len(STAGES)
            },
        }

    def _passes(self, call: Call) -> int:
        """Time the host while it asks; the slower of the two hosts decides for both."""

        def asked_s() -> float:
            self._synchronize()
            dist.barrier()  # a call that waits for the other card waits no longer than it must
            started = time.perf_counter()
            call(lambda stage: None)
            return time.perf_counter() - started

        host_s = statistics.median(asked_s() for _ in range(3))
        self._synchronize()
        marks = [self._event() for _ in range(2)]
        started = time.perf_counter()
        marks[0].record()
        self._pass_over(LEAST)
        marks[1].record()
        pass_asked_s = (time.perf_counter() - started) / LEAST
        self._synchronize()
        pass_s = 1e-3 * marks[0].elapsed_time(marks[1]) / LEAST
        most = torch.tensor([passes_for(host_s, pass_s, pass_asked_s)], device=self._device)
        dist.all_reduce(most, op=dist.ReduceOp.MAX)
        return int(most)

    def _pass_over(self, passes: int) -> None:
        for _ in range(passes):  # read, not written: dirty lines would be written back at the call's cost
            torch.sum(self._buffer, dim=0, out=self._sum)

    def _sample(self, call: Call, passes: int) -> tuple[list[Any], Any]:
        self._pass_over(passes)
        dist.all_reduce(self._together, op=dist.ReduceOp.MAX)
        marks: list[Any] = []

        def mark(stage: str = "") -> None:
            event = self._event()
            event.record()
            marks.append(event)

        mark()
        result = call(mark)
        mark()
        return marks, result

    def _event(self) -> Any:
        return torch.cuda.Event(enable_timing=True) if self._device == "cuda" else HostEvent()

    def _synchronize(self) -> None:
        if self._device == "cuda":
            torch.cuda.synchronize()

    def _warm_up(self) -> None:
        started = time.perf_counter()
        while time.perf_counter() - started < WARM_UP_S:
            self._pass_over(1)
            self._synchronize()
        dist.barrier()
