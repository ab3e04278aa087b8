"""Samples of several competitors' times, taken in rounds on the same card in the same state.

Before every sample the L2 cache is emptied of what the competitor will touch. The samples are differences of
two CUDA events, recorded behind enough work that the host is done before the first event is reached: a pair of
events then times the GPU, never Python. Every round runs its competitors in an order drawn anew. Rounds come in
blocks; at the head of each the inputs are made anew, elsewhere in memory. What differs between blocks is what a
reader's own run may differ by; what differs within one is noise.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from course_kernels.measure.sensors import snapshot

BLOCKS = 6
MIN_ROUNDS = 2 * BLOCKS  # the first and the last of a block; every competitor takes part in both
MAX_ROUNDS = 1000

WARM_UP_S = 0.3  # a card at rest needs a while to bring its clocks up

# At the head of a later block the card is warm; only what a library sets up for new addresses must not be timed.
SETTLE_US = 20_000.0
SETTLE_CALLS = 3

# The buffer that empties the cache, in units of the L2 cache. Twice would do if the cache forgot the oldest line first.
CACHES = 4

# Passes over that buffer ahead of one sample: past this many, the call keeps the host busy or waits for the GPU itself.
MAX_PASSES = 256

# A sample whose first event was reached before the host was done timed the host; it is taken again, so often.
RETAKES = 3

# Where the call must first ask the driver for memory, the host is later than usual: so many passes go ahead at least.
FRESH_PASSES = 32

# Wall time a group may take, in units of the sampled time asked for: very short kernels wait mostly for the cache.
WALL_PER_SAMPLED = 5.0

# A competitor that takes longer than this many times the field's median gives way to the quick ones.
SLOW = 4.0
MAX_EVERY = 50

# The card renews what it tells of clocks and power about ten times a second, and the power is a mean over that time:
# a reading speaks of one competitor only after that one alone has run for longer. So once in a race each runs back to
# back for so long, its results dropped, and is read at the end of it, with two chunks still ahead. That heats the card
# as no round does, so it comes when all samples are taken.
BURST_S = 0.22
CHUNK_US = 4000.0
CHUNK_CALLS = 256

Call = Callable[[], Any]


class Race(Protocol):
    """A race: the competitors' calls, and the check of their answers."""

    def block(self, number: int) -> Mapping[str, Call]:
        """Make the calls of a block, by name, on inputs of its own. Each enqueues its work on the current stream.

        The clock holds no call of the block before while it asks.
        """

    def refill(self) -> None:
        """Fill the inputs of this block with other values, in place: once, ahead of a round drawn at random."""

    def keep(self, name: str, result: Any) -> None:
        """Keep what a competitor's last timed call returned; a call that came after the refill."""

    def judge(self) -> None:
        """Judge the answers once all is timed and kept. Calls come after this, for the card's state alone.

        They could mend what was kept.
        """


@dataclass(frozen=True)
class Sampled:
    """All samples of one competitor, in the order they were taken.

    Attributes:
        us: microseconds.
        host_us: what each of those calls cost the host, microseconds.
        block, round: where each was taken; rounds are counted through all blocks.
        host_bound: how many timed the host.
        every: it took part in every `every`-th round after the first block.
        running: the state of the card while it ran back to back, as `sensors.snapshot`; those runs are no samples.
    """

    us: np.ndarray
    host_us: np.ndarray
    block: np.ndarray
    round: np.ndarray
    host_bound: int = 0
    every: int = 1
    running: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Timing:
    """All samples of a group, by competitor, and how many rounds there were."""

    sampled: Mapping[str, Sampled]
    rounds: int

    @property
    def samples_us(self) -> dict[str, np.ndarray]:
        """The samples alone, microseconds."""
        return {name: sampled.us for name, sampled in self.sampled.items()}


class Timer(Protocol):
    """Anything that can time a race; tests bring their own."""

    def time(self, race: Race, seconds: float, *, seed: int) -> Timing:
        """Take samples of every competitor; `race.keep` gets a last result of each, then `race.judge` is called."""


