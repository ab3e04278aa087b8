"""Two clocks beside the house's own, for kernels that the power of the card rules: a burst, and a long run.

    race = Race({"ours": k14_tuned.gemm, "library": library.cublas}, PROBLEM, workload)
    record(burst=race.burst(), long=race.sustained(("ours", "library", "library", "ours")))

*Burst*: a few launches on a card that rested, on inputs that L2 may still hold; the first of them is dropped. All are
enqueued before the first begins, so the host has no say. The clock of the card is still high, and neither memory nor
heat has one. *Sustained*: one kernel alone for seconds, on
inputs that rotate, the last second timed, with the card's clock and power. `compare` of run.py is neither: its L2 is
cold, its competitors take turns, and it is what every other page calls a time.

Everybody is checked before the first launch that counts, and asked once more, with other numbers in the same tensors,
behind the last.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import torch

from course_kernels.measure.check import Check, WrongResult, poisoned_memory
from course_kernels.measure.competitor import Competitor
from course_kernels.measure.errors import Refused
from course_kernels.measure.record_types import Quantity, Samples, Text
from course_kernels.measure.sensors import snapshot
from course_kernels.measure.summary import samples_of
from course_kernels.problem import Problem, Workload, worst_error

Call = Callable[[], Any]
Tensors = tuple[torch.Tensor, ...]

LAUNCHES = 8  # of a burst; the first is dropped
ROUNDS = 10
REST_S, BLOCK_S, TIMED_S = 0.25, 2.0, 1.0
HOLD_CYCLES = 3_000_000  # of one thread, while a burst is enqueued: long enough for a slow host
CHUNK_US = 5e3  # of launches between two marks; two such chunks stay ahead of the card
ROTATING_BYTES = 2**28  # inputs of one kernel alone: some times what L2 holds
MOST_ROTATING = 8  # sets of inputs


@dataclass
class Bursts:
    """Timings of one call.

    Attributes:
        us: microseconds of every launch that counted.
        host_us: what a launch cost the host, the least of all bursts.
    """

    us: list[float] = field(default_factory=list)
    host_us: float = float("inf")


@dataclass(frozen=True)
class Block:
    """One kernel alone: microseconds of a launch, chunk by chunk of the timed part, and the card's state at its end."""

    us: list[float]
    state: Mapping[str, Any]


# --- the clocks -----------------------------------------------------------------------------------


def bursts(calls: Mapping[str, Call], rounds: int = ROUNDS, rest_s: float = REST_S) -> dict[str, Bursts]:
    """Time calls in rounds of bursts, forth and back through them.

    Args:
        calls: by name; each enqueues its work on the current stream.
        rounds: of one burst each.
        rest_s: what the card rests before each burst, seconds.
    """
    found = {name: Bursts() for name in calls}
    for turn in range(rounds):
        for name in list(calls)[:: 1 if turn % 2 == 0 else -1]:
            call = calls[name]
            torch.cuda.synchronize()
            time.sleep(rest_s)
            marks = [torch.cuda.Event(enable_timing=True) for _ in range(LAUNCHES + 1)]
            torch.cuda._sleep(HOLD_CYCLES)  # so that no launch waits for the host; one thread heats nothing
            began = time.perf_counter()
            for mark in marks[:-1]:
                mark.record()
                call()
            host_us = (time.perf_counter() - began) * 1e6 / LAUNCHES
            marks[-1].record()
            torch.cuda.synchronize()
            found[name].us += [1e3 * x.elapsed_time(y) for x, y in pairwise(marks[1:])]
            found[name].host_us = min(found[name].host_us, host_us)
    return found


