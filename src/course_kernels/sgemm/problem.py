"""Matrix multiply in fp32 on the CUDA cores, the contract.

    C[m, n] = sum over k of A[m, k] * B[k, n]

Shapes    A (M, K), B (K, N), C (M, N), row-major
Types     float32 in, in between and out: no TF32
Cost      2*M*N*K operations; read A and B, write C once
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.problem import INF, LARGE, NAN, Problem, Workload

# The float64 copy of A is made a strip at a time, so that the truth fits on a small card.
ROWS_AT_ONCE = 1024


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return A (M, K) and B (K, N), normal with variance 1."""
    a, b = (
        torch.randn(shape, generator=generator, dtype=w.torch_dtype, device=device)
        for shape in ((w.M, w.K), (w.K, w.N))
    )
    return a, b


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product in float64: (M, N)."""
    b = b.double()
    c = torch.empty(a.shape[0], b.shape[1], dtype=torch.float64, device=a.device)
    for row in range(0, a.shape[0], ROWS_AT_ONCE):
        strip = slice(row, row + ROWS_AT_ONCE)
        c[strip] = a[strip].double() @ b
    return c


def max_error(w: Workload) -> float:
    """Return what one running sum of K products may be off by, and TF32 may not.

    K additions round K times by up to 2**-24 of the sum so far. The roundings partly cancel, so the error
    grows like sqrt(K) against the answer's own size; eight times that is out of reach of any order of adding.
    TF32 rounds every input to 11 bits and is off by some 2**-12 of the answer's size at any K, and the worst
    of many elements by several times more: past this limit for every matrix worth multiplying.
    """
    return 8 * 2.0**-24 * sqrt(w.K)


PROBLEM = Problem(
    name="sgemm",
    formula="C[m, n] = sum over k of A[m, k] * B[k, n]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: 4 * (w.M * w.K + w.K * w.N),
    writes_bytes=lambda w: 4 * w.M * w.N,
    flops=lambda w: 2 * w.M * w.N * w.K,
    math=lambda w: "fp32",
    max_error=max_error,
    # Of A they fill a row, of B a column. Two large ones in a row would cancel, and leave their rounding.
    hard=lambda w: ({0: (0.0, -0.0, NAN, INF, -INF, LARGE), 1: (NAN,)},),
    check_on=(
        Workload.of("float32", M=1, N=1, K=1),
        Workload.of("float32", M=33, N=65, K=17),  # nothing divides anything
        Workload.of("float32", M=130, N=70, K=257),
        Workload.of("float32", M=512, N=256, K=1024),
        Workload.of("float32", M=ROWS_AT_ONCE + 1, N=96, K=512),  # the truth's second strip
    ),
    time_on=(Workload.of("float32", M=4096, N=4096, K=4096),),
)
