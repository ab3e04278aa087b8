"""Fused multiply-adds, the contract: nothing but arithmetic.

    y[c, n] = x[c, n] after K times x <- a[n] * x + b[n]

Shapes    x (C, N), a (N,), b (N,), y (C, N): N threads with C chains each, which do not wait for each other
Types     float32
Cost      2*N*C*K operations; the bytes are a trifle beside them
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.problem import Problem, Workload


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Starts x (C, N) in 0..1, factors a (N,) a little below 1, and b (N,) so that every chain heads for 1..2.

    1 - a is 0.5/K to 2/K. So a chain forgets its rounding errors as it goes, but is still on its way at step K: an
    answer after fewer steps is another answer.
    """
    shapes = ((w.C, w.N), (w.N,), (w.N,))
    x, u, v = (torch.rand(s, generator=generator, dtype=w.torch_dtype, device=device) for s in shapes)
    a = 1 - (0.5 + 1.5 * u) / w.K
    return x, a, (1 + v) * (1 - a)


def reference(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, chains: int, steps: int) -> torch.Tensor:
    """The truth in float64, (C, N), as a formula: the distance to b / (1 - a) shrinks by a in every step."""
    a, b = a.double(), b.double()
    goal = b / (1 - a)
    return goal + a**steps * (x.double() - goal)


def max_error(w: Workload) -> float:
    """What K roundings leave of the answer, and fewer steps do not.

    Each step rounds once, by up to 2**-24 of the value; some K of them still count at the end. They mostly cancel,
    so the error grows like sqrt(K); four times that is out of reach of an honest chain. A chain that leaves out a
    step is off by some 1/K: past this for every K up to 8192.
    """
    return 4 * 2.0**-24 * sqrt(w.K)


H200_THREADS = 132 * 2048  # all that its multiprocessors hold at once

PROBLEM = Problem(
    name="fused_multiply_add",
    formula="y[c, n] = x[c, n] after K times x <- a[n] * x + b[n]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: 4 * (w.C + 2) * w.N,
    writes_bytes=lambda w: 4 * w.C * w.N,
    flops=lambda w: 2 * w.N * w.C * w.K,
    math=lambda w: "fp32",
    max_error=max_error,
    check_on=(
        Workload.of("float32", N=1, C=1, K=1),
        Workload.of("float32", N=1000, C=2, K=37),  # fewer steps than the unrolled loop takes at once
        Workload.of("float32", N=129, C=4, K=1000),
        Workload.of("float32", N=300, C=8, K=4096),
        Workload.of("float32", N=5000, C=1, K=8192),
    ),
    time_on=(
        # The peak: eight chains a thread on a full card.
        Workload.of("float32", N=H200_THREADS, C=8, K=8192),
        # One warp, four and sixteen for each of the four schedulers of a multiprocessor, with 1, 2 and 4 chains.
        *(
            Workload.of("float32", N=132 * 128 * warps, C=C, K=8192)
            for warps in (1, 4, 16)
            for C in (1, 2, 4)
        ),
    ),
    options=lambda w: {"chains": w.C, "steps": w.K},
)
