"""The calls a page makes to measure: measure, compare, refusal."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from functools import partial
from typing import Any

import torch

from course_kernels.measure.check import checked_errors
from course_kernels.measure.clock import Clock, Timer
from course_kernels.measure.competitor import Competitor, competitor_of
from course_kernels.measure.leaves import Measurement
from course_kernels.measure.machine import Machine, machine_for
from course_kernels.measure.refused import Refused
from course_kernels.measure.roofline import check_floor
from course_kernels.measure.summary import measurement_of
from course_kernels.problem import Workload


def measure(
    competitor: Any,
    workload: Workload,
    *,
    seconds: float = 1.0,
    device: str = "cuda",
    timer: Timer | None = None,
    machine: Machine | None = None,
) -> Measurement:
    """Check one competitor on one workload, then time it.

    Args:
        competitor: a kernel module, a function of a problem folder, or a `Competitor`.
        workload: what to compute.
        seconds: time to sample; at least 10 and at most 1000 samples are taken.
        device, timer, machine: for tests without a GPU.
    Raises:
        Refused: the answer is wrong (`WrongResult`), or faster than the floor (`FasterThanFloor`).
        SensorsUnavailable: the card's clocks cannot be read.
    """
    measured = compare(
        {"it": competitor}, workload, seconds=seconds, device=device, timer=timer, machine=machine
    )
    return measured["it"]


def compare(
    competitors: Mapping[str, Any],
    workload: Workload,
    *,
    seconds: float = 1.0,
    device: str = "cuda",
    timer: Timer | None = None,
    machine: Machine | None = None,
) -> dict[str, Measurement]:
    """Check every competitor on the workload, then time all of them in rounds on the same inputs.

    Args:
        competitors: by the names the results get; as in `measure`.
        workload: what to compute.
        seconds: time to sample, for each competitor on average.
        device, timer, machine: for tests without a GPU.
    Returns:
        A measurement for every name; they share a group, and their samples are paired by round.
    Raises:
        As `measure`; ValueError where the competitors are not of one problem.
    """
    field: dict[str, Competitor] = {name: competitor_of(thing) for name, thing in competitors.items()}
    if device == "cuda" and not torch.cuda.is_available():
        raise RuntimeError("no GPU: torch cannot use CUDA on this machine; run this where a GPU is")
    generator = torch.Generator(device=device).manual_seed(secrets.randbits(62))
    errors = checked_errors(field, workload, generator, device)
    if device == "cuda":
        torch.cuda.empty_cache()  # the check's stream has a pool of its own, which nothing else can use
        machine = machine or machine_for(torch.cuda.get_device_name())
    problem = next(iter(field.values())).problem
    inputs = problem.make_inputs(workload, generator, device)
    options = problem.options(workload)
    calls = {name: partial(c.function, *inputs, **options) for name, c in field.items()}
    with torch.no_grad():
        timing = (timer or Clock()).time(calls, seconds)
    group = f"g{secrets.token_hex(4)}"
    results = {}
    for name, competitor in field.items():
        results[name] = measurement_of(
            competitor.kernel,
            workload,
            problem,
            timing.samples_us[name],
            group=group,
            error=errors[name],
        )
        check_floor(
            f"{competitor.kernel} on {workload.label}", results[name].median_us, results[name], machine
        )
    return results


def refusal(competitor: Any, workload: Workload, **how: Any) -> str:
    """The line with which `measure` refuses a competitor that it must refuse.

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
