"""The last task of the lab: how rough a list is, the squares of all steps from one number to the next.

    y[0] = sum over n < N - 1 of (x[n + 1] - x[n])**2

Shapes    x (N,), y (1,); a list of one number has no step, and its sum is 0
Types     float32
Cost      read N elements, write one, three operations for each step: the floor is bytes, not arithmetic
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.problem import INF, NAN, Problem, Workload


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, ...]:
    """One vector (N,) of random numbers, every value between 0 and 1 equally likely; the sum is near N / 6."""
    return (torch.rand(w.N, generator=generator, dtype=w.torch_dtype, device=device),)


def reference(x: torch.Tensor) -> torch.Tensor:
    """The sum in float64: (1,)."""
    x = x.double()
    return (x[1:] - x[:-1]).square().sum().reshape(1)


PROBLEM = Problem(
    name="roughness",
    formula="y[0] = sum over n < N - 1 of (x[n + 1] - x[n])**2",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: w.N * w.element_bytes,
    writes_bytes=lambda w: w.element_bytes,
    flops=lambda w: 3 * (w.N - 1),
    math=lambda w: "fp32",
    # A step and its square are rounded three times, half a unit each; what running sums add to it is as in the lab.
    max_error=lambda w: (2 + sqrt(w.N)) * 2.0**-24,
    # One NaN is the whole answer, and so is one infinity: each needs inputs of its own.
    hard=lambda w: ({0: (0.0, -0.0, INF)}, {0: (NAN,)}),
    check_on=(
        Workload.of("float32", N=1),
        Workload.of("float32", N=2),
        Workload.of("float32", N=33),  # one step more than a warp has lanes between
        Workload.of("float32", N=1025),
        Workload.of("float32", N=20_011),  # several blocks, and one step left out still shows
        Workload.of("float32", N=1_000_003),  # no block size divides it
        Workload.of("float32", N=2**24),
    ),
    time_on=(Workload.of("float32", N=1 << 28),),
)
