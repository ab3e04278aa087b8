"""A few rows times a large matrix, the contract.

    y[m, n] = sum over k of x[m, k] * w[n, k]

Shapes    x (M, K), M = 1 to 128: a row for each token of a batch; w (N, K), as layers store their weights; y (M, N)
Types     bfloat16 or float16, the same for all three, sums in float32
Cost      2*M*N*K operations; read x and w, write y once. A weight is read for M products: up to M of some hundreds it
          is the bytes that take the time, not the products

`skinny_gemm_fp8` and `skinny_gemm_w4` ask for the same of weights of eight and of four bits.
"""

from __future__ import annotations

import torch

from course_kernels.problem import INF, LARGE, NAN, Problem, Workload

MOST_ROWS = 128
ROWS_AT_ONCE = 4096  # of w in float64, so that the truth of 128256 x 4096 fits on a small card
MATH = {"bfloat16": "bf16", "float16": "fp16"}

# Rounding y once costs up to 2**-8 for bfloat16 and 2**-11 for float16. A library that shares K out among several
# blocks may add their parts in 16 bits, which costs as much again.
MAX_ERROR = {"bfloat16": 2.0**-7, "float16": 2.0**-9}


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor]:
    """x (M, K) and w (N, K), normal with variance 1."""
    x, weights = (
        torch.randn(rows, w.K, generator=generator, device=device).to(w.torch_dtype) for rows in (w.M, w.N)
    )
    return x, weights


def reference(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Return the product in float64: (M, N)."""
    x = x.double()
    strips = [x @ w[n : n + ROWS_AT_ONCE].double().t() for n in range(0, w.shape[0], ROWS_AT_ONCE)]
    return torch.cat(strips, dim=1)


# The layers of a Llama of 8B: gate and up together, attention's output, q, k and v together, down, and the head.
LAYERS = ((28672, 4096), (4096, 4096), (6144, 4096), (4096, 14336), (128256, 4096))

PROBLEM = Problem(
    name="skinny_gemm",
    formula="y[m, n] = sum over k of x[m, k] * w[n, k]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: w.element_bytes * (w.M * w.K + w.N * w.K),
    writes_bytes=lambda w: w.element_bytes * w.M * w.N,
    flops=lambda w: 2 * w.M * w.N * w.K,
    math=lambda w: MATH[w.dtype],
    max_error=lambda w: MAX_ERROR[w.dtype],
    # A hard value of x fills a row, one of w a column. Two large ones in a row would cancel, and leave their rounding;
    # float16 ends at 65504, so one overflows y.
    hard=lambda w: ({0: (0.0, -0.0, NAN, INF, -INF, *([] if w.dtype == "float16" else [LARGE])), 1: (NAN,)},),
    check_on=(
        Workload.of("bfloat16", M=1, N=1, K=1),
        Workload.of("float16", M=3, N=65, K=17),  # nothing divides anything
        Workload.of("bfloat16", M=1, N=1000, K=1024),
        Workload.of("bfloat16", M=4, N=257, K=4100),
        Workload.of("float16", M=8, N=136, K=8200),  # a long way through few tiles
        Workload.of("bfloat16", M=16, N=8264, K=520),  # more tiles than multiprocessors
        Workload.of("bfloat16", M=17, N=2048, K=2048),
        Workload.of("float16", M=33, N=515, K=333),
        Workload.of("bfloat16", M=100, N=1032, K=1000),
        Workload.of("bfloat16", M=128, N=264, K=4096),
        Workload.of("float16", M=128, N=ROWS_AT_ONCE + 1, K=72),  # the truth's second strip
    ),
    time_on=tuple(
        Workload.of("bfloat16", M=M, N=N, K=K)
        for number, (N, K) in enumerate(LAYERS)
        for M in ((1, 4, 16, 64, 128) if number == 0 else (1, 16))
    ),
)
