"""Softmax of rows, the contract.

    y[m, n] = exp(x[m, n]) / sum over n of exp(x[m, n])

Odd       a row of nothing but -inf is 0 / 0 by the formula, and answers NaN
Shapes    x (M, N), y (M, N), row-major
Types     float32
Cost      read M*N, write M*N elements: the floor is bytes, not arithmetic
"""

from __future__ import annotations

import torch

from course_kernels.problem import INF, NAN, Problem, Workload


def make_inputs(w: Workload, generator: torch.Generator, device: torch.device | str) -> tuple[torch.Tensor]:
    """Return one matrix (M, N), normal with a standard deviation of 3, so that a row has small and large weights."""
    return (3 * torch.randn(w.M, w.N, generator=generator, dtype=w.torch_dtype, device=device),)


def reference(x: torch.Tensor) -> torch.Tensor:
    """Return the softmax of every row in float64: (M, N)."""
    return torch.softmax(x.double(), dim=-1)


PROBLEM = Problem(
    name="softmax",
    formula="y[m, n] = exp(x[m, n]) / sum over n of exp(x[m, n])",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: 4 * w.M * w.N,
    writes_bytes=lambda w: 4 * w.M * w.N,
    flops=lambda w: 4 * w.M * w.N,  # subtract, exp, add, divide
    math=lambda w: "fp32",
    # exp is good to two units in the last place, and its argument is rounded once: 2**-24 of up to 30. A sum of
    # positive numbers adds a few more. 2**-17 is some 60 units.
    max_error=lambda w: 2.0**-17,
    # Nothing large: x * log2(e) - max * log2(e) in one fused step is a usual way, and off by more than 1 past 1e7.
    hard=lambda w: ({0: (0.0, -0.0, NAN, INF, -INF)},),
    check_on=(
        Workload.of("float32", M=1, N=1),
        Workload.of("float32", M=3, N=31),  # less than a warp
        Workload.of("float32", M=1823, N=781),  # nothing divides anything
        Workload.of("float32", M=5, N=70_000),  # longer than a block could hold
    ),
    time_on=(Workload.of("float32", M=16384, N=8192),),
)
