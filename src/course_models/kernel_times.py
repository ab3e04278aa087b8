"""Kernels of a step, as PyTorch's profiler saw them: how long they ran, by the range of the host that ordered them.

    seen = profiled(lambda: model(tokens), LINES)
    seen.us["GELU"], seen.busy_us, seen.kernels

A kernel belongs to the operator that launched it, and that operator to the innermost of the named ranges around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

OPERATOR = "aten::"
ELSE = ""  # of operators in no range
# Kernels that no operator claims: the profiler has dropped something, and the lines would be wrong.
MOST_LOST = 0.05


@dataclass(frozen=True)
class Seen:
    """One step.

    Attributes:
        us: microseconds of kernels by range, and under `ELSE` those of no range.
        kernels: how many there were, copies and fills among them.
        busy_us: how long at least one of them ran.
    """

    us: dict[str, float]
    kernels: int
    busy_us: float


def profiled(step: Callable[[], Any], ranges: Sequence[str]) -> Seen:
    """Run a step once to warm up, and once under the profiler.

    Raises:
        RuntimeError: the profiler saw no kernel, or kernels that no operator ordered.
    """
    step()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        step()
        torch.cuda.synchronize()
    return summed(seen.events(), ranges)


def summed(events: Iterable[Any], ranges: Sequence[str]) -> Seen:
    """Sum the kernels of a profiler's events by range; raises as `profiled`."""
    us = dict.fromkeys((*ranges, ELSE), 0.0)
    spans = []
    for event in events:
        if event.device_type == DeviceType.CUDA and not event.is_user_annotation:
            spans.append((event.time_range.start, event.time_range.end))
        elif event.device_type == DeviceType.CPU and event.name.startswith(OPERATOR):
            us[range_of(event, ranges)] += sum(kernel.duration for kernel in event.kernels)
    total, claimed = sum(end - start for start, end in spans), sum(us.values())
    if not spans:
        raise RuntimeError("the profiler saw no kernel")
    if abs(total - claimed) > MOST_LOST * total:
        raise RuntimeError(f"kernels ran for {total:.0f} microseconds, and operators claim {claimed:.0f}")
    return Seen(us, len(spans), busy(spans))


def range_of(event: Any, ranges: Sequence[str]) -> str:
    """Return the innermost of the ranges around an operator."""
    around = event.cpu_parent
    while around is not None:
        if around.name in ranges:
            return str(around.name)
        around = around.cpu_parent
    return ELSE


def busy(spans: Iterable[tuple[float, float]]) -> float:
    """Return how long at least one span was under way."""
    total, done = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, done))
        done = max(done, end)
    return total
