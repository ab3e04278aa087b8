"""The calls a page makes to measure: measure, compare, refusal."""

from __future__ import annotations

import random
import secrets
from collections.abc import Mapping
from functools import partial
from typing import Any

import torch

from course_kernels.measure.check import Check
from course_kernels.measure.clock import Call, Clock, Timer
from course_kernels.measure.competitor import Competitor, competitor_of
from course_kernels.measure.errors import Refused
from course_kernels.measure.machine import Machine, machine_for
from course_kernels.measure.record_types import Measurement
from course_kernels.measure.roofline import check_floor
from course_kernels.measure.summary import measurement_of
from course_kernels.problem import Workload

MIB = 2**20


def measure(
    competitor: Any,
    workload: Workload,
    *,
    seconds: float = 1.0,
    seed: int | None = None,
    device: str = "cuda",
    timer: Timer | None = None,
    machine: Machine | None = None,
) -> Measurement:
    """Check one competitor on one workload, time it, and check its last answer again.

    Args:
        competitor: a kernel module, a function of a problem folder, or a `Competitor`.
        workload: what to compute.
        seconds: time to sample; at least 12 and at most 1000 samples are taken.
        seed: draws inputs, order and addresses; drawn itself where it is not given, and told by the result.
        device, timer, machine: for tests without a GPU.
    Raises:
        Refused: the answer is wrong, before or after the timing (`WrongResult`), or faster than the floor
            (`FasterThanFloor`).
        SensorsUnavailable: the card's clocks cannot be read.
    """
    field = {"it": competitor}
    return compare(field, workload, seconds=seconds, seed=seed, device=device, timer=timer, machine=machine)[
        "it"
    ]


def compare(
    competitors: Mapping[str, Any],
    workload: Workload,
    *,
    seconds: float = 1.0,
    seed: int | None = None,
    device: str = "cuda",
    timer: Timer | None = None,
    machine: Machine | None = None,
) -> dict[str, Measurement]:
    """Check every competitor on the workload, time all of them in rounds on the same inputs, and check again.

    Args:
        competitors: by the names the results get; as in `measure`.
        workload: what to compute.
        seconds: time to sample, for each competitor on average.
        seed: as in `measure`.
        device, timer, machine: for tests without a GPU.
    Returns:
        A measurement for every name; they share a group, and they are paired by block.
    Raises:
        As `measure`; ValueError where the competitors are not of one problem.
    """
    field: dict[str, Competitor] = {name: competitor_of(thing) for name, thing in competitors.items()}
    if device == "cuda" and not torch.cuda.is_available():
        raise RuntimeError("no GPU: torch cannot use CUDA on this machine; run this where a GPU is")
    seed = secrets.randbits(32) if seed is None else seed
    check = Check(field, workload, seed, device)
    errors = check.before()
    if device == "cuda":
        torch.cuda.empty_cache()  # the check's stream has a pool of its own, which nothing else can use
        machine = machine or machine_for(torch.cuda.get_device_name())
    race = _Race(field, check, seed, device)
    with torch.no_grad():
        timing = (timer or Clock()).time(race, seconds, seed=seed)
    group = f"g{secrets.token_hex(4)}"
    results = {}
    for name, competitor in field.items():
        sampled = timing.sampled[name]
        results[name] = measurement_of(
            competitor.kernel,
            workload,
            check.problem,
            sampled.us,
            group=group,
            error=max(errors[name], race.errors[name]),
            blocks=sampled.block,
            rounds=timing.rounds,
            every=sampled.every,
            seed=seed,
            host_us=sampled.host_us,
            host_bound=sampled.host_bound,
            running=sampled.running,
        )
        check_floor(
            f"{competitor.kernel} on {workload.label}", results[name].median_us, results[name], machine
        )
    return results


class _Race:
    """The competitors as the clock sees them: in every block on inputs made anew, somewhere else in memory.

    Attributes:
        inputs: those of the latest block.
        errors: of what the last timed call of each returned.
    """

    def __init__(self, field: Mapping[str, Competitor], check: Check, seed: int, device: str) -> None:
        self.inputs: tuple[torch.Tensor, ...] = ()
        self.errors: Mapping[str, float] = {}
        self._last: dict[str, Any] = {}
        self._field, self._check, self._device = field, check, device
        self._draw = random.Random(f"addresses {seed}")
        self._spacers: list[torch.Tensor] = []

    def block(self, number: int) -> dict[str, Call]:
        made = self._make()
        if made is None:  # no room for both: the old ones go first
            self.inputs, self._spacers = (), []
            torch.cuda.empty_cache()
            made = self._make(again=True)
        self.inputs, options, self._spacers = made
        if self._device == "cuda":
            torch.cuda.empty_cache()  # what the outputs of the block before lay in: the next ones lie elsewhere
        return {name: partial(c.function, *self.inputs, **options) for name, c in self._field.items()}

    def _make(self, again: bool = False) -> Any:
        """Make new inputs, their options and the spacers; None where memory does not suffice for the first time.

        The old inputs and spacers are still there, so the new ones cannot lie where they lie.
        """
        try:
            spacers = self._space()
            inputs, options = self._check.fresh_inputs()
        except torch.OutOfMemoryError:
            if again:
                raise
            return None
        return inputs, options, spacers

    def refill(self) -> None:
        self._check.refill(self.inputs)

    def keep(self, name: str, result: Any) -> None:
        self._last[name] = result

    def judge(self) -> None:
        self.errors = self._check.after(self._last, self.inputs)
        self._last = {}

    def _space(self) -> list[torch.Tensor]:
        """Memory of random sizes, held through a block: one for each of the pools of PyTorch's allocator."""
        sizes = (
            512 * self._draw.randint(1, 1024),  # blocks below 1 MiB share segments of 2 MiB
            512 * self._draw.randint(2 * 1024 + 1, 18 * 1024),  # below 10 MiB, of 20 MiB
            2 * MIB * self._draw.randint(6, 32),  # from there on each has its own
        )
        return [torch.empty(size, dtype=torch.uint8, device=self._device) for size in sizes]


def refusal(competitor: Any, workload: Workload, **how: Any) -> str:
    """Return the line with which `measure` refuses a competitor that it must refuse.

    Args:
        competitor, workload, how: as in `measure`.
    Raises:
        AssertionError: it was measured without objection; then the check itself is broken.
    """
    try:
        measure(competitor, workload, **{"seconds": 0.05, **how})
    except Refused as refused:
        return str(refused)
    raise AssertionError(f"{competitor_of(competitor).kernel} was measured without objection")
