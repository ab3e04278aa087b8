"""Matrix multiply of 8-bit floating-point numbers, the contract.

    C[m, n] = scale_a * scale_b * sum over k of A[m, k] * B[n, k]

Shapes    A (M, K), B (N, K), C (M, N), row-major; B is stored transposed, as layers store their weights, and as the
          tensor cores want 8-bit numbers; scale_a and scale_b (1,)
Types     A and B float8_e4m3fn, the scales float32, C bfloat16. A workload names the type of C
Cost      2*M*N*K operations; read A, B and the scales, write C once

float8_e4m3fn has 4 bits of exponent and 3 of fraction: eight steps between a power of two and the next, and nothing
past 448. The scale stretches a matrix so that its largest element lands there.
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.problem import NAN, Problem, Workload

# The float64 copy of A is made a strip at a time, so that the truth of 8192 x 8192 fits on a small card.
ROWS_AT_ONCE = 1024
LARGEST = 448.0  # of float8_e4m3fn


def rounded_to_fp8(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a float32 matrix as 8-bit numbers and their scale: x is about scale * numbers.

    Args:
        x: any shape, float32, not all zeros.
    Returns:
        float8_e4m3fn of the same shape, the largest of them 448; (1,) float32.
    """
    scale = (x.abs().amax() / LARGEST).reshape(1)
    # Dividing and multiplying round: the largest can come out a hair above 448, where torch would make it NaN.
    return (x / scale).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn), scale


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return A (M, K) and B (N, K), normal with variance 1 before they are rounded, and the scale of each (1,)."""
    a, scale_a = rounded_to_fp8(torch.randn(w.M, w.K, generator=generator, device=device))
    b, scale_b = rounded_to_fp8(torch.randn(w.N, w.K, generator=generator, device=device))
    return a, b, scale_a, scale_b


def reference(a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor) -> torch.Tensor:
    """Return the product of what the 8-bit numbers stand for, in float64: (M, N).

    Rounding to 8 bits is not its error.
    """
    b = b.double()
    scale = scale_a.double() * scale_b.double()
    c = torch.empty(a.shape[0], b.shape[0], dtype=torch.float64, device=a.device)
    for row in range(0, a.shape[0], ROWS_AT_ONCE):
        strip = slice(row, row + ROWS_AT_ONCE)
        c[strip] = a[strip].double() @ b.t() * scale
    return c


def max_error(w: Workload) -> float:
    """Bound the error of rounding C to bfloat16 once, and what Hopper's tensor cores lose when they add.

    The product of two 8-bit numbers is exact. But the tensor cores line up the terms of a sum with the largest of
    them and drop what falls off the end: about 14 bits stay (DeepSeek-AI 2024, arXiv:2412.19437, section 3.3.2). So
    each of K terms is off by up to 2**-13 of a sum that is as large as the answer. The signs of these errors are as
    random as those of the terms: together they come to less than 2**-13 * sqrt(K), and twice that is out of reach.
    """
    return 2.0**-8 + 2 * 2.0**-13 * sqrt(w.K)


PROBLEM = Problem(
    name="gemm_fp8",
    formula="C[m, n] = scale_a * scale_b * sum over k of A[m, k] * B[n, k]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: w.M * w.K + w.N * w.K + 2 * 4,
    writes_bytes=lambda w: w.element_bytes * w.M * w.N,
    flops=lambda w: 2 * w.M * w.N * w.K,
    math=lambda w: "fp8",
    max_error=max_error,
    # float8_e4m3fn has NaN and no infinity, and usual inputs reach its largest number.
    hard=lambda w: ({0: (0.0, -0.0, NAN), 1: (NAN,)},),
    check_on=(
        Workload.of("bfloat16", M=1, N=1, K=1),
        Workload.of("bfloat16", M=33, N=65, K=17),  # nothing divides anything
        Workload.of("bfloat16", M=130, N=72, K=272),  # rows of a multiple of 16 bytes, but no whole tile
        Workload.of("bfloat16", M=ROWS_AT_ONCE + 1, N=96, K=512),  # the truth's second strip
    ),
    time_on=(Workload.of("bfloat16", M=8192, N=8192, K=8192),),
)
