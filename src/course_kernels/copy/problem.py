"""Copy, the contract: the yardstick of memory bandwidth.

    y[n] = x[n]

Shapes    x (N,), y (N,)
Types     any floating-point type; the copy is exact
Cost      read N, write N elements: nothing but bytes
"""

from __future__ import annotations

import torch

from course_kernels.problem import Problem, Workload


def make_inputs(w: Workload, generator: torch.Generator, device: torch.device | str) -> tuple[torch.Tensor]:
    """Return one vector (N,) of normal random numbers."""
    x = torch.randn(w.N, generator=generator, dtype=torch.float32, device=device)
    return (x.to(w.torch_dtype),)


def reference(x: torch.Tensor) -> torch.Tensor:
    """Return the same numbers in float64: (N,)."""
    return x.double()


PROBLEM = Problem(
    name="copy",
    formula="y[n] = x[n]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: w.N * w.element_bytes,
    writes_bytes=lambda w: w.N * w.element_bytes,
    flops=lambda w: 0,
    math=lambda w: "fp32",
    max_error=lambda w: 0.0,  # a copy has no excuse
    check_on=(
        Workload.of("float32", N=1),
        Workload.of("float16", N=7),  # shorter than one 16-byte vector
        Workload.of("float8_e4m3fn", N=16 * 1024 + 15),  # the longest tail
        Workload.of("bfloat16", N=1_000_003),
        Workload.of("float32", N=1 << 20),  # no tail
    ),
    time_on=(Workload.of("float32", N=1 << 28),),  # 1 GB each way, far past any cache
)
