"""Sizes that nobody announced, drawn for one file, from what a problem's own sizes say is possible."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from course_kernels.problem import Problem, Workload

# What one question on the CPU may cost, for an interpreter's sake.
SMALL_BYTES = 2**20
SMALL_FLOPS = 2**22

# An odd size of at least this much says that a dimension may be anything; a smaller one may be a count of its own.
ANY_FROM = 17

# No free dimension is drawn smaller: of an answer of very few elements one may come out near 0 by chance, and its
# rounding is then large beside it. Size 1 is covered by the announced sizes, whose inputs are safe there.
LEAST = 8

# Dimensions that must be a multiple of another.
MULTIPLES = {"strided_read": {"N": "S"}}

# Dimensions that the contract has equal.
EQUAL = {"refusals": ("M", "N")}


def small(problem: Problem, workloads: Sequence[Workload] = ()) -> tuple[Workload, ...]:
    """Return the workloads that are quick to ask on a CPU; at least the quickest one."""
    of = tuple(workloads) or problem.check_on
    return tuple(w for w in of if _is_small(problem, w)) or (min(of, key=problem.flops),)


def draw(
    problem: Problem, workloads: Sequence[Workload], rng: random.Random, fixed: Sequence[str] = ()
) -> tuple[Workload, ...]:
    """Workloads like these, and none of them: one, and the same with its dimensions in the other order.

    Args:
        workloads: those announced; type, flags and dimensions of a few fixed values are taken from one of them.
        fixed: dimensions that are not drawn, whatever their values say.
    Raises:
        ValueError: no dimension may have another size.
    """
    free = [name for name in free_dims(problem, workloads) if name not in fixed]
    square: Workload | None = None
    for _ in range(1000):
        found = _one(problem, workloads, free, rng)
        # A square one has no other order: then another square, as there are two for every problem.
        squares = problem.name in EQUAL
        turned = _one(problem, workloads, free, rng) if squares else _turned(problem, workloads, found, free)
        if all(w not in workloads and _is_small(problem, w) for w in (found, turned)):
            sizes = [found.dims[name] for name in free if name in found.dims]
            if len(sizes) == 1 or len(set(sizes)) > 1 or squares:
                return (found,) if turned == found else (found, turned)
            square = found  # on which whoever takes rows for columns is right
    if square:
        return (square,)
    raise ValueError(f"{problem.name}: no size could be drawn that is none of those announced")


def _turned(problem: Problem, workloads: Sequence[Workload], w: Workload, free: Sequence[str]) -> Workload:
    """Return a tall size for a wide one: code that takes rows for columns is right for one of the two only.

    The same one again where a dimension would be larger than any that the problem or the task names.
    """
    dims = w.dims
    names = [name for name in dims if name in free]
    turned = dict(zip(names, [dims[name] for name in reversed(names)], strict=True))
    turned = {name: in_steps(size, step_of(workloads, name)) for name, size in turned.items()}
    named = (*workloads, *problem.check_on)
    too_large = any(
        size > max(other.dims[name] for other in named if name in other.dims) for name, size in turned.items()
    )
    return w if problem.name in MULTIPLES or too_large else Workload.of(w.dtype, **dims | turned)


def _one(
    problem: Problem, workloads: Sequence[Workload], free: Sequence[str], rng: random.Random
) -> Workload:
    like = rng.choice(list(small(problem, workloads)))
    dims = like.dims
    for name in free:
        if name in dims:
            most = max(w.dims[name] for w in workloads if name in w.dims)
            # As likely between 10 and 100 as between 100 and 1000.
            least = LEAST if most > LEAST else 1
            size = int(2 ** rng.uniform(math.log2(least), math.log2(most + 1)))
            dims[name] = in_steps(min(size, most), step_of(workloads, name))
    for name, other in MULTIPLES.get(problem.name, {}).items():
        dims[name] = max(1, dims[name] // dims[other]) * dims[other]
    return equal(problem, Workload.of(like.dtype, **dims))


def equal(problem: Problem, w: Workload, name: str = "") -> Workload:
    """Return a size whose dimensions are equal where the contract has them so.

    Args:
        name: the dimension that keeps its size; without it the smallest does.
    """
    if not (names := EQUAL.get(problem.name)):
        return w
    size = w.dims[name] if name in names else min(w.dims[one] for one in names)
    return Workload.of(w.dtype, **w.dims | dict.fromkeys(names, size))


def step_of(workloads: Sequence[Workload], name: str) -> int:
    """Return the common divisor of all announced sizes of a dimension, if there are several.

    A kernel that moves 16 bytes at a time takes multiples of 8 alone, and only those are then announced.
    """
    sizes = {w.dims[name] for w in workloads if name in w.dims}
    return math.gcd(*sizes) if len(sizes) > 1 else 1


def in_steps(size: int, step: int) -> int:
    """Return the largest multiple of a step up to a size, at least one."""
    return max(step, size // step * step)


def free_dims(problem: Problem, workloads: Sequence[Workload]) -> list[str]:
    """Dimensions that may have any size."""
    names = {name for w in workloads for name, value in w.items if not isinstance(value, bool)}
    of = (*workloads, *problem.check_on)
    return [
        name
        for name in sorted(names)
        if any(w.dims.get(name, 0) % 2 and w.dims[name] >= ANY_FROM for w in of if name in w.dims)
        or name in MULTIPLES.get(problem.name, {})
    ]


def _is_small(problem: Problem, w: Workload) -> bool:
    return problem.reads_bytes(w) + problem.writes_bytes(w) <= SMALL_BYTES and problem.flops(w) <= SMALL_FLOPS