class Clock:
    """Times calls on torch's current device and stream."""

    def __init__(self) -> None:
        import torch

        self._torch = torch
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        self._l2_bytes = max(int(properties.L2_cache_size), 2**20)
        self._buffer = torch.ones(CACHES * self._l2_bytes // 4, dtype=torch.float32, device="cuda")
        self._sum = torch.empty((), dtype=torch.float32, device="cuda")

    def time(self, race: Race | Mapping[str, Call], seconds: float = 1.0, *, seed: int = 0) -> Timing:
        """Warm up, then sample in blocks of rounds.

        Args:
            race: what is timed; or calls by name, which then serve in every block as they are.
            seconds: time to sample, for each competitor on average. At least 12 and at most 1000 rounds.
            seed: draws the order of every round, and the round of the refill.
        Returns:
            The samples of every competitor, in order. Results are dropped at once, but for the last.
        Raises:
            SensorsUnavailable: the card does not tell its clocks.
        """
        return _Sitting(self, _Unchanging(race) if isinstance(race, Mapping) else race, seconds, seed).run()

    def synchronize(self) -> None:
        """Wait for the card."""
        self._torch.cuda.synchronize()

    def mark(self) -> Any:
        """Return a mark in the card's queue.

        `query`, `synchronize`, and `elapsed_time` to a later one, in milliseconds.
        """
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def sample(self, call: Call, passes: int) -> _Sample:
        """Enqueue one sample behind so many passes over the buffer that empties the cache."""
        start = self._torch.cuda.Event(enable_timing=True)
        end = self._torch.cuda.Event(enable_timing=True)
        for _ in range(passes):
            # Read, not written: dirty lines would be written back while the competitor runs, at its cost.
            self._torch.sum(self._buffer, dim=0, out=self._sum)
        start.record()
        began = time.perf_counter()
        result = call()
        host_us = (time.perf_counter() - began) * 1e6
        end.record()
        return _Sample(start, end, host_us, not start.query(), result)


@dataclass
class _Sample:
    """A sample in the queue: its two marks, the host's share, and whether the host was done ahead of the first."""

    start: Any
    end: Any
    host_us: float
    host_was_ahead: bool
    result: Any

    @property
    def us(self) -> float:
        return float(self.start.elapsed_time(self.end) * 1e3)


@dataclass
class _Track:
    """State of one competitor so far.

    `passes` over the buffer go ahead of its samples; None where no number is enough, because the call keeps the host
    busy or waits for the GPU itself: its time is then the caller's time. `rough_us` is good enough to plan with.
    """

    passes: int | None = 1
    rough_us: float = 0.0
    every: int = 1
    fresh: bool = False  # its next call is the first one on new inputs
    us: list[float] = field(default_factory=list)
    host_us: list[float] = field(default_factory=list)
    block: list[int] = field(default_factory=list)
    round: list[int] = field(default_factory=list)
    host_bound: int = 0
    running: list[Mapping[str, Any]] = field(default_factory=list)

    def sampled(self) -> Sampled:
        us, host_us = np.array(self.us), np.array(self.host_us)
        block, turn = np.array(self.block), np.array(self.round)
        return Sampled(us, host_us, block, turn, self.host_bound, self.every, tuple(self.running))


class _Sitting:
    """One run of the clock over one race."""

    def __init__(self, clock: Clock, race: Race, seconds: float, seed: int) -> None:
        self.clock, self.race, self.seconds = clock, race, seconds
        self.draw = random.Random(seed)
        self.calls: Mapping[str, Call] = {}
        self.tracks: dict[str, _Track] = {}
        self.rounds = 0
        self.sampled_us = self.wall_s = 0.0

    def run(self) -> Timing:
        snapshot()  # a card that does not tell its clocks is not timed
        for block in range(BLOCKS):
            self.calls = {}  # lets go of the old inputs, so that the race may
            self.calls = self.race.block(block)
            if block == 0:
                self._warm_up()
            else:
                self._settle()
            self._block(block)
            if block == 0:
                medians = {name: statistics.median(track.us) for name, track in self.tracks.items()}
                for name, every in every_of(medians).items():
                    self.tracks[name].every = every
                    self.tracks[name].rough_us = medians[name]
        self.race.judge()
        for name, call in self.calls.items():
            self.tracks[name].running.append(self._burst(call, self.tracks[name]))
        return Timing({name: track.sampled() for name, track in self.tracks.items()}, self.rounds)

    def _block(self, block: int) -> None:
        last = block == BLOCKS - 1
        # Never ahead of the first round: who looks at its inputs once must have looked.
        refill_at = (block + self.draw.random()) / BLOCKS if last else None
        self._round(list(self.calls), block)
        turn = 1
        while self._spent() < (block + 1) / BLOCKS:
            if refill_at is not None and self._spent() >= refill_at:
                self.race.refill()
                refill_at = None
            self._round([name for name in self.calls if turn % self.tracks[name].every == 0], block)
            turn += 1
        if refill_at is not None:
            self.race.refill()
        # All take part, however slow. In the last block nothing is timed after it: what it returned will be judged.
        self._round(list(self.calls), block, keep=last)

    def _spent(self) -> float:
        """Return which part of the group's time the rounds so far and the one that closes the block take."""
        total_us = max(self.seconds * 1e6 * len(self.calls), 1.0)
        used = max(self.sampled_us / total_us, self.wall_s * 1e6 / (total_us * WALL_PER_SAMPLED))
        return max((self.rounds + 1) / MAX_ROUNDS, used * (self.rounds + 1) / self.rounds)

    def _round(self, names: list[str], block: int, keep: bool = False) -> None:
        self.draw.shuffle(names)
        began = time.perf_counter()
        samples = {name: self._sample(name, keep) for name in names}
        self.clock.synchronize()
        for name, sample in samples.items():
            track = self.tracks[name]
            track.us.append(sample.us)
            track.host_us.append(sample.host_us)
            track.block.append(block)
            track.round.append(self.rounds)
            track.host_bound += not sample.host_was_ahead
            self.sampled_us += track.us[-1]
        self.rounds += 1
        self.wall_s += time.perf_counter() - began

    def _sample(self, name: str, keep: bool) -> _Sample:
        call, track = self.calls[name], self.tracks[name]
        takes = 1 if track.passes is None else 1 + RETAKES
        passes = track.passes or 1
        if track.fresh or keep:  # results that are kept leave no memory to the next
            passes, track.fresh = max(passes, FRESH_PASSES), False
        while True:
            takes -= 1
            sample = self.clock.sample(call, passes)
            done = sample.host_was_ahead or not takes
            if keep and done:
                self.race.keep(name, sample.result)
            sample.result = None  # its memory is handed out again at the next call
            if done:
                break
        return sample

    def _burst(self, call: Call, track: _Track) -> dict[str, Any]:
        """Return the state of the card at the end of a run back to back."""
        each_us = max(track.rough_us, statistics.median(track.host_us), CHUNK_US / CHUNK_CALLS)
        calls = math.ceil(CHUNK_US / each_us)
        began = time.perf_counter()
        marks: list[Any] = []
        while time.perf_counter() - began < BURST_S or len(marks) < 2:
            marks.append(self._chunk(call, calls))
            if len(marks) > 2:
                # Two chunks stay ahead: the card never waits, and its queue never fills.
                marks.pop(0).synchronize()
        state = snapshot()
        self.clock.synchronize()
        return state

    def _chunk(self, call: Call, calls: int) -> Any:
        for _ in range(calls):
            call()
        return self.clock.mark()

    def _warm_up(self) -> None:
        """Run every call until the card is warm, and find the passes that its samples need ahead of them."""
        self.tracks = {name: _Track() for name in self.calls}
        began = time.perf_counter()
        for name in self.calls:
            self._try(name, count=False)  # the very first call may still load something
            ahead = 0
            while ahead < 2 and self.tracks[name].passes is not None:
                ahead += self._try(name)
        while time.perf_counter() - began < WARM_UP_S:
            for name in self.calls:
                self._try(name)
        for track in self.tracks.values():
            # With as much again to spare: a host that is a little slower in one round must not show.
            track.passes = None if track.passes is None else 2 * track.passes

    def _try(self, name: str, count: bool = True) -> bool:
        """Return a call that is not sampled; whether the host was ahead of it.

        If not, the next one gets twice the passes.
        """
        track = self.tracks[name]
        sample = self.clock.sample(self.calls[name], track.passes or 1)
        sample.result = None
        self.clock.synchronize()
        track.rough_us = sample.us
        if count and not sample.host_was_ahead and track.passes is not None:
            track.passes = 2 * track.passes if 2 * track.passes <= MAX_PASSES else None
        return sample.host_was_ahead

    def _settle(self) -> None:
        """Make a few calls on new inputs; none of what takes long."""
        for name, call in self.calls.items():
            calls = min(SETTLE_CALLS, int(SETTLE_US / max(self.tracks[name].rough_us, 1.0)))
            for _ in range(calls):
                call()
            self.tracks[name].fresh = not calls
        self.clock.synchronize()


class _Unchanging:
    """Calls that stay as they are."""

    def __init__(self, calls: Mapping[str, Call]) -> None:
        self.calls = calls

    def block(self, number: int) -> Mapping[str, Call]:
        return self.calls

    def refill(self) -> None:
        pass

    def keep(self, name: str, result: Any) -> None:
        pass

    def judge(self) -> None:
        pass


def every_of(medians_us: Mapping[str, float]) -> dict[str, int]:
    """Return in every how many rounds each competitor takes part.

    1, and more for one that is far slower than the field.
    """
    middle = statistics.median_low(medians_us.values())
    return {
        name: min(MAX_EVERY, max(1, int(us / (SLOW * max(middle, 1e-3))))) for name, us in medians_us.items()
    }
