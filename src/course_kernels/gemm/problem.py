"""Matrix multiply on tensor cores, the contract.

    C[m, n] = sum over k of A[m, k] * B[k, n]

Shapes    A (M, K), B (K, N), C (M, N), row-major
Types     float16 or bfloat16 in and out, sums in float32; float32 in and out means TF32 products
Cost      2*M*N*K operations; read A and B, write C once

A workload with `zeros=True` fills A and B with zeros: same work, same bytes, but no bit ever changes on the
wires. It shows what the data do to the power a card draws.
"""

from __future__ import annotations

import torch

from course_kernels.problem import INF, LARGE, NAN, Problem, Workload

# The float64 copy of A is made a strip at a time, so that the truth of 8192 x 8192 fits on a small card.
ROWS_AT_ONCE = 1024

MATH = {"bfloat16": "bf16", "float16": "fp16", "float32": "tf32"}

# Rounding C once costs up to 2**-8 for bfloat16 and 2**-11 for float16. The library may also add up partial
# sums in 16 bits, which costs as much again. TF32 keeps 11 significant bits of every input.
MAX_ERROR = {"bfloat16": 2.0**-7, "float16": 2.0**-9, "float32": 2.0**-7}


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return A (M, K) and B (K, N), normal with variance 1, or zeros where the workload says `zeros`."""
    shapes = ((w.M, w.K), (w.K, w.N))
    if w.dims.get("zeros", False):
        a, b = (torch.zeros(shape, dtype=w.torch_dtype, device=device) for shape in shapes)
    else:
        a, b = (
            torch.randn(shape, generator=generator, dtype=torch.float32, device=device).to(w.torch_dtype)
            for shape in shapes
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


PROBLEM = Problem(
    name="gemm",
    formula="C[m, n] = sum over k of A[m, k] * B[k, n]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: w.element_bytes * (w.M * w.K + w.K * w.N),
    writes_bytes=lambda w: w.element_bytes * w.M * w.N,
    flops=lambda w: 2 * w.M * w.N * w.K,
    math=lambda w: MATH[w.dtype],
    max_error=lambda w: MAX_ERROR[w.dtype],
    # A hard value of A fills a row, one of B a column. Two large ones in a row would cancel, and leave their rounding;
    # float16 ends at 65504, so one overflows C.
    hard=lambda w: ({0: (0.0, -0.0, NAN, INF, -INF, *([] if w.dtype == "float16" else [LARGE])), 1: (NAN,)},),
    check_on=(
        Workload.of("bfloat16", M=1, N=1, K=1),
        Workload.of("float16", M=33, N=65, K=17),  # nothing divides anything
        Workload.of("float32", M=130, N=70, K=257),
        Workload.of("bfloat16", M=ROWS_AT_ONCE + 1, N=96, K=512),  # the truth's second strip
        Workload.of("float16", M=3, N=3, K=3),
        Workload.of("bfloat16", M=127, N=127, K=127),
        Workload.of("bfloat16", M=1000, N=1000, K=1000),  # whole vectors, but no whole tiles
        Workload.of("float16", M=1000, N=264, K=72),
        Workload.of("bfloat16", M=1023, N=1023, K=1023),
        Workload.of("float32", M=1000, N=1023, K=127),
        Workload.of("bfloat16", M=136, N=8, K=4104),  # a long way through few tiles
    ),
    time_on=(
        Workload.of("bfloat16", M=8192, N=8192, K=8192),
        Workload.of("float16", M=8192, N=8192, K=8192),
        Workload.of("float32", M=8192, N=8192, K=8192),
    ),
)
