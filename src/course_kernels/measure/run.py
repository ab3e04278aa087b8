"""The calls a page makes: measure, compare, refusal, and record what came out."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch

from course_kernels.measure.check import checked_errors
from course_kernels.measure.clock import Clock, Timer
from course_kernels.measure.competitor import Competitor, competitor_of
from course_kernels.measure.machine import Machine, machine_for
from course_kernels.measure.measurement import (
    HOW,
    LEAVES,
    Leaf,
    Measurement,
    Quantity,
    Text,
    Trace,
    measurement_of,
)
from course_kernels.measure.refused import Refused
from course_kernels.measure.roofline import check_floor
from course_kernels.problem import Workload

MIME = "application/vnd.course.record+json"


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
            before=timing.before,
            after=timing.after,
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


def quantity(value: float, unit: str = "1", how: str = "computed") -> Quantity:
    """A number that is no timing, for `record`.

    Args:
        value: a finite number.
        unit: "B", "GB/s", "µs" …; "1" for none.
        how: "counted" by hardware, "computed" by hand, told by the "device", or "given".
    Raises:
        TypeError, ValueError: no finite number, or an unknown `how`.
    """
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise TypeError(f"quantity: expected a number, got {value!r}")
    if number != number or number in (float("inf"), float("-inf")):
        raise ValueError(f"quantity: expected a finite number, got {number}")
    if how not in HOW:
        raise ValueError(f"quantity: expected how to be one of {', '.join(HOW)}, got {how!r}")
    return Quantity(number, unit, how)


def text(value: str) -> Text:
    """A text, for `record`.

    Raises:
        TypeError: not a str.
    """
    if not isinstance(value, str):
        raise TypeError(f"text: expected a str, got {value!r}")
    return Text(value)


def trace(columns: Mapping[str, Sequence[float]]) -> Trace:
    """Columns of equal length over time, for `record`; a column's unit ends its name: "t_s", "power_w".

    Raises:
        ValueError: no columns, columns of different lengths, or a name that is no identifier.
    """
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        raise ValueError(f"trace: expected columns of one length above 0, got {lengths}")
    for name in columns:
        _check_name(name)
    return Trace({name: [float(value) for value in values] for name, values in columns.items()})


def record(**names: Any) -> None:
    """Put results into the record of the page that runs, under names its prose can use.

    Args:
        names: measurements, counts, quantities, texts, traces, or dicts of them, by name.
    Raises:
        TypeError: a value of another kind.
        ValueError: a name that is no identifier.
    """
    data = {name: _plain(name, value) for name, value in names.items()}
    bundle = {MIME: {"names": data}, "text/plain": f"recorded: {', '.join(data)}"}
    ipython = sys.modules.get("IPython")
    if ipython is None or ipython.get_ipython() is None:
        print(bundle["text/plain"])
        return
    from IPython.display import display

    display(bundle, raw=True)


def _plain(path: str, value: Any) -> dict[str, Any]:
    _check_name(path.rsplit(".", 1)[-1])
    if isinstance(value, LEAVES):
        return _leaf_json(value)
    if isinstance(value, Mapping):
        if not value:
            raise ValueError(f"record: {path} is empty")
        for name in value:
            _check_name(name)
        return {name: _plain(f"{path}.{name}", child) for name, child in value.items()}
    raise TypeError(
        f"record: {path}: expected a measurement, count(), quantity(), text(), trace() or a dict of them, "
        f"got {value!r}"
    )


def _leaf_json(leaf: Leaf) -> dict[str, Any]:
    return leaf.as_json()


def _check_name(name: Any) -> None:
    # "kind" is how a reader of the record tells a value from a group of values.
    if not isinstance(name, str) or not name.isidentifier() or name == "kind":
        raise ValueError(f"record: expected a name such as flash or n512, got {name!r}")
