"""Scale rows, the contract: a problem so plain that every fault of a kernel is easy to see.

    y[m, n] = s[m] * x[m, n]

Shapes    x (M, N), s (M), y (M, N), row-major; M = N, so that the wrong axis still fits
Types     float32
Cost      read M*N + M, write M*N elements: the floor is bytes
"""

from __future__ import annotations

import torch

from course_kernels.problem import Problem, Workload


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor]:
    """x (M, N) normal with variance 1, s (M) uniform in [0.5, 1.5)."""
    x = torch.randn(w.M, w.N, generator=generator, dtype=w.torch_dtype, device=device)
    s = torch.rand(w.M, generator=generator, dtype=w.torch_dtype, device=device) + 0.5
    return x, s


def reference(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """y (M, N) in float64."""
    return x.double() * s.double()[:, None]


PROBLEM = Problem(
    name="refusals",
    formula="y[m, n] = s[m] * x[m, n]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: w.element_bytes * (w.M * w.N + w.M),
    writes_bytes=lambda w: w.element_bytes * w.M * w.N,
    flops=lambda w: w.M * w.N,
    math=lambda w: "fp32",
    max_error=lambda w: 2.0**-22,  # one rounding
    check_on=(Workload.of("float32", M=1, N=1), Workload.of("float32", M=97, N=97)),
    time_on=(Workload.of("float32", M=8192, N=8192),),
)
