"""Transpose, the contract.

    y[n, m] = x[m, n]

Shapes    x (M, N), y (N, M), both row-major; y has memory of its own, also where M or N is 1
Types     float32; the transpose is exact
Cost      read M*N, write M*N elements: nothing but bytes, as in a copy
"""

from __future__ import annotations

import torch

from course_kernels.problem import Problem, Workload


def make_inputs(w: Workload, generator: torch.Generator, device: torch.device | str) -> tuple[torch.Tensor]:
    """Return one matrix (M, N) of normal random numbers."""
    return (torch.randn(w.M, w.N, generator=generator, dtype=w.torch_dtype, device=device),)


def reference(x: torch.Tensor) -> torch.Tensor:
    """Return the transpose in float64: (N, M), contiguous."""
    return x.double().t().contiguous()


PROBLEM = Problem(
    name="transpose",
    formula="y[n, m] = x[m, n]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: w.M * w.N * w.element_bytes,
    writes_bytes=lambda w: w.M * w.N * w.element_bytes,
    flops=lambda w: 0,
    math=lambda w: "fp32",
    max_error=lambda w: 0.0,  # every element moves, none changes
    check_on=(
        Workload.of("float32", M=1, N=1),
        Workload.of("float32", M=31, N=33),  # less than a tile one way, more than a tile the other
        Workload.of("float32", M=1, N=5000),  # one row, one column
        Workload.of("float32", M=5000, N=1),
        Workload.of("float32", M=100, N=36),  # whole 16-byte vectors, but no whole tiles
        Workload.of("float32", M=1023, N=2049),  # no tile divides it, and no vector
        Workload.of("float32", M=2048, N=1024),  # whole tiles
    ),
    time_on=(Workload.of("float32", M=16384, N=16384),),  # 1 GB each way, far past any cache
)
