"""Divergence, the contract: every element takes one of W branches, all of the same length.

    y[n] = x[n] after ROUNDS times x <- a_w * x + c, with a_w = 1 - (w + 1) / 4096, c = 1 / 64, w = n % W

Shapes    x (N,), y (N,), N <= 2**24
Types     float32
Cost      2*ROUNDS*N operations, whatever W is: only who runs beside whom changes
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.problem import Problem, Workload

ROUNDS = 256
WAYS = (1, 2, 4, 8, 16, 32)


def make_inputs(w: Workload, generator: torch.Generator, device: torch.device | str) -> tuple[torch.Tensor]:
    """Return one vector (N,) in 0..1."""
    return (torch.rand(w.N, generator=generator, dtype=w.torch_dtype, device=device),)


def reference(x: torch.Tensor, *, ways: int) -> torch.Tensor:
    """Return the truth in float64, (N,), as a formula: the distance to c / (1 - a) shrinks by a in every round."""
    branch = torch.arange(x.numel(), device=x.device) % ways
    a = 1 - (branch.double() + 1) / 4096
    goal = 1 / 64 / (1 - a)
    return goal + a**ROUNDS * (x.double() - goal)


PROBLEM = Problem(
    name="divergence",
    formula="y[n] = x[n] after 256 times x <- a_w * x + c, with w = n % W",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: 4 * w.N,
    writes_bytes=lambda w: 4 * w.N,
    flops=lambda w: 2 * ROUNDS * w.N,
    math=lambda w: "fp32",
    # Each round rounds once by up to 2**-24; the roundings mostly cancel, so they grow like sqrt(ROUNDS). The next
    # branch, or one round less, gives an answer that is off by a thousand times as much.
    max_error=lambda w: 4 * 2.0**-24 * sqrt(ROUNDS),
    check_on=(
        Workload.of("float32", N=1, W=1),
        Workload.of("float32", N=1000, W=2),  # less than a block
        Workload.of("float32", N=4099, W=4),
        Workload.of("float32", N=1025, W=8),  # one past a block
        Workload.of("float32", N=5000, W=16),
        Workload.of("float32", N=70_001, W=32),
    ),
    time_on=tuple(Workload.of("float32", N=1 << 24, W=ways) for ways in WAYS),
    options=lambda w: {"ways": w.W},
)
