"""Reduction, the contract: the sum of a vector.

    y[0] = sum over n of x[n]

Shapes    x (N,), y (1,)
Types     float32
Cost      read N elements, write one, N - 1 additions: the floor is bytes, not arithmetic
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.problem import INF, NAN, Problem, Workload


def make_inputs(w: Workload, generator: torch.Generator, device: torch.device | str) -> tuple[torch.Tensor]:
    """Return one vector (N,) of random numbers, every value between 0 and 1 equally likely; their sum is near N / 2."""
    return (torch.rand(w.N, generator=generator, dtype=w.torch_dtype, device=device),)


def reference(x: torch.Tensor) -> torch.Tensor:
    """Return the sum in float64: (1,)."""
    return x.double().sum().reshape(1)


def max_error(w: Workload) -> float:
    """Return what the roundings of one running sum may add up to.

    Each addition rounds the total by up to half a unit in its last place, up or down as it happens. N such steps
    take a random walk: the standard deviation of `worst_error` is at most sqrt(N) * 2**-24 / 6, since a unit is at
    most 2**-23 of the total. Six of those are allowed. A kernel that keeps many partial sums stays far below.
    One element left out is an error of about 0.5 / N: that shows up to some 40 000 elements, which the small sizes
    are there for. A block of 256 left out shows up to a million and a half.
    """
    return sqrt(w.N) * 2.0**-24


PROBLEM = Problem(
    name="reduction",
    formula="y[0] = sum over n of x[n]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: w.N * w.element_bytes,
    writes_bytes=lambda w: w.element_bytes,
    flops=lambda w: w.N - 1,
    math=lambda w: "fp32",
    max_error=max_error,
    # One NaN is the whole answer, and so is one infinity: each needs inputs of its own.
    hard=lambda w: ({0: (0.0, -0.0, INF)}, {0: (NAN,)}),
    check_on=(
        Workload.of("float32", N=1),
        Workload.of("float32", N=31),  # less than a warp
        Workload.of("float32", N=33),  # one more than a warp
        Workload.of("float32", N=1000),
        Workload.of("float32", N=1025),  # one more than a block can have threads
        Workload.of("float32", N=20_011),  # several blocks, and one element left out still shows
        Workload.of("float32", N=1_000_003),  # no block size divides it
        Workload.of("float32", N=2**24 - 1),
        Workload.of("float32", N=2**24),
    ),
    time_on=(Workload.of("float32", N=1 << 28),),  # 1 GB, far past any cache
)
