"""Convolution, kernel 1: a matrix multiply whose right matrix is worked out as it is read.

Contract  problem.py
Idea      filters are the rows of a matrix, C*R*S numbers each. Beside it stands a matrix with a column for every place
          of the answer, in which the numbers lie that the filter covers there. Nobody writes that one down: a program
          works out from a row and a column where in the image the number is, and fetches it from there
Against   writing the matrix first, as the truth in problem.py does: every number of an image stands in it up to R*S
          times, and all of that would go to memory and back
Cost      2*B*K*P*Q*C*R*S operations; x is read again for every tile of filters, mostly from a cache, and a whole number
          of times for places that overlap
Limits    an address, two divisions and four comparisons for each fetched number, and neighbours in a column of the
          matrix are no neighbours in memory: with a stride of 4 every fourth number of a line is used at a time.
          96 filters fill three quarters of a tile. In float32 no tensor core takes part
Source    Chetlur et al. 2014, arXiv:1410.0759, section 3
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import torch
import triton
import triton.language as tl

from course_kernels.conv2d.arguments import sizes_of

# A tile of the answer: filters times places. 32 registers for its sums in each of 256 threads with the widest.
MOST_FILTERS_AT_ONCE, LEAST_FILTERS_AT_ONCE = 128, 16
PLACES = 128
# Products of a step. In float32 the sums are threads' own, and unrolled: more would not fit.
STEP = {"tf32": 32, "ieee": 16}
WARPS, STAGES = 8, 3


# --- on the device -----------------------------------------------------------


@triton.jit
def implicit_gemm_kernel(
    x_ptr, f_ptr, bias_ptr, y_ptr, B, H, W, K, P, Q, stride, padding,
    C: tl.constexpr, R: tl.constexpr, S: tl.constexpr,
    FILTERS: tl.constexpr, PLACES: tl.constexpr, STEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Write one tile: some filters, at some places of all images."""
    place = tl.program_id(0) * PLACES + tl.arange(0, PLACES)
    k = tl.program_id(1) * FILTERS + tl.arange(0, FILTERS)
    image = place // (P * Q)
    p = place % (P * Q) // Q
    q = place % Q
    top, left = p * stride - padding, q * stride - padding
    corner = image.to(tl.int64) * (C * H * W)
    inside = place < B * P * Q

    sums = tl.zeros([FILTERS, PLACES], tl.float32)
    for first in tl.range(0, C * R * S, STEP):
        n = first + tl.arange(0, STEP)
        c, r, s = n // (R * S), n % (R * S) // S, n % S
        row, column = top[None, :] + r[:, None], left[None, :] + s[:, None]
        there = (row >= 0) & (row < H) & (column >= 0) & (column < W) & inside[None, :]
        there &= (n < C * R * S)[:, None]
        at = corner[None, :] + c[:, None] * (H * W) + row * W + column
        covered = tl.load(x_ptr + at, mask=there, other=0.0)
        weights = tl.load(
            f_ptr + k.to(tl.int64)[:, None] * (C * R * S) + n[None, :],
            mask=(k < K)[:, None] & (n < C * R * S)[None, :],
            other=0.0,
        )
        sums = tl.dot(weights, covered, sums, input_precision=PRECISION)
    sums += tl.load(bias_ptr + k, mask=k < K, other=0.0)[:, None]

    channel = image.to(tl.int64)[None, :] * K + k[:, None]
    at = channel * (P * Q) + (place % (P * Q))[None, :]
    tl.store(y_ptr + at, sums, mask=(k < K)[:, None] & inside[None, :])


# --- on the host -------------------------------------------------------------


def conv2d(
    x: torch.Tensor,
    f: torch.Tensor,
    bias: torch.Tensor,
    *,
    stride: int = 1,
    padding: int = 0,
    tf32: bool = False,
) -> torch.Tensor:
    """Return every filter laid over every place of every image.

    Args:
        x: (B, C, H, W) float32, contiguous.
        f: (K, C, R, S) float32, contiguous.
        bias: (K,) float32, contiguous.
        stride, padding: of both directions.
        tf32: whether inputs are rounded to TF32 and multiplied on tensor cores; otherwise products are float32.
    Returns:
        (B, K, P, Q) float32.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    to = sizes_of(x, f, bias, stride, padding)
    y = torch.empty(to.B, to.K, to.P, to.Q, dtype=torch.float32, device=x.device)
    precision = "tf32" if tf32 else "ieee"
    filters = min(MOST_FILTERS_AT_ONCE, max(LEAST_FILTERS_AT_ONCE, triton.next_power_of_2(to.K)))
    grid = triton.cdiv(to.B * to.P * to.Q, PLACES), triton.cdiv(to.K, filters)
    implicit_gemm_kernel[grid](
        x, f, bias, y, to.B, to.H, to.W, to.K, to.P, to.Q, stride, padding,
        C=to.C, R=to.R, S=to.S, FILTERS=filters, PLACES=PLACES, STEP=STEP[precision], PRECISION=precision,
        num_warps=WARPS, num_stages=STAGES,
    )  # fmt: skip
    return y
