"""A batched product of a matrix and a vector, both in NVFP4: the contract.

    c[l, m] = sum over k of (a[l, m, k] * scales_a[l, m, k / 16]) * (b[l, k] * scales_b[l, k / 16])

Shapes    a (L, M, K) as bytes (L, M, K/2), scales_a (L, M, K/16); b (L, K) as bytes (L, K/2), scales_b (L, K/16);
          c (L, M). K a multiple of 32, so that every row begins at a multiple of 16 bytes
Types     a and b E2M1, two in a byte, the first in the low four bits; scales E4M3 (float8_e4m3fn); c float16
Cost      2*L*M*K operations; read a, b and their scales, write c once. Nine bytes for sixteen numbers of a, and each
          number is used once: memory decides

It is problem 1 of the Blackwell NVFP4 kernel hackathon of GPU MODE and NVIDIA, with the batch first and without the
second scale of the tensor, which no kernel here would see: it multiplies c. Rounding to four bits is no error of a
kernel: the truth is the product of exactly these numbers. E2M1 numbers are multiples of 1/2, so products are
multiples of 1/4, and the sum of a block of sixteen is a whole number of quarters, at most 2304: exact in float32, in
an int, and, taken in two parts, in float16.

Source    GPU MODE and NVIDIA, reference-kernels, problems/nvidia/nvfp4_gemv
"""

from __future__ import annotations

import torch

from course_kernels.gemv_fp4.formats import BLOCK, values_of
from course_kernels.problem import NAN, Problem, Workload

STEP = 32  # K is a multiple of this
MOST_K = 2**16
NUMBERS_AT_ONCE = 2**25  # of a in float64, so that the truth of the large shapes fits on a small card
LARGEST_SCALE = 0x40  # the code of 2.0: with more, sums of many numbers would leave float16


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Any codes: a and b of E2M1, scales of E4M3 from 0 to 2, subnormal ones among them."""

    def drawn(below: int, *size: int) -> torch.Tensor:
        return torch.randint(below, size, generator=generator, device=device, dtype=torch.uint8)

    def scales(*size: int) -> torch.Tensor:
        return drawn(LARGEST_SCALE + 1, *size).view(torch.float8_e4m3fn)

    L, M, K = w.L, w.M, w.K
    return drawn(256, L, M, K // 2), scales(L, M, K // BLOCK), drawn(256, L, K // 2), scales(L, K // BLOCK)


def reference(
    a: torch.Tensor, scales_a: torch.Tensor, b: torch.Tensor, scales_b: torch.Tensor
) -> torch.Tensor:
    """Return the product of what the codes stand for, in float64: (L, M)."""
    L, M, half = a.shape
    vectors = values_of(b, scales_b)
    rows = max(NUMBERS_AT_ONCE // (2 * half), 1)
    c = torch.empty((L, M), dtype=torch.float64, device=a.device)
    for batch in range(L):
        for m in range(0, M, rows):
            some = values_of(a[batch, m : m + rows], scales_a[batch, m : m + rows])
            c[batch, m : m + rows] = some @ vectors[batch]
    return c


def reads_bytes(w: Workload) -> int:
    """Half a byte for each number of a and b, and a byte for each sixteen."""
    return w.L * (w.M + 1) * (w.K // 2 + w.K // BLOCK)


HACKATHON = tuple(
    Workload.of("float16", L=L, M=M, K=K) for M, K, L in ((7168, 16384, 1), (4096, 7168, 8), (7168, 2048, 4))
)
# The first of them with the batch raised until memory has 512 MB to deliver: what a start costs is then no part of it.
LARGE = Workload.of("float16", L=8, M=7168, K=16384)

PROBLEM = Problem(
    name="gemv_fp4",
    formula="c[l, m] = sum over k of a[l, m, k] * scales_a[l, m, k // 16] * b[l, k] * scales_b[l, k // 16]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=reads_bytes,
    writes_bytes=lambda w: w.element_bytes * w.L * w.M,
    flops=lambda w: 2 * w.L * w.M * w.K,
    math=lambda w: "fp16",
    # Rounding c to float16 costs 2**-11, and sums in float32 far less.
    max_error=lambda w: 2.0**-10,
    # All sixteen codes of E2M1 are usual ones; of E4M3 one is NaN.
    hard=lambda w: ({1: (0.0, NAN)}, {3: (0.0, NAN)}),
    check_on=(
        Workload.of("float16", L=1, M=1, K=32),  # a vector of 16 bytes
        Workload.of("float16", L=3, M=17, K=96),
        Workload.of("float16", L=1, M=133, K=1024),  # one row more than the large cards have multiprocessors
        Workload.of("float16", L=2, M=65, K=2080),  # a vector more than two warps take
        Workload.of("float16", L=5, M=1001, K=544),
        Workload.of("float16", L=1, M=37, K=16384),
        Workload.of("float16", L=2, M=19, K=16416),  # a vector more than sixteen warps take
        Workload.of("float16", L=8, M=130, K=7168),
        Workload.of("float16", L=70, M=3, K=64),
        Workload.of("float16", L=1, M=70000, K=32),  # more rows than a grid has along its second dimension
    ),
    time_on=(*HACKATHON, LARGE),
)
