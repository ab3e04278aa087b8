"""A race of 8 bits against 16: every competitor gets the same rows in both forms, and is held against their attention.

Attention in 8 bits and in bfloat16 have different inputs, so on their own they are two problems, and two problems are
not timed in turns. Here the inputs are Q, K and V in bfloat16 and what rounding makes of them; who computes in 16 bits
takes the first three, who computes in 8 the others. The truth is that of the bfloat16 rows, so rounding them is an
error as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from course_kernels.attention_fp8 import problem, round_blocks
from course_kernels.problem import Workload

Attention = Callable[..., torch.Tensor]


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, ...]:
    """Q, K and V in bfloat16, normal with variance 1; and what `in_8_bits` makes of them."""
    rows = problem.normal(w, generator, device)
    return *rows, *problem.in_8_bits(*rows)


def reference(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *eight: torch.Tensor, causal: bool = False
) -> torch.Tensor:
    """Return attention of the bfloat16 rows in float64: (B, H, N, D)."""
    return problem.exact(q, k, v, causal=causal)


# What 8 bits make of Q, K, V and the weights is off by 0.05 of a row's size as a root mean square, and the worst of
# tens of millions of elements by six times that. Whether a kernel is right is asked with its own problem's bound.
BESIDE = replace(
    problem.PROBLEM,
    make_inputs=make_inputs,
    reference=reference,
    max_error=lambda w: 0.5,
    layouts=((0, 2, 1, 3),),  # libraries keep the heads of a position side by side, and hand out a view
)


def of_16_bits(attention: Attention) -> Attention:
    """Return who takes the rows in bfloat16, of a function of q, k, v and `causal`."""
    return lambda q, k, v, *eight, causal: attention(q, k, v, causal=causal)


def of_8_bits(attention: Attention) -> Attention:
    """Return who finds them rounded, of a function of the inputs of attention_fp8 and `causal`."""
    return lambda q, k, v, *eight, causal: attention(*eight, causal=causal)


def with_rounding(attention: Attention) -> Attention:
    """Return who takes them in bfloat16 and rounds them at every call, V turned."""
    return lambda q, k, v, *eight, causal: attention(*round_blocks.in_8_bits(q, k, v), causal=causal)
