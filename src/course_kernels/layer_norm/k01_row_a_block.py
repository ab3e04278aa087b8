"""LayerNorm, kernel 1: one block for each row, which passes it twice.

Contract  problem.py
Idea      a row needs its mean and its variance before any of its numbers can be written. So a block takes a row,
          collects both in one pass, and writes in a second one
Cost      reads x twice, the second time from a cache if the row is still there; g, b and y once for each row
Limits    there are as many blocks as rows. Sixteen rows, however long, keep sixteen multiprocessors busy, and the
          others have nothing to do
Next      k02_row_split gives a row to many blocks
Source    Welford 1962, doi:10.1080/00401706.1962.10490022
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import torch
import triton
import triton.language as tl

from course_kernels.layer_norm.arguments import sizes_of
from course_kernels.layer_norm.problem import EPSILON
from course_kernels.layer_norm.statistics import normalise, of_numbers

MOST = 8192  # numbers of a step: 8 for each thread of the largest block, two vectors of 16 bytes under way at a time
LEAST = 128
A_WARP = 256  # numbers of a step for each warp


# --- on the device -----------------------------------------------------------


@triton.jit
def row_a_block_kernel(x_ptr, g_ptr, b_ptr, y_ptr, N, epsilon, BLOCK: tl.constexpr):
    """Normalise one row."""
    row = tl.program_id(0).to(tl.int64) * N  # times N it passes 2**31
    mean, squares = of_numbers(x_ptr + row, N, BLOCK)
    scale = 1.0 / tl.sqrt(squares / N + epsilon)
    normalise(x_ptr + row, y_ptr + row, g_ptr, b_ptr, N, mean, scale, BLOCK)


# --- on the host -------------------------------------------------------------


def layer_norm(x: torch.Tensor, g: torch.Tensor, b: torch.Tensor, *, eps: float = EPSILON) -> torch.Tensor:
    """Return the rows of x with mean 0 and variance 1, weighed by g and shifted by b.

    Args:
        x: (M, N) float32, contiguous, M and N <= 2**30.
        g, b: (N,) float32, contiguous.
        eps: added to the variance.
    Returns:
        (M, N) float32.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    M, N = sizes_of(x, g, b)
    y = torch.empty_like(x)
    block = min(MOST, max(LEAST, triton.next_power_of_2(N)))
    row_a_block_kernel[(M,)](x, g, b, y, N, eps, BLOCK=block, num_warps=max(1, block // A_WARP))
    return y
