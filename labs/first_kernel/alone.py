"""The last task of the lab: one list, and the sum of every two neighbours that make a pair.

    z[n] = x[2n] + x[2n + 1]

Shapes    x (2*N,), z (N,)
Types     float32
Cost      read 2*N, write N elements, N additions: the floor is bytes, not arithmetic
"""

from __future__ import annotations

import torch

from course_kernels.problem import HARD, Problem, Workload


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, ...]:
    """One vector (2*N,) of normal random numbers."""
    return (torch.randn(2 * w.N, generator=generator, dtype=w.torch_dtype, device=device),)


def reference(x: torch.Tensor) -> torch.Tensor:
    """The sums in float64: (N,)."""
    return x.double().view(-1, 2).sum(dim=1)


PROBLEM = Problem(
    name="pair_sums",
    formula="z[n] = x[2n] + x[2n + 1]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: 2 * w.N * w.element_bytes,
    writes_bytes=lambda w: w.N * w.element_bytes,
    flops=lambda w: w.N,
    math=lambda w: "fp32",
    max_error=lambda w: 2.0**-24,  # one rounding of one sum
    hard=lambda w: ({0: HARD},),
    check_on=(
        Workload.of("float32", N=1),
        Workload.of("float32", N=1000),
        Workload.of("float32", N=1_000_003),  # no block size divides it
    ),
    time_on=(Workload.of("float32", N=1 << 27),),  # 1 GB in, far past any cache
)