def alone(calls: Sequence[Call], about_us: float) -> Block:
    """Run calls in turn for `BLOCK_S`, and time the last `TIMED_S` of it.

    Args:
        calls: the same work on inputs of its own each.
        about_us: what a launch takes, about: so that a chunk is long against a mark.
    """
    per_chunk, number = max(1, round(CHUNK_US / max(min(about_us, CHUNK_US), 1.0))), 0

    def chunk() -> torch.cuda.Event:
        nonlocal number
        for _ in range(per_chunk):
            calls[number % len(calls)]()
            number += 1
        mark = torch.cuda.Event(enable_timing=True)
        mark.record()
        return mark

    torch.cuda.synchronize()
    began, ahead = time.perf_counter(), [chunk(), chunk()]
    timed: list[torch.cuda.Event] = []
    while time.perf_counter() - began < BLOCK_S:
        ahead.append(chunk())
        ahead.pop(0).synchronize()  # two chunks stay ahead
        if timed or time.perf_counter() - began >= BLOCK_S - TIMED_S:
            timed.append(ahead[-1])
    state = snapshot()
    torch.cuda.synchronize()
    return Block([1e3 * x.elapsed_time(y) / per_chunk for x, y in pairwise(timed)], state)


# --- checked, then timed ----------------------------------------------------------------------------


