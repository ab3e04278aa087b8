"""How long does it take? Samples of several competitors, taken in rounds on the same card in the same state.

Before every sample the L2 cache is emptied of what the competitor will touch. The samples are differences of
two CUDA events, recorded behind enough work that the host is done before the first event is reached: a pair of
events then times the GPU, never Python. Every round runs each competitor once, in rotated order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from course_kernels.measure.sensors import snapshot

WARM_UP_S = 0.3  # a card at rest needs a few tenths of a second to bring its clocks up
MIN_ROUNDS = 10
MAX_ROUNDS = 1000

# The buffer that empties the cache, in units of the L2 cache. Twice would do if the cache forgot the oldest line first.
CACHES = 4

# Passes over that buffer ahead of one sample: past this many, the call keeps the host busy or waits for the GPU itself.
MAX_PASSES = 256

# A sample whose first event was reached before the host was done timed the host; it is taken again, so often.
RETAKES = 3

# Wall time a group may take, in units of the sampled time asked for: very short kernels wait mostly for the cache.
WALL_PER_SAMPLED = 5.0


@dataclass(frozen=True)
class Timing:
    """All samples of a group.

    Attributes:
        samples_us: for every competitor one sample a round, microseconds.
        before, after: state of the card around the rounds, as `sensors.snapshot`.
    """

    samples_us: Mapping[str, np.ndarray]
    before: Mapping[str, Any]
    after: Mapping[str, Any]


class Timer(Protocol):
    """Anything that can time calls in rounds; tests bring their own."""

    def time(self, calls: Mapping[str, Callable[[], Any]], seconds: float) -> Timing:
        """Samples of every call."""


class Clock:
    """Times calls on torch's current device and stream."""

    def __init__(self) -> None:
        import torch

        self._torch = torch
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        self._l2_bytes = max(int(properties.L2_cache_size), 2**20)
        self._buffer = torch.ones(CACHES * self._l2_bytes // 4, dtype=torch.float32, device="cuda")
        self._sum = torch.empty((), dtype=torch.float32, device="cuda")

    def time(self, calls: Mapping[str, Callable[[], Any]], seconds: float = 1.0) -> Timing:
        """Warm up, then sample in rounds.

        Args:
            calls: by name; each enqueues its work on the current stream, and its result is dropped at once.
            seconds: time to sample, for each competitor on average. At least 10 and at most 1000 rounds.
        Returns:
            The samples of every round, in order.
        """
        names = list(calls)
        passes = {name: self._warm_up(calls[name]) for name in names}
        self._torch.cuda.synchronize()
        before = snapshot()
        rounds: list[dict[str, float]] = []
        started = time.perf_counter()
        while not enough(rounds, time.perf_counter() - started, seconds):
            first = len(rounds) % len(names)
            order = names[first:] + names[:first]
            events = {name: self._sample(calls[name], passes[name]) for name in order}
            self._torch.cuda.synchronize()
            rounds.append({name: start.elapsed_time(end) * 1e3 for name, (start, end) in events.items()})
        after = snapshot()
        return Timing({name: np.array([r[name] for r in rounds]) for name in names}, before, after)

    def _sample(self, call: Callable[[], Any], passes: int | None) -> tuple[Any, Any]:
        if passes is None:
            return self._enqueue(call, 1)[0]
        for _ in range(1 + RETAKES):
            events, host_was_ahead = self._enqueue(call, passes)
            if host_was_ahead:
                break
        return events

    def _warm_up(self, call: Callable[[], Any]) -> int | None:
        """Run a call until the card is warm.

        Returns:
            The passes over the buffer that its samples need ahead of them; None where no number is enough,
            because the call keeps the host busy or waits for the GPU: its time is then the caller's time.
        """
        passes: int | None = 1
        calls = 0
        started = time.perf_counter()
        while calls < 3 or time.perf_counter() - started < WARM_UP_S:
            _, host_was_ahead = self._enqueue(call, passes or 1)
            self._torch.cuda.synchronize()
            calls += 1
            # The very first call may still load something; from then on, being late means too little work ahead.
            if calls > 1 and not host_was_ahead and passes is not None:
                passes = 2 * passes if 2 * passes <= MAX_PASSES else None
        # Twice what was needed: a host that is a little slower in one round must not show.
        return None if passes is None else 2 * passes

    def _enqueue(self, call: Callable[[], Any], passes: int) -> tuple[tuple[Any, Any], bool]:
        """One sample: its two events, and whether the host was done before the GPU reached the first."""
        start = self._torch.cuda.Event(enable_timing=True)
        end = self._torch.cuda.Event(enable_timing=True)
        for _ in range(passes):
            # Read, not written: dirty lines would be written back while the competitor runs, at its cost.
            self._torch.sum(self._buffer, dim=0, out=self._sum)
        start.record()
        result = call()
        end.record()
        host_was_ahead = not start.query()
        del result
        return (start, end), host_was_ahead


def enough(rounds: list[dict[str, float]], wall_s: float, seconds: float) -> bool:
    """Whether a group has samples enough.

    Args:
        rounds: samples so far, microseconds by competitor.
        wall_s: seconds since the first round began.
        seconds: time to sample, for each competitor on average.
    """
    if len(rounds) < MIN_ROUNDS:
        return False
    competitors = len(rounds[0])
    sampled_s = sum(sum(r.values()) for r in rounds) / 1e6
    return (
        len(rounds) >= MAX_ROUNDS
        or sampled_s >= seconds * competitors
        or wall_s >= seconds * competitors * WALL_PER_SAMPLED
    )
