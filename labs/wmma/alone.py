"""The task alone of the lab wmma: a product with a row added to each of its rows.

    C[m, n] = bias[n] + sum over k of A[m, k] * B[k, n]

Shapes    A (M, K), B (K, N), bias (N,), C (M, N), row-major
Types     float16 in and out, sums in float32, rounded once
Cost      2*M*N*K + M*N operations; read A, B and the bias, write C once

The bias takes nearly all of the product away again: what is left is small beside what a rounding of the product loses.
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.problem import INF, NAN, Problem, Workload


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A (M, K), normal with mean 1 and variance 1/16; B (K, N), normal with variance 1; the bias (N,).

    The bias of a column is minus the sum of B's column, rounded: what A's mean makes of it.
    """
    a, b = (
        torch.randn(shape, generator=generator, dtype=torch.float32, device=device)
        for shape in ((w.M, w.K), (w.K, w.N))
    )
    a, b = (a / 4 + 1).to(w.torch_dtype), b.to(w.torch_dtype)
    return a, b, (-b.double().sum(dim=0)).to(w.torch_dtype)


def reference(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """The product with the bias, in float64: (M, N)."""
    return a.double() @ b.double() + bias.double()


def max_error(w: Workload) -> float:
    """What one rounding to float16 may be off by, and two may not.

    Rounding C costs up to 2**-11 of an element. The sums are four times as large as what is left of them, in float32,
    on tensor cores that cut off where others round: that is a small part of it. A product that is rounded before the
    bias is added is off by 2**-11 of *its* size.
    """
    return 2.0**-11 + 64 * 2.0**-24 * sqrt(w.K)


PROBLEM = Problem(
    name="gemm_bias",
    formula="C[m, n] = bias[n] + sum over k of A[m, k] * B[k, n]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: w.element_bytes * (w.M * w.K + w.K * w.N + w.N),
    writes_bytes=lambda w: w.element_bytes * w.M * w.N,
    flops=lambda w: 2 * w.M * w.N * w.K + w.M * w.N,
    math=lambda w: "fp16",
    max_error=max_error,
    # A hard value of A fills a row, one of B or of the bias a column.
    hard=lambda w: ({0: (0.0, -0.0, NAN, INF, -INF), 1: (NAN,), 2: (INF,)},),
    check_on=(
        Workload.of("float16", M=33, N=65, K=17),
        Workload.of("float16", M=127, N=127, K=127),
        Workload.of("float16", M=1000, N=264, K=72),
    ),
    time_on=(Workload.of("float16", M=4096, N=4096, K=4096),),
)
