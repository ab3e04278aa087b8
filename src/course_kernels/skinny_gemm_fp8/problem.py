"""A few rows times a large matrix of 8-bit floats, the contract.

    y[m, n] = scale_x[m] * scale_w[n] * sum over k of x[m, k] * w[n, k]

Shapes    x (M, K), M = 1 to 128; w (N, K), as layers store their weights; y (M, N); scale_x (M,), scale_w (N,)
Types     x and w float8_e4m3fn, the scales float32, y bfloat16. A workload names the type of y
Cost      2*M*N*K operations; read x, w and the scales, write y once

A scale for every row stretches it so that its largest lands on 448, the largest number of the format: for the weights
once, when they are stored; for x in every step, by round_rows.py. What rounding to 8 bits costs is no error of a
kernel, for the truth is the product of exactly these numbers; `quantisation_error` says it.
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.problem import NAN, Problem, Workload

MOST_ROWS = 128
ROWS_AT_ONCE = 4096  # of w in float64, so that the truth of 128256 x 4096 fits on a small card
LARGEST = 448.0  # of float8_e4m3fn


def rounded_rows(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows as 8-bit floats, and a scale for each: x is about scale * numbers.

    Args:
        x: (rows, K), any floating-point type.
    Returns:
        (rows, K) float8_e4m3fn, the largest of a row 448; (rows,) float32, 1 where a row is all zeros.
    """
    x = x.float()
    scale = x.abs().amax(dim=1) / LARGEST
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)
    # Dividing rounds: the largest can come out a hair above 448, where torch would make it NaN.
    return (x / scale[:, None]).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn), scale


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """x (M, K) and w (N, K), normal with variance 1 before they are rounded, and the scales (M,) and (N,)."""
    x, scale_x = rounded_rows(torch.randn(w.M, w.K, generator=generator, device=device))
    weights, scale_w = rounded_rows(torch.randn(w.N, w.K, generator=generator, device=device))
    return x, weights, scale_x, scale_w


def reference(x: torch.Tensor, w: torch.Tensor, scale_x: torch.Tensor, scale_w: torch.Tensor) -> torch.Tensor:
    """Return the product of what the 8-bit numbers stand for, in float64: (M, N)."""
    x = x.double()
    strips = [x @ w[n : n + ROWS_AT_ONCE].double().t() for n in range(0, w.shape[0], ROWS_AT_ONCE)]
    return torch.cat(strips, dim=1) * scale_x.double()[:, None] * scale_w.double()


def quantisation_error(x: torch.Tensor, weights: torch.Tensor) -> dict[str, float]:
    """Return what eight bits cost, whoever multiplies: errors against the product of x and the weights as they were.

    Args:
        x: (M, K), any floating-point type.
        weights: (N, K), any floating-point type.
    Returns:
        Root mean squares, as shares of what is right: "weights" for the weights themselves, "product" for x times
        them, "weights_alone" for the product of x as it was and of rounded weights.
    """
    (few, scale_few), (many, scale_many) = rounded_rows(x), rounded_rows(weights)
    right = x.double() @ weights.double().t()
    back = many.double() * scale_many.double()[:, None]
    return {
        "weights": _share(back - weights.double(), weights),
        "product": _share(reference(few, many, scale_few, scale_many) - right, right),
        "weights_alone": _share(x.double() @ back.t() - right, right),
    }


def _share(error: torch.Tensor, right: torch.Tensor) -> float:
    return float((error.double().square().mean() / right.double().square().mean()).sqrt())


def max_error(w: Workload) -> float:
    """Bound the error of rounding y to bfloat16 once, and what Hopper's tensor cores lose when they add.

    The product of two 8-bit numbers is exact. But the tensor cores line up the terms of a sum with the largest of
    them and drop what falls off the end: about 14 bits stay (DeepSeek-AI 2024, arXiv:2412.19437, section 3.3.2). So
    each of K terms is off by up to 2**-13 of a sum that is as large as the answer. The signs of these errors are as
    random as those of the terms: together they come to less than 2**-13 * sqrt(K), and twice that is out of reach.
    """
    return 2.0**-8 + 2 * 2.0**-13 * sqrt(w.K)


# The layers of a Llama of 8B: gate and up together, attention's output, q, k and v together, down, and the head.
LAYERS = ((28672, 4096), (4096, 4096), (6144, 4096), (4096, 14336), (128256, 4096))

PROBLEM = Problem(
    name="skinny_gemm_fp8",
    formula="y[m, n] = scale_x[m] * scale_w[n] * sum over k of x[m, k] * w[n, k]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: w.M * w.K + w.N * w.K + 4 * (w.M + w.N),
    writes_bytes=lambda w: w.element_bytes * w.M * w.N,
    flops=lambda w: 2 * w.M * w.N * w.K,
    math=lambda w: "fp8",
    max_error=max_error,
    # float8_e4m3fn has NaN and no infinity, and usual inputs reach its largest number.
    hard=lambda w: ({0: (0.0, -0.0, NAN), 1: (NAN,)}, {2: (NAN,)}, {3: (NAN,)}),
    check_on=(
        Workload.of("bfloat16", M=1, N=1, K=1),
        Workload.of("bfloat16", M=3, N=65, K=17),  # nothing divides anything
        Workload.of("bfloat16", M=1, N=1000, K=1024),
        Workload.of("bfloat16", M=4, N=257, K=4100),
        Workload.of("bfloat16", M=8, N=136, K=8208),  # a long way through few tiles
        Workload.of("bfloat16", M=16, N=8264, K=528),  # more tiles than multiprocessors
        Workload.of("bfloat16", M=17, N=2048, K=2048),
        Workload.of("bfloat16", M=33, N=515, K=333),
        Workload.of("bfloat16", M=100, N=1040, K=1008),
        Workload.of("bfloat16", M=128, N=272, K=4096),
        Workload.of("bfloat16", M=128, N=ROWS_AT_ONCE + 1, K=80),  # the truth's second strip
    ),
    time_on=tuple(
        Workload.of("bfloat16", M=M, N=N, K=K)
        for number, (N, K) in enumerate(LAYERS)
        for M in ((1, 4, 16, 64, 128) if number == 0 else (1, 16))
    ),
)
