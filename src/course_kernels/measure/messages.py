"""Messages of refused answers: names, places and values, in one line. They decide nothing.

No number depends on them.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from course_kernels.problem import Problem


def why_wrong(
    name: str,
    out: torch.Tensor,
    truth: torch.Tensor,
    at: int,
    worst: float,
    allowed: float,
    wrong: int,
    *,
    slice_elements: int,
) -> str:
    """Return what is wrong with an answer.

    Args:
        name: what the output is called.
        out, truth: the answer, and what it should be; one shape.
        at, worst: flat index and scaled error of the worst element (`problem.worst_error` says how it is scaled).
        allowed: the largest scaled error a right answer can have.
        wrong: how many elements are worse than that.
        slice_elements: elements looked at together, for memory.
    """

    def place(at: int) -> str:
        return f"{name}{place_of(truth, at)}: expected {value_of(truth, at)}, got {value_of(out, at)}"

    parts = zip(out.reshape(-1).split(slice_elements), truth.reshape(-1).split(slice_elements), strict=True)
    holes, filled, start = _Found(), _Found(), 0
    for got, expected in parts:
        nan, due = got.double().isnan(), expected.double().isnan()
        holes.look(nan & ~due, start)
        filled.look(due & ~nan, start)
        start += got.numel()
    if holes.count == out.numel():
        return f"all NaN: {place(holes.first)}"
    if holes.count:
        return f"not written, or NaN: {holes.count} of {out.numel()} elements, {place(holes.first)}"
    if filled.count:
        return f"NaN lost: {filled.count} of {out.numel()} elements should be NaN and are not, {place(filled.first)}"
    if math.isinf(float(truth.reshape(-1)[at])):
        return f"infinity lost: {wrong} of {out.numel()} elements are wrong, {place(at)}"
    apart = abs(float(out.reshape(-1)[at]) - float(truth.reshape(-1)[at]))
    return (
        f"wrong: {wrong} of {out.numel()} elements; the worst is {place(at)}; "
        f"{apart:.2g} apart, a scaled error of {worst:.2g} where {allowed:.2g} is allowed"
    )


class _Found:
    """The count of marked elements, and the flat index of the first."""

    def __init__(self) -> None:
        self.count, self.first = 0, 0

    def look(self, marks: torch.Tensor, start: int) -> None:
        count = int(marks.sum())
        if count and not self.count:
            self.first = start + int(marks.to(torch.uint8).argmax())
        self.count += count


def touched(problem: Problem, index: int, before: torch.Tensor, now: torch.Tensor, at: int) -> str:
    """Return an input that a call changed: which, where, from what to what."""
    return (
        f"input modified: {input_name(problem, index)}{place_of(before, at)} was "
        f"{value_of(before, at)} before the call and is {value_of(now, at)} after it"
    )


def planted(problem: Problem, values: Mapping[int, Iterable[float]]) -> str:
    """Return what was planted in the inputs: "where x holds 0, -0, nan, inf"."""
    of_each = (
        f"{input_name(problem, index)} holds {', '.join(f'{value:.6g}' for value in each)}"
        for index, each in values.items()
    )
    return f"where {' and '.join(of_each)}"


def value_of(tensor: torch.Tensor, at: int) -> str:
    """Return one element, by its flat index."""
    return f"{tensor.reshape(-1)[at].item():.6g}"


def place_of(tensor: torch.Tensor, at: int) -> str:
    """Return a flat index as indices: "[3, 17]"."""
    indices = []
    for size in reversed(tensor.shape):
        indices.append(at % size)
        at //= size
    return f"[{', '.join(str(index) for index in reversed(indices))}]"


def sizes(numbers: Iterable[int]) -> str:
    """Return a shape, or strides: "(48, 1)"."""
    return f"({', '.join(str(number) for number in numbers)})"


def output_name(number: int, outputs: Sequence[Any]) -> str:
    """ "output", or which one of several."""
    return "output" if len(outputs) == 1 else f"output {number}"


def input_name(problem: Problem, index: int) -> str:
    """Return an input as the problem's reference calls it."""
    names = list(inspect.signature(problem.reference).parameters)
    return names[index] if index < len(names) else str(index)
