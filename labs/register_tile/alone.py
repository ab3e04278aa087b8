"""The task alone of the lab register_tile: the product of two matrices of complex numbers.

    C[m, n] = sum over k of A[m, k] * B[k, n]       where (x, y) * (u, v) = (x u - y v, x v + y u)

Shapes    A (M, K, 2), B (K, N, 2), C (M, N, 2), row-major: the two parts of a number lie side by side
Types     float32 in, in between and out: no TF32
Cost      8*M*N*K operations; read A and B, write C once
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.problem import INF, LARGE, NAN, Problem, Workload


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor]:
    """A (M, K, 2) and B (K, N, 2), normal with variance 1."""
    a, b = (
        torch.randn(shape, generator=generator, dtype=w.torch_dtype, device=device)
        for shape in ((w.M, w.K, 2), (w.K, w.N, 2))
    )
    return a, b


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The product in float64: (M, N, 2)."""
    (x, y), (u, v) = a.double().unbind(-1), b.double().unbind(-1)
    return torch.stack((x @ u - y @ v, x @ v + y @ u), dim=-1)


PROBLEM = Problem(
    name="complex_product",
    formula="C[m, n] = sum over k of A[m, k] * B[k, n], of complex numbers",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: 8 * (w.M * w.K + w.K * w.N),
    writes_bytes=lambda w: 8 * w.M * w.N,
    flops=lambda w: 8 * w.M * w.N * w.K,
    math=lambda w: "fp32",
    # As in the problem sgemm, where K products are added; here they are 2 K.
    max_error=lambda w: 8 * 2.0**-24 * sqrt(2 * w.K),
    # Of A they fill a row, of B a column.
    hard=lambda w: ({0: (0.0, -0.0, NAN, INF, -INF, LARGE), 1: (NAN,)},),
    check_on=(
        Workload.of("float32", M=1, N=1, K=1),
        Workload.of("float32", M=33, N=65, K=17),
        Workload.of("float32", M=130, N=70, K=257),
        Workload.of("float32", M=512, N=256, K=512),
    ),
    time_on=(Workload.of("float32", M=2048, N=2048, K=2048),),
)
