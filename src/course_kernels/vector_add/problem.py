"""Vector add, the contract.

    z[n] = x[n] + y[n]

Shapes    x (N,), y (N,), z (N,)
Types     float32
Cost      read 2*N, write N elements, N additions: the floor is bytes, not arithmetic
"""

from __future__ import annotations

import torch

from course_kernels.problem import HARD, Problem, Workload


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two vectors (N,) of normal random numbers."""
    x, y = (torch.randn(w.N, generator=generator, dtype=w.torch_dtype, device=device) for _ in range(2))
    return x, y


def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the sum in float64: (N,)."""
    return x.double() + y.double()


PROBLEM = Problem(
    name="vector_add",
    formula="z[n] = x[n] + y[n]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: 2 * w.N * w.element_bytes,
    writes_bytes=lambda w: w.N * w.element_bytes,
    flops=lambda w: w.N,
    math=lambda w: "fp32",
    max_error=lambda w: 2.0**-24,  # one rounding of one sum
    hard=lambda w: ({0: HARD, 1: HARD},),
    check_on=(
        Workload.of("float32", N=1),
        Workload.of("float32", N=1000),  # less than one block of the Triton kernel
        Workload.of("float32", N=1_000_003),  # no block size divides it
        Workload.of("float32", N=1 << 20),
    ),
    time_on=(Workload.of("float32", N=1 << 28),),  # 1 GB a vector, far past any cache
)
