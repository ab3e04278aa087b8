"""Readings that are no time of a checked kernel: the host's own clock, and what a microbenchmark read off the card.

The clock of `clock.py` times the GPU and hides the host on purpose. What the host waits for, a launch, a copy over
the bus, a compilation, is timed here.
"""

from __future__ import annotations

import dataclasses
import random
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from course_kernels.measure.record_types import HOW, Samples
from course_kernels.measure.summary import samples_of


def samples(
    readings: Sequence[float],
    unit: str = "cycles",
    how: str = "counted",
    *,
    of: str = "",
    sm_mhz: float | None = None,
) -> Samples:
    """Several readings of one number, for `record`; their median is the value.

    Args:
        readings: finite numbers, at least one.
        unit: unit of each, such as "cycles", "B/clk" or "µs".
        how: how they came about: "counted" by the card, "timed" by the host, "computed" …
        of: of a rate, which limit of `gate.py` holds for it: "hbm", "l2", "tensor:bf16" …
        sm_mhz: the clock of the multiprocessors in the same launches, where a rate needs it.
    Raises:
        TypeError, ValueError: no readings, one that is no finite number, or an unknown `how`.
    """
    values = np.asarray(readings, dtype=float)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"samples: expected a list of at least one number, got {readings!r}")
    if not np.isfinite(values).all():
        raise ValueError(f"samples: expected finite numbers, got {values[~np.isfinite(values)][0]}")
    if how not in HOW:
        raise ValueError(f"samples: expected how to be one of {', '.join(HOW)}, got {how!r}")
    taken = samples_of(values, unit, how, f"g{secrets.token_hex(4)}", of)
    return dataclasses.replace(taken, sm_mhz=None if sm_mhz is None else float(sm_mhz))


def stopwatch(
    works: Mapping[str, Callable[[], Any]], *, n: int = 30, per: int = 1, wait: bool = True, warm_up: int = 2
) -> dict[str, Samples]:
    """Time several pieces of work by the host's clock, in turns.

    Args:
        works: by name; each is called without arguments and its result dropped.
        n: rounds; every round runs each piece once, in an order drawn anew.
        per: how many repetitions one call does inside; a reading is the time of one of them.
        wait: whether a reading lasts until the GPU is done. Without it, it is the host's time alone, and the GPU is
            waited for between two readings.
        warm_up: calls of each piece before the first reading; 0 to time a first call.
    Returns:
        For every name its readings in microseconds; they share a group, paired by round.
    Raises:
        ValueError: no work, or n or per below 1.
    """
    if not works or n < 1 or per < 1:
        raise ValueError(f"stopwatch: expected work, n and per at least 1, got {len(works)}, {n}, {per}")
    finish = _finisher()
    names = list(works)
    for name in names:
        for _ in range(warm_up):
            works[name]()
    readings: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(n):
        for name in random.sample(names, len(names)):
            finish()
            started = time.perf_counter_ns()
            result = works[name]()
            if wait:
                finish()
            readings[name].append((time.perf_counter_ns() - started) / 1e3 / per)
            del result
    finish()
    group = f"g{secrets.token_hex(4)}"
    return {name: samples_of(values, "µs", "timed", group) for name, values in readings.items()}


def _finisher() -> Callable[[], None]:
    """Return what waits for the GPU; nothing where there is none."""
    import torch

    return torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
