"""Inputs that are nearly those of the question before, and inputs that are one and the same tensor.

Who keeps answers under a few numbers of the inputs, or under their sum, meets the same key and owes another answer:
two numbers of one input have changed places, in its middle, before it or behind it; or two of one row; or four have
changed so that the sums of all rows and columns are what they were. Usual numbers are brought onto a grid before, so
that their sums are exact, and stay the same to the last bit.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import torch

from course_judge.contract import bounds_of, counts, kind_of, sizes_of
from course_judge.drawn import Drawn, Tensors
from course_judge.promises import without_top_p
from course_kernels.problem import Problem, Workload

GRID = {torch.float32: 2.0**-12, torch.float16: 2.0**-6, torch.bfloat16: 2.0**-4}
# Where a grid is too coarse for what is put on it, or decides what is chosen.
NO_GRID = ("fused_multiply_add", "qkv_rope", "sampling", "sparse_attention", "speculative_sampling")
# Where something changes, and in which ways it is tried until it shows in the answer.
PLACES = {
    "in the middle": ("swapped", "swapped", "swapped", "raised"),
    "at the beginning": ("swapped", "swapped", "raised"),
    "at the end": ("swapped", "swapped", "raised"),
    "of one row": ("in a row",),
    "at four corners": ("in a rectangle",),
}
PICKED = 16  # places in the middle, of which the largest and the smallest number change places
LEAST = 4  # a shorter input has no middle
# Inputs that cannot be changed by themselves: what a forward pass left, angles, where sequences lie, an index.
FIXED: dict[str, tuple[int, ...]] = {
    "attention_backward": (3, 4),
    "qkv_rope": (4, 5),
    "sampling": (1, 2, 3, 4, 5),
    "sparse_attention": (0, 1, 2),
    "speculative_sampling": (3, 4),
}
MAY_CHANGE: dict[str, tuple[int, ...]] = {"qkv_rope": (3,), "skinny_gemm_w4": (1,)}  # among whole numbers
SURELY_DRAWN = 60.0  # what is added to a logit
# Inputs that may be one tensor, where they have one shape; the first group that fits is taken.
ALIKE: dict[str, tuple[tuple[int, ...], ...]] = {
    "add_norm": ((0, 1),),
    "attention": ((0, 1, 2), (1, 2)),
    "attention_backward": ((1, 2),),
    "attention_general": ((0, 1, 2), (1, 2)),
    "decode_attention": ((1, 2),),
    "decode_linear": ((0, 1),),
    "gemm": ((0, 1),),
    "gemm_fp8": ((0, 1),),
    "paged_attention": ((1, 2),),
    "rms_norm": ((0, 2),),
    "sgemm": ((0, 1),),
    "skinny_gemm": ((0, 1),),
    "skinny_gemm_fp8": ((0, 1),),
    "swiglu": ((0, 1),),
    "vector_add": ((0, 1),),
}
EQUAL = (16, 32)  # decode_linear has no more than 32 rows


def on_a_grid(problem: Problem, drawn: Drawn, inputs: Tensors) -> Tensors:
    """Return inputs whose sums are exact, as far as their type and their contract allow."""
    if problem.name == "sampling":
        return without_top_p(drawn, drawn.module.Given(*inputs))
    if problem.name in NO_GRID:
        return inputs
    found = tuple(
        ((x.double() / grid).round() * grid).to(x.dtype) if (grid := GRID.get(x.dtype)) else x for x in inputs
    )
    return _as_due(problem, drawn, found)


def changed(
    problem: Problem, drawn: Drawn, inputs: Tensors, number: int, place: str = "in the middle"
) -> Iterator[Tensors]:
    """Yield inputs of which one has other numbers at a place, in several ways: one may not show in the answer."""
    for way in PLACES[place]:
        x = inputs[number].clone()
        flat = x.view(-1)
        bits = flat.view(torch.uint8).view(len(flat), -1)
        if way == "in a rectangle":
            if _in_a_rectangle(drawn, x):
                yield _as_due(problem, drawn, (*inputs[:number], x, *inputs[number + 1 :]))
            continue
        places = _picked(drawn, x, place)
        values = flat.double()[places]
        places = places[values.isfinite()]
        if not len(places):
            continue
        values = flat.double()[places]
        high, low = places[values.argmax()], places[values.argmin()]
        if problem.name == "sampling":
            flat[high] += SURELY_DRAWN
        elif way == "raised" and problem.name != "grey" and x.is_floating_point():
            flat[high] = (flat[high].double() + values.abs().max().clamp(min=1.0)).to(x.dtype)
        else:
            bits[[int(high), int(low)]] = bits[[int(low), int(high)]]
        yield _as_due(problem, drawn, (*inputs[:number], x, *inputs[number + 1 :]))


def _picked(drawn: Drawn, x: torch.Tensor, place: str) -> torch.Tensor:
    """Return places in a tensor, all of them where something is to change."""
    size = x.numel()
    first, last = max(1, size // 4), min(size - 1, size - size // 4)
    if place == "of one row":
        row = x.shape[-1]
        begin = int(drawn.below(size // row, 1)) * row
        return begin + drawn.below(row, PICKED)
    begin, end = {"at the beginning": (0, first), "at the end": (last, size)}.get(place, (first, last))
    return begin + drawn.below(end - begin, PICKED)


def _in_a_rectangle(drawn: Drawn, x: torch.Tensor) -> bool:
    """Raise two corners of a rectangle by as much as the two others are lowered; returns whether it has one."""
    if x.dim() < 2 or not x.is_floating_point() or x.dtype not in GRID:
        return False
    rows = x.view(-1, x.shape[-1])
    if min(rows.shape) < 2:
        return False
    i, k = (int(n) for n in drawn.below(len(rows), 2))
    j, m = (int(n) for n in drawn.below(rows.shape[1], 2))
    i, j = (i + 1) % len(rows) if i == k else i, (j + 1) % rows.shape[1] if j == m else j
    corners = rows[[i, i, k, k], [j, m, j, m]].double()
    moved = corners + torch.tensor([1.0, -1.0, -1.0, 1.0], dtype=torch.float64, device=x.device)
    if not torch.equal(moved.to(x.dtype).double(), moved):
        return False
    rows[[i, i, k, k], [j, m, j, m]] = moved.to(x.dtype)
    return True


def may_change(problem: Problem, inputs: Sequence[torch.Tensor]) -> list[int]:
    """Return the numbers of the inputs that have a middle, and may have any numbers there."""
    more, never = MAY_CHANGE.get(problem.name, ()), FIXED.get(problem.name, ())
    return [
        number
        for number, x in enumerate(inputs)
        if x.numel() >= LEAST and number not in never and (x.is_floating_point() or number in more)
    ]


def _as_due(problem: Problem, drawn: Drawn, inputs: Tensors) -> Tensors:
    """Return inputs with those made anew that hang on others."""
    if problem.name == "attention_backward":
        q, k, v, _, _, do = inputs
        return (q, k, v, *drawn.module.forward(q, k, v, **drawn.options), do)
    if problem.name == "sampling":
        return without_top_p(drawn, drawn.module.Given(*inputs))
    return inputs


def one_and_the_same(problem: Problem, drawn: Drawn, inputs: Tensors) -> Tensors | None:
    """Return inputs of which some are one tensor, handed in twice; None where none may be, or no shapes are equal."""
    for group in ALIKE.get(problem.name, ()):
        if max(group) >= len(inputs):
            continue
        first = inputs[group[0]]
        if all(
            (inputs[n].shape, inputs[n].dtype, inputs[n].stride())
            == (first.shape, first.dtype, first.stride())
            for n in group
        ):
            found = tuple(first if n in group else x for n, x in enumerate(inputs))
            return _as_due(problem, drawn, found)
    return None


def sizes_alike(problem: Problem, rng: random.Random) -> list[Workload]:
    """Return sizes whose lengths are equal as far as their bounds allow: on some of them inputs have one shape."""
    if problem.name not in ALIKE:
        return []
    found = []
    kinds: dict[tuple[str, ...], list[Workload]] = {}
    for w in problem.check_on:
        kinds.setdefault(kind_of(w), []).append(w)
    for like in map(rng.choice, kinds.values()):
        size = rng.choice(EQUAL)
        lengths = [n for n in sizes_of(problem) if n in like.dims and (n == "M" or not counts(problem, n))]
        dims = {name: bounds_of(problem, name).fit(size) for name in lengths}
        found.append(Workload.of(like.dtype, **like.dims | dims))
    return found
