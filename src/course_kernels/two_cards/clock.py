"""Times of work that two cards do together, as each of them sees it.

The two cards begin together: a barrier lies on their streams right before the first mark, behind enough other work that
the host has asked for everything by then. What the host must wait for in the middle is then in the time, as it is for
whoever calls. A round is as long as the slower card's, which together.py works out.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist

CACHES = 4  # the buffer that empties the L2 cache, in units of that cache
PASSES = 32  # over that buffer ahead of each sample: longer than the host takes to ask for the slowest way
WARM_UP_S = 0.3
STAGES = ("dispatch", "multiply", "combine")

Call = Callable[[Callable[[str], None]], Any]


class Clock:
    """Samples of one card.

    Args:
        card: of this process, whose GPU is the current one.
    """

    def __init__(self, card: int) -> None:
        self._card = card
        l2_bytes = torch.cuda.get_device_properties(card).L2_cache_size
        self._buffer = torch.ones(CACHES * l2_bytes // 4, dtype=torch.float32, device="cuda")
        self._sum = torch.empty((), dtype=torch.float32, device="cuda")
        self._together = torch.ones(1, device="cuda")
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
        last = {}
        for _ in range(rounds):
            for name in draw.sample(names, len(names)):
                marks, last[name] = self._sample(calls[name])
                torch.cuda.synchronize()
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

    def _sample(self, call: Call) -> tuple[list[Any], Any]:
        for _ in range(PASSES):  # read, not written: dirty lines would be written back at the call's cost
            torch.sum(self._buffer, dim=0, out=self._sum)
        dist.all_reduce(self._together, op=dist.ReduceOp.MAX)
        marks: list[Any] = []

        def mark(stage: str = "") -> None:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            marks.append(event)

        mark()
        result = call(mark)
        mark()
        return marks, result

    def _warm_up(self) -> None:
        started = time.perf_counter()
        while time.perf_counter() - started < WARM_UP_S:
            torch.sum(self._buffer, dim=0, out=self._sum)
            torch.cuda.synchronize()
        dist.barrier()
