"""Check of an answer in NumPy, with the questions and words of course_kernels/measure/check.py, without torch.

A first call, one with other values in the same arrays, and one for each set of hard values. The truth is worked out
after the calls it judges. What the function makes with numpy.empty holds NaN, see `arrays`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from course_kernels.problem import Workload
from course_labs.numpy_reference import Truth

Arrays = tuple[np.ndarray, ...]


class WrongArray(Exception):
    """Error: what is wrong with an answer, in one line."""


def check(
    truth: Truth,
    workload: Workload,
    function: Callable[..., Any],
    seed: int = 0,
    *,
    once: bool = False,
    exact: bool = False,
) -> float:
    """Ask a function for its answers on one workload, and judge them.

    Args:
        function: called as function(*arrays, **options).
        seed: where all random numbers come from.
        once: ask for one answer, which may be infinite, and no more.
        exact: the sign of a zero counts.
    Returns:
        The worst element's scaled error, over all calls.
    Raises:
        WrongArray: the first thing that is wrong.
        ValueError: the reference is not finite for inputs that are.
    """
    asked = _Asked(truth, workload, function, np.random.default_rng(seed), exact)
    with np.errstate(all="ignore"):
        return asked.all_times(once)


def is_right(truth: Truth, workload: Workload, inputs: Arrays, outputs: Arrays) -> bool:
    """Return True if these outputs, of the right shapes, are the answer for these inputs."""
    return all(right.all() for right in are_right(truth, workload, inputs, outputs))


def are_right(truth: Truth, workload: Workload, inputs: Arrays, outputs: Arrays) -> list[np.ndarray]:
    """Return which elements of each output, of the right shape, are the answer for these inputs."""
    due = _as_tuple(truth.reference(*inputs, **truth.options(workload)))
    with np.errstate(all="ignore"):
        errors = [_errors(out, it, truth.rows_apart, None) for out, it in zip(outputs, due, strict=True)]
    return [error <= truth.max_error(workload) for error in errors]


class _Asked:
    def __init__(
        self,
        truth: Truth,
        workload: Workload,
        function: Callable[..., Any],
        generator: np.random.Generator,
        exact: bool = False,
    ) -> None:
        self.truth, self.workload, self.function = truth, workload, function
        self.generator, self.exact = generator, exact
        self.options = truth.options(workload)
        self.allowed = truth.max_error(workload)
        self.shapes: list[tuple[int, ...]] = []  # of the outputs; known once the first truth is

    def all_times(self, once: bool = False) -> float:
        working = self.draw()
        first = tuple(array.copy() for array in working)
        result, touched = self.ask(working, first)
        due = self.due(first, finite=not once)
        self.shapes = [out.shape for out in due]
        usual = [_rms(out) for out in due]
        earlier = self.outputs(result, working)
        worst = self.judge(earlier, touched, due)
        if once:
            return worst

        values = self.draw()
        result, touched = self.ask(working, values)
        outputs = self.outputs(result, working)
        shared = any(np.may_share_memory(out, old) for out in outputs for old in earlier)
        old, due = due, self.due(values)
        error = self.error(outputs, due)[0]
        if not error <= self.allowed and self.error(outputs, old)[0] <= self.allowed:
            raise WrongArray("cached result: called again with new values, it gave the old answer")
        worst = max(worst, self.judge(outputs, touched, due))
        if shared:
            raise WrongArray(
                "same memory twice: the second output lies where the first one still lies, and overwrites it; "
                "make a new one in every call"
            )
        for planted in self.truth.hard(self.workload):
            values, held = self.plant(self.draw(), planted)
            if held:
                result, touched = self.ask(working, values)
                outputs = self.outputs(result, working)
                due, where = self.due(values, finite=False), f", {self.planted(held)}"
                worst = max(worst, self.judge(outputs, touched, due, usual, where))
        return worst

    def draw(self) -> Arrays:
        return tuple(self.truth.make_inputs(self.workload, self.generator))

    def due(self, inputs: Arrays, *, finite: bool = True) -> Arrays:
        outputs = _as_tuple(self.truth.reference(*inputs, **self.options))
        if finite and not all(np.isfinite(out).all() for out in outputs):
            raise ValueError(f"on {self.workload.label} the reference in NumPy is not finite; mend truth.py")
        return outputs

    def ask(self, working: Arrays, values: Arrays) -> tuple[Any, str]:
        """Return the result of a call, and what it did to its inputs; empty if they are as they were."""
        for array, new in zip(working, values, strict=True):
            array[...] = new
        result = self.function(*working, **self.options)
        for index, (array, before) in enumerate(zip(working, values, strict=True)):
            differs = _bytes(array) != _bytes(before)
            if differs.any():
                at = int(differs.argmax()) // array.itemsize
                return result, (
                    f"input modified: {self.name_of(index)}{_place(before, at)} was {_value(before, at)} "
                    f"before the call and is {_value(array, at)} after it"
                )
        return result, ""

    def outputs(self, result: Any, working: Arrays) -> Arrays:
        """Return the arrays of a result, once they are of the kind that is asked for."""
        outputs = _as_tuple(result)
        if len(outputs) != len(self.shapes) or not all(isinstance(out, np.ndarray) for out in outputs):
            given = ", ".join(type(out).__name__ for out in outputs)
            raise WrongArray(f"wrong result: expected {len(self.shapes)} array(s), got ({given})")
        for number, (out, shape) in enumerate(zip(outputs, self.shapes, strict=True)):
            which = _which(number, outputs)
            if type(out) is not np.ndarray:
                raise WrongArray(
                    f"not a plain array: {which} is a {type(out).__name__}; return a numpy.ndarray"
                )
            if out.shape != shape:
                raise WrongArray(f"wrong shape: {which}: expected {_sizes(shape)}, got {_sizes(out.shape)}")
            dtype = np.dtype(self.workload.dtype)
            if out.dtype != dtype and (number == 0 or out.dtype.kind != "f"):
                raise WrongArray(f"wrong dtype: {which}: expected {dtype}, got {out.dtype}")
            for index, array in enumerate(working):
                if np.may_share_memory(out, array):
                    raise WrongArray(f"{which} shares memory with input {self.name_of(index)}")
            if not out.flags.c_contiguous:
                strides = [step // out.itemsize for step in out.strides]
                due = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
                raise WrongArray(
                    f"a view: {which}: expected strides {_sizes(due)}, got {_sizes(strides)}; store the answer in "
                    "that order, whoever reads it next would pay for it"
                )
        return outputs

    def error(self, outputs: Arrays, due: Arrays, usual: Sequence[float] = ()) -> tuple[float, int, int]:
        """Return the worst scaled error, the number of its output, and its flat index."""
        found = []
        for number, (out, expected) in enumerate(zip(outputs, due, strict=True)):
            errors = _errors(out, expected, self.truth.rows_apart, usual[number] if usual else None)
            at = int(errors.argmax())
            found.append((float(errors[at]), number, at))
        return max(found, key=lambda item: item[0])

    def judge(
        self, outputs: Arrays, touched: str, due: Arrays, usual: Sequence[float] = (), where: str = ""
    ) -> float:
        """Return the error of a right answer; refuse any other."""
        worst, number, at = self.error(outputs, due, usual)
        if touched:
            raise WrongArray(touched)
        if worst <= self.allowed:
            if self.exact:
                self.judge_zeros(outputs, due)
            return worst
        out, expected = outputs[number], due[number]
        errors = _errors(out, expected, self.truth.rows_apart, usual[number] if usual else None)
        wrong = int((errors > self.allowed).sum())
        why = _why_wrong(_which(number, outputs), out, expected, at, worst, self.allowed, wrong)
        raise WrongArray(why + where)

    def judge_zeros(self, outputs: Arrays, due: Arrays) -> None:
        """Refuse a right answer in which a zero has the wrong sign."""
        for number, (out, expected) in enumerate(zip(outputs, due, strict=True)):
            wrong = (np.signbit(out) != np.signbit(expected)) & ~np.isnan(expected)
            if wrong.any():
                at = int(wrong.reshape(-1).argmax())
                place = f"{_which(number, outputs)}{_place(expected, at)}"
                raise WrongArray(f"wrong: {place}: expected {_value(expected, at)}, got {_value(out, at)}")

    def plant(
        self, inputs: Arrays, planted: Mapping[int, Iterable[float]]
    ) -> tuple[Arrays, dict[int, list[float]]]:
        """Plant values at places of the inputs drawn at random, each at one; return those there was room for."""
        held: dict[int, list[float]] = {}
        for index, wanted in planted.items():
            array = inputs[index]
            values = _held_by(array.dtype, wanted)
            values = [values[number] for number in self.generator.permutation(len(values))][: array.size]
            if not values:
                continue
            # One place in each of as many equal parts: no two values meet.
            part = array.size // len(values)
            places = self.generator.integers(part, size=len(values)) + part * np.arange(len(values))
            array.reshape(-1)[places] = values
            held[index] = values
        return inputs, held

    def planted(self, held: Mapping[int, Iterable[float]]) -> str:
        of_each = (
            f"{self.name_of(index)} holds {', '.join(f'{value:.6g}' for value in values)}"
            for index, values in held.items()
        )
        return f"where {' and '.join(of_each)}"

    def name_of(self, index: int) -> str:
        """Return an input as the reference calls it."""
        names = list(inspect.signature(self.truth.reference).parameters)
        return names[index] if index < len(names) else str(index)


def _errors(out: np.ndarray, due: np.ndarray, rows_apart: bool, usual: float | None) -> np.ndarray:
    """|out - due| / (|due| + rms(due)) in float64, flat; whatever is NaN or infinite and should not be: infinity."""
    got, expected = out.astype(np.float64), due.astype(np.float64)
    if rows_apart:
        finite = np.isfinite(expected)
        squares = np.where(finite, expected, 0.0) ** 2
        rms: Any = np.sqrt(squares.sum(-1, keepdims=True) / np.maximum(finite.sum(-1, keepdims=True), 1))
    else:
        rms = _rms(expected) if usual is None else usual
    errors = np.abs(got - expected) / (np.abs(expected) + rms)
    # 0 / 0, where truth and answer are all zeros; and the infinities and NaN that are due.
    errors[(got == expected) | (np.isnan(got) & np.isnan(expected))] = 0.0
    errors[~np.isfinite(errors)] = math.inf
    return errors.reshape(-1)


def _rms(due: np.ndarray) -> float:
    """Return the root mean square of the finite elements."""
    finite = due[np.isfinite(due)].astype(np.float64)
    return float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0


def _why_wrong(
    name: str, out: np.ndarray, due: np.ndarray, at: int, worst: float, allowed: float, wrong: int
) -> str:
    def place(at: int) -> str:
        return f"{name}{_place(due, at)}: expected {_value(due, at)}, got {_value(out, at)}"

    nan, should = np.isnan(out).reshape(-1), np.isnan(due).reshape(-1)
    holes, filled = nan & ~should, should & ~nan
    if holes.all():
        return f"all NaN: {place(0)}"
    if holes.any():
        count, first = int(holes.sum()), int(holes.argmax())
        return f"not written, or NaN: {count} of {out.size} elements, {place(first)}"
    if filled.any():
        count, first = int(filled.sum()), int(filled.argmax())
        return f"NaN lost: {count} of {out.size} elements should be NaN and are not, {place(first)}"
    if math.isinf(float(due.reshape(-1)[at])):
        return f"infinity lost: {wrong} of {out.size} elements are wrong, {place(at)}"
    apart = abs(float(out.reshape(-1)[at]) - float(due.reshape(-1)[at]))
    return (
        f"wrong: {wrong} of {out.size} elements; the worst is {place(at)}; "
        f"{apart:.2g} apart, a scaled error of {worst:.2g} where {allowed:.2g} is allowed"
    )


def _held_by(dtype: np.dtype, values: Iterable[float]) -> list[float]:
    """Return values that a type can hold; a finite one is brought within half of the type's range."""
    if dtype.kind != "f":
        return []
    most = float(np.finfo(dtype).max) / 2
    return [
        math.copysign(most, value) if math.isfinite(value) and abs(value) > most else value
        for value in values
    ]


def _as_tuple(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _which(number: int, outputs: Sequence[Any]) -> str:
    return "output" if len(outputs) == 1 else f"output {number}"


def _value(array: np.ndarray, at: int) -> str:
    return f"{float(array.reshape(-1)[at]):.6g}"


def _place(array: np.ndarray, at: int) -> str:
    return f"[{', '.join(str(int(index)) for index in np.unravel_index(at, array.shape))}]"


def _sizes(numbers: Iterable[int]) -> str:
    return f"({', '.join(str(number) for number in numbers)})"
