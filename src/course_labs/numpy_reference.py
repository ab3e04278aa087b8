"""Reference in NumPy, by which a door that never needs a GPU is judged: torch need not be installed.

A lab with such a door and a problem has a truth.py, which exports TRUTH for the lab and ALONE for its last task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from course_kernels.problem import HARD, Workload


def _no_options(w: Workload) -> dict[str, Any]:
    return {}


def _hard_in_the_first(w: Workload) -> tuple[Mapping[int, tuple[float, ...]], ...]:
    return ({0: HARD},)


@dataclass(frozen=True)
class Truth:
    """A problem as NumPy sees it; every part says the same as that of its `course_kernels.problem.Problem`.

    Attributes:
        make_inputs: (workload, random generator of NumPy) -> the arrays a function is called with.
        reference: (*inputs, **options) -> the truth in float64: an array, or a tuple of them.
        max_error: the largest scaled error a right answer can have.
        options: keyword arguments for the function and the reference.
        rows_apart: an error is compared with the size of its own row.
        hard: values to plant in inputs, in sets, by the number of the input.
    """

    make_inputs: Callable[..., tuple[Any, ...]]
    reference: Callable[..., Any]
    max_error: Callable[[Workload], float]
    options: Callable[[Workload], dict[str, Any]] = _no_options
    rows_apart: bool = False
    hard: Callable[[Workload], tuple[Mapping[int, tuple[float, ...]], ...]] = _hard_in_the_first
