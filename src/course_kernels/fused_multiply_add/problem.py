"""Fused multiply-adds, the contract: nothing but arithmetic.

    y[c, n] = x[c, n] after K times x <- a[n] * x + 1

Shapes    x (C, N), a (N,), y (C, N): N threads with C chains each, which do not wait for each other; K <= 12288, as
          the tolerance is that of chains no longer
Types     float32
Cost      2*N*C*K operations; the bytes are a trifle beside them
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.problem import INF, NAN, Problem, Workload


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw starts x (C, N) in 1.5..2 and factors a (N,) a little above -1: 1 + a is 1/K to 1.5/K.

    A chain swings from side to side of its goal, 1 / (1 - a), and every step leaves -a times the swing: about a
    third of it after K. So it is far from its goal to the end, and forgets its rounding errors as
    it goes. A factor just below +1 would not do: the value creeps, in the end by less than half a unit in its last
    place, and sticks.
    """
    shapes = ((w.C, w.N), (w.N,))
    x, u = (torch.rand(s, generator=generator, dtype=w.torch_dtype, device=device) for s in shapes)
    return 1.5 + 0.5 * x, (1 + 0.5 * u) / w.K - 1


def reference(x: torch.Tensor, a: torch.Tensor, *, chains: int, steps: int) -> torch.Tensor:
    """Return the truth in float64, (C, N), as a formula.

    The distance to 1 / (1 - a) is multiplied by a in every step.
    """
    a = a.double()
    goal = 1 / (1 - a)
    return goal + a**steps * (x.double() - goal)


def max_error(w: Workload) -> float:
    """Return what K roundings leave of the answer, and fewer steps do not.

    The value lies between -1 and 2, so a step rounds by at most r = 2**-24. Were the roundings independent, the error
    would be some r * sqrt(K) / 2, since the swing takes the older ones along. They are not quite: two steps later
    the value is nearly the same again, and neighbours in time round alike. A float32 chain worked out for two
    million elements is off by less than 2.8 * r * sqrt(K), whatever K up to 8192. Six times r * sqrt(K) is twice that.

    One step more or less is on the other side of the goal. Two steps change the swing by 2/K of itself or more, which
    at K = 8192 is past 12 * r * sqrt(K) in the worst element of a few hundred: again twice the tolerance. From
    K = 16384 on two missing steps can hide.

    All this is for an even K. After an odd one the values lie around 0.15 instead of 0.85 and some change their
    sign, so an error is ten times as much of them, and so is what a missing pair of steps does.
    """
    return (60 if w.K % 2 else 6) * 2.0**-24 * sqrt(w.K)


H200_THREADS = 132 * 2048  # all that its multiprocessors hold at once

PROBLEM = Problem(
    name="fused_multiply_add",
    formula="y[c, n] = x[c, n] after K times x <- a[n] * x + 1",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: 4 * (w.C + 1) * w.N,
    writes_bytes=lambda w: 4 * w.C * w.N,
    flops=lambda w: 2 * w.N * w.C * w.K,
    math=lambda w: "fp32",
    max_error=max_error,
    # Nothing large: the tolerance is that of values between -1 and 2.
    hard=lambda w: ({0: (0.0, -0.0, NAN, INF, -INF)},),
    check_on=(
        Workload.of("float32", N=1, C=1, K=1),
        Workload.of("float32", N=1000, C=2, K=37),  # fewer steps than the unrolled loop takes at once
        Workload.of("float32", N=129, C=4, K=1000),
        Workload.of("float32", N=300, C=8, K=4096),
        Workload.of("float32", N=5000, C=1, K=8192),
        Workload.of("float32", N=100_000, C=8, K=8192),  # many chains, for the worst of them
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
