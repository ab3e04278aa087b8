"""The task alone of the lab sgemm_tiles, the contract.

    T[m, n] = sum over k of A[m, k] * A[n, k]       for n <= m
    T[m, n] = 0                                     for n > m

Shapes    A (M, K), T (M, M), row-major
Types     float32 in, in between and out: no TF32
Cost      M*(M+1)*K operations; read A once, write T once, its zeros too
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.problem import INF, NAN, Problem, Workload


def make_inputs(w: Workload, generator: torch.Generator, device: torch.device | str) -> tuple[torch.Tensor]:
    """A (M, K), normal with variance 1."""
    return (torch.randn(w.M, w.K, generator=generator, dtype=w.torch_dtype, device=device),)


def reference(a: torch.Tensor) -> torch.Tensor:
    """The products of every row with itself and with the rows above it, in float64: (M, M)."""
    wide = a.double()
    return (wide @ wide.T).tril()


PROBLEM = Problem(
    name="row_products",
    formula="T[m, n] = sum over k of A[m, k] * A[n, k] for n <= m, and 0 for n > m",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: 4 * w.M * w.K,
    writes_bytes=lambda w: 4 * w.M * w.M,
    flops=lambda w: w.M * (w.M + 1) * w.K,
    math=lambda w: "fp32",
    # As in the problem sgemm: what K additions round, and TF32 is past it.
    max_error=lambda w: 8 * 2.0**-24 * sqrt(w.K),
    # No large ones: their squares overflow in float32, and in the truth they do not.
    hard=lambda w: ({0: (0.0, -0.0, NAN, INF, -INF)},),
    check_on=(
        Workload.of("float32", M=1, K=1),
        Workload.of("float32", M=65, K=17),
        Workload.of("float32", M=130, K=257),
        Workload.of("float32", M=512, K=1024),
    ),
    time_on=(Workload.of("float32", M=4096, K=4096),),
)
