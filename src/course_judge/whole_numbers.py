"""Inputs of small whole numbers: every sum of them is exact in whatever order it is taken, and so is the answer.

A tolerance that grows with a sum hides what a kernel leaves out of it, or guesses. Here nothing is hidden: products
and sums stay below the numbers from which a type has gaps, so that an answer is the truth, rounded once to its type
where scales give it more bits, or it is wrong. The two halves of a vector have means of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from course_judge.drawn import Drawn, Tensors

MOST_SUM = 2**22  # of a sum in float32; a quarter of what would be exact, for those who split their numbers
ENDS = 4  # numbers at either end that are never zero
WIDE = 2**19  # more bits than two of bfloat16's hold
# Up to where a type holds every whole number.
EXACT = {torch.bfloat16: 2**8, torch.float16: 2**11, torch.float32: MOST_SUM}


def whole(drawn: Drawn, most: int, *shape: int) -> torch.Tensor:
    """Draw whole numbers from 1 to `most` of either sign, in float32."""
    sign = 1 - 2 * drawn.below(2, *shape)
    return (sign * (1 + drawn.below(most, *shape))).float()


def thinned(drawn: Drawn, x: torch.Tensor, most: int) -> torch.Tensor:
    """Return rows of which at most so many numbers are left: those at the ends, and others drawn at random."""
    K = x.shape[-1]
    if most >= K:
        return x
    keep = torch.zeros_like(x, dtype=torch.bool)
    ends = min(ENDS, most // 2)
    keep[..., :ends] = keep[..., K - ends :] = True
    others = drawn.below(K, *x.shape[:-1], most - 2 * ends)
    return torch.where(keep.scatter(-1, others, True), x, 0.0)


def _factors(drawn: Drawn, K: int, exact: int, *rows: int) -> list[torch.Tensor]:
    """Draw two matrices whose rows have K numbers each, so that no product of two rows passes `exact`."""
    most = min(7, max(1, int((exact / min(K, 200)) ** 0.5)))
    count = exact // most**2
    found = [whole(drawn, most, number, K) for number in rows]
    # One of the two is thinned, by chance: where both were, they would seldom meet.
    at = int(drawn.below(2, 1))
    found[at] = thinned(drawn, found[at], count)
    return found


def _product(drawn: Drawn, inputs: Tensors) -> Tensors:
    a, b = inputs
    left, right = _factors(drawn, a.shape[1], EXACT[a.dtype], len(a), b.shape[1])
    return left.to(a.dtype), right.t().contiguous().to(b.dtype)


def _wide_product(drawn: Drawn, inputs: Tensors) -> Tensors:
    """Numbers of twenty bits times a few ones."""
    a, b = inputs
    (M, K), N = a.shape, b.shape[1]
    wide_left = bool(drawn.below(2, 1))
    wide, narrow = (M, N) if wide_left else (N, M)
    long, few = whole(drawn, WIDE, wide, K), thinned(drawn, whole(drawn, 1, narrow, K), MOST_SUM // WIDE)
    left, right = (long, few) if wide_left else (few, long)
    return left, right.t().contiguous()


def _by_rows(drawn: Drawn, inputs: Tensors) -> Tensors:
    x, w = inputs
    left, right = _factors(drawn, x.shape[1], EXACT[x.dtype], len(x), len(w))
    return left.to(x.dtype), right.to(w.dtype)


def _scaled(drawn: Drawn, inputs: Tensors) -> Tensors:
    """Numbers of 8 bits, and scales of five: what they make is exact until it is rounded once."""
    x, w, scale_x, scale_w = inputs
    left, right = _factors(drawn, x.shape[1], EXACT[torch.bfloat16], len(x), len(w))
    scales = (
        drawn.one_of((0.53125, 1.0, 1.3125, 2.875), *scale.shape).float() for scale in (scale_x, scale_w)
    )
    return left.to(x.dtype), right.to(w.dtype), *scales


def every_code(drawn: Drawn, inputs: Tensors) -> Tensors:
    """All finite numbers of 8 bits, those below the smallest normal one too, each met by a single 1 or -1."""
    x, w, scale_x, scale_w = inputs
    at = int(drawn.below(2, 1))
    found = []
    for number, t in enumerate((x, w)):
        codes = drawn.below(256, *t.shape).to(torch.uint8).view(t.dtype)
        any_number = torch.where(codes.float().isnan(), 1.0, codes.float())
        found.append(any_number if number == at else thinned(drawn, whole(drawn, 1, *t.shape), 1))
    return found[0].to(x.dtype), found[1].to(w.dtype), torch.ones_like(scale_x), torch.ones_like(scale_w)


def _four_bits(drawn: Drawn, inputs: Tensors) -> Tensors:
    """Weights as they are, from -8 to 7, and scales of one sign or the other."""
    x, words, scales = inputs
    few = thinned(drawn, whole(drawn, 1, *x.shape), EXACT[x.dtype] // 8)
    return few.to(x.dtype), words, (1 - 2.0 * drawn.below(2, *scales.shape)).to(scales.dtype)


def _linear(drawn: Drawn, inputs: Tensors) -> Tensors | None:
    if drawn.options["norm"] or drawn.options["gated"]:
        return None
    x, w, *rest = inputs
    left, right = _factors(drawn, x.shape[1], EXACT[x.dtype] // 2, len(x), len(w))
    more = (whole(drawn, EXACT[x.dtype] // 2, *r.shape).to(r.dtype) for r in rest)
    return left.to(x.dtype), right.to(w.dtype), *more


def _positive(drawn: Drawn, x: torch.Tensor, terms: int) -> torch.Tensor:
    """Draw numbers from 1 up, of means of their own in the two halves; zeros where that would be too many."""
    N = len(x)
    most = max(2, min(15, MOST_SUM // max(terms, 1)))
    values = (1 + drawn.below(most - 1, N)).float()
    values[: N // 2] += 1
    share = MOST_SUM / ((most + 1) * max(terms, 1))
    if share < 1:
        some = drawn.below(2**20, N) < share * 2**20
        some[:ENDS] = some[N - ENDS :] = True
        values = torch.where(some, values, 0.0)
    return values


def _sum(drawn: Drawn, inputs: Tensors) -> Tensors:
    (x,) = inputs
    return (_positive(drawn, x, len(x)),)


def _windows(drawn: Drawn, inputs: Tensors) -> Tensors:
    (x,) = inputs
    return (_positive(drawn, x, drawn.module.ROUNDS),)


def signed_sum(drawn: Drawn, inputs: Tensors) -> Tensors:
    """Numbers of either sign, whose sum is exact."""
    (x,) = inputs
    return (_positive(drawn, x, len(x)) * drawn.signs(len(x)).float(),)


def signed_windows(drawn: Drawn, inputs: Tensors) -> Tensors:
    """Numbers of either sign, whose sums over windows are exact."""
    (x,) = inputs
    return (_positive(drawn, x, drawn.module.ROUNDS) * drawn.signs(len(x)).float(),)


WHOLE: dict[str, tuple[Callable[[Drawn, Tensors], Any], ...]] = {
    "bank_conflicts": (_windows,),
    "decode_linear": (_linear,),
    "gemm": (_product,),
    "gemm_fp8": (_scaled,),
    "reduction": (_sum,),
    "sgemm": (_product, _wide_product),
    "skinny_gemm": (_by_rows,),
    "skinny_gemm_fp8": (_scaled,),
    "skinny_gemm_w4": (_four_bits,),
}