class Race:
    """Functions that compute one problem, on one workload.

    Attributes:
        workload: what is computed.
        errors: of every competitor, the worst element's over all checks.
        left_out: those of `optional` that were refused, and why, in one line each.
        host_us: what a launch of a burst cost the host, the least that was seen; microseconds.
    """

    def __init__(
        self,
        competitors: Mapping[str, Callable[..., Any]],
        problem: Problem,
        workload: Workload,
        *,
        lay: Callable[..., Tensors] = lambda *inputs: inputs,
        bind: Collection[str] = (),
        optional: Collection[str] = (),
        seed: int | None = None,
        device: str = "cuda",
    ) -> None:
        """Check all of them.

        Args:
            competitors: by name, functions of the problem's inputs.
            problem: says what is right.
            workload: what to compute.
            lay: makes of the problem's inputs those that are handed over: the same numbers, laid otherwise. It is not
                timed.
            bind: those among the names that are no such function, but make one: of inputs a call without arguments.
                The making is not timed.
            optional: those that are left out where they are refused, or cannot at all.
            seed: draws the inputs.
            device: for tests without a GPU.
        Raises:
            Refused: a competitor's answer is wrong.
        """
        self.workload, self.errors, self.left_out = workload, dict[str, float](), dict[str, str]()
        self.host_us: dict[str, float] = {}
        self._problem, self._lay, self._bind, self._device = problem, lay, frozenset(bind), device
        self._options = problem.options(workload)
        self._seed = secrets.randbits(32) if seed is None else seed
        self._draw = torch.Generator(device).manual_seed(
            self._seed + 1
        )  # the check has drawn from the seed itself
        self._us: dict[str, float] = {}
        self._functions = dict(competitors)
        for name in competitors:
            if name in optional:
                try:
                    self.errors |= self._checked((name,))
                except (Refused, RuntimeError, ValueError) as refused:
                    self.left_out[name] = str(refused).partition("\n")[0]
                    del self._functions[name]
        must = [name for name in self._functions if name not in optional]
        if must:
            self.errors |= self._checked(must)

    @property
    def names(self) -> list[str]:
        """Names of the competitors."""
        return list(self._functions)

    def burst(
        self, names: Sequence[str] = (), *, rounds: int = ROUNDS, rest_s: float = REST_S
    ) -> dict[str, Samples]:
        """Time bursts of all competitors, or of some; then judge what the same calls answer to other numbers.

        Returns:
            For every name the rate of every launch that counted, in TFLOP/s; paired by round.
        Raises:
            Refused: an answer is wrong after the timing.
        """
        names = list(names or self._functions)
        laid = self._lay(*self._inputs())
        calls = {name: self._call(name, laid) for name in names}
        found = bursts(calls, rounds, rest_s)
        inputs = self._inputs()
        for old, new in zip(laid, self._lay(*inputs), strict=True):
            old.copy_(new)
        self._judge(calls, inputs)
        group = f"g{secrets.token_hex(4)}"
        for name in names:
            self.host_us[name] = min(self.host_us.get(name, float("inf")), found[name].host_us)
            self._us[name] = sorted(found[name].us)[len(found[name].us) // 2]
        return {name: self._rates(found[name].us, group) for name in names}

    def fastest(self, names: Sequence[str]) -> str:
        """Return which of these had the shortest median in its last bursts."""
        return min(names, key=lambda name: self._us[name])

    def sustained(self, order: Sequence[str]) -> dict[str, dict[str, Samples | Quantity | Text]]:
        """Time one competitor alone after the other, each for seconds on inputs that rotate.

        Args:
            order: names, such as ours, theirs, theirs, ours: what drifts is shared out evenly. Each has had a burst.
        Returns:
            For every name `rate`, TFLOP/s of every chunk; `mhz` and `watts`, the clock of the multiprocessors and the
            power at the end of its blocks, and `why`, what kept the clock below its maximum, in words.
        Raises:
            Refused: the answer to one of the sets of inputs, drawn at random, is wrong after the timing.
            SensorsUnavailable: the card does not tell its clocks.
        """
        sets = list(self._rotating())
        laid = [self._lay(*inputs) for inputs in sets]
        calls = {name: [self._call(name, each) for each in laid] for name in dict.fromkeys(order)}
        blocks: dict[str, list[Block]] = {name: [] for name in calls}
        for name in order:
            blocks[name].append(alone(calls[name], self._us.get(name, CHUNK_US)))
        which = random.Random(self._seed).randrange(len(sets))
        self._judge({name: each[which] for name, each in calls.items()}, sets[which])
        group = f"g{secrets.token_hex(4)}"
        told: dict[str, dict[str, Samples | Quantity | Text]] = {}
        for name, own in blocks.items():
            reasons = dict.fromkeys(reason for block in own for reason in block.state["throttle"])
            told[name] = {
                "rate": self._rates([us for block in own for us in block.us], group),
                "mhz": _told(own, "sm_mhz", "MHz", group),
                "watts": _told(own, "power_w", "W", group),
                "why": Text(", ".join(reasons) or "nothing"),
            }
        return told

    # --- small things -----------------------------------------------------------------------------

    def _checked(self, names: Sequence[str]) -> dict[str, float]:
        field = {name: Competitor(name, self._problem, self._answer(name)) for name in names}
        return Check(field, self.workload, self._seed, self._device).before()

    def _answer(self, name: str) -> Callable[..., Any]:
        """Answer the problem's own inputs: the function that the check calls."""
        return lambda *inputs, **_: self._call(name, self._lay(*inputs))()

    def _call(self, name: str, laid: Tensors) -> Call:
        function = partial(self._functions[name], *laid, **self._options)
        return function() if name in self._bind else function

    def _inputs(self) -> Tensors:
        made: Tensors = self._problem.make_inputs(self.workload, self._draw, self._device)
        return made

    def _rotating(self) -> Iterator[Tensors]:
        """Make sets of inputs that L2 does not hold together; two at least."""
        count = ROTATING_BYTES // max(self._problem.reads_bytes(self.workload), 1)
        for _ in range(max(2, min(MOST_ROTATING, count))):
            yield self._inputs()

    def _judge(self, calls: Mapping[str, Call], inputs: Tensors) -> None:
        """Check what the timed calls answer now, to these numbers."""
        truth, allowed = (
            self._problem.reference(*inputs, **self._options),
            self._problem.max_error(self.workload),
        )
        for name, call in calls.items():
            with poisoned_memory():
                error = worst_error(call(), truth)
            if not error <= allowed:
                raise WrongResult(
                    f"{name} on {self.workload.label}: right before the timing, wrong after it: error {error:.1e}, "
                    f"allowed {allowed:.1e}; seed {self._seed}"
                )
            self.errors[name] = max(self.errors.get(name, 0.0), error)

    def _rates(self, us: Sequence[float], group: str) -> Samples:
        flops = self._problem.flops(self.workload)
        of = f"tensor:{self._problem.math(self.workload)}"
        return samples_of([flops / each / 1e6 for each in us], "TFLOP/s", "device", group, of)


def _told(blocks: Sequence[Block], key: str, unit: str, group: str) -> Samples | Quantity:
    """Return what the card told at the end of every block; 0 where it does not tell."""
    values = [block.state[key] for block in blocks if block.state.get(key) is not None]
    return samples_of(values, unit, "device", group) if values else Quantity(0.0, unit, "device")
