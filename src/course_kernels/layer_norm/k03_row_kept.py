"""LayerNorm, kernel 3: a row is read once and stays in registers.

Contract  problem.py
Idea      a block asks for its whole row at once and keeps it. Mean, variance and what is written are three passes over
          registers, which cost next to nothing, and one over memory
Against   k01_row_a_block, which takes a row in steps, keeps nothing of it and reads it a second time
Cost      reads x, g and b once for each row, g and b from a cache; writes y once
Limits    a row of more than MOST numbers does not fit; and a block has nothing to ask for while it adds up and writes,
          so that other blocks must be there that ask
Next      k04_two_buffers asks for the next row before it adds up this one
Source    torch/_inductor/codegen/triton.py: what its compiler calls a persistent reduction
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import torch
import triton
import triton.language as tl

from course_kernels.arguments import check_size
from course_kernels.layer_norm.arguments import sizes_of
from course_kernels.layer_norm.problem import EPSILON
from course_kernels.problem import Workload

MOST = 16384  # numbers of a row: 32 in each thread of the largest block
A_WARP = 512  # numbers of a row for each warp: 16 for each thread, four vectors of 16 bytes
MOST_WARPS = 16


# --- on the device -----------------------------------------------------------


@triton.jit
def centred(x, there, N, epsilon):
    """Return a row in registers less its mean, over the root of its variance; zeros past the end count as no number."""
    rough = tl.sum(x) / N
    mean = rough + tl.sum(tl.where(there, x - rough, 0.0)) / N  # what the first sum has rounded away
    far = tl.where(there, x - mean, 0.0)
    return far * (1.0 / tl.sqrt(tl.sum(far * far) / N + epsilon))


# region kernel
@triton.jit
def row_kept_kernel(x_ptr, g_ptr, b_ptr, y_ptr, N, epsilon, BLOCK: tl.constexpr):
    """Normalise one row."""
    row = tl.program_id(0).to(tl.int64) * N  # times N it passes 2**31
    n = tl.arange(0, BLOCK)
    there = n < N
    x = tl.load(x_ptr + row + n, mask=there, other=0.0)  # the only time
    g = tl.load(g_ptr + n, mask=there, other=0.0)
    b = tl.load(b_ptr + n, mask=there, other=0.0)
    tl.store(y_ptr + row + n, centred(x, there, N, epsilon) * g + b, mask=there)


# endregion


# --- on the host -------------------------------------------------------------


def supports(w: Workload) -> bool:
    """Return whether a row of a workload fits into a block."""
    return w.N <= MOST


def block_of(N: int) -> tuple[int, int]:
    """Return how many numbers a block has room for, and its warps."""
    block = triton.next_power_of_2(N)
    return block, min(MOST_WARPS, max(1, block // A_WARP))


def layer_norm(x: torch.Tensor, g: torch.Tensor, b: torch.Tensor, *, eps: float = EPSILON) -> torch.Tensor:
    """Return the rows of x with mean 0 and variance 1, weighed by g and shifted by b.

    Args:
        x: (M, N) float32, contiguous, M <= 2**30, N <= 16384.
        g, b: (N,) float32, contiguous.
        eps: added to the variance.
    Returns:
        (M, N) float32.
    Raises:
        TypeError, ValueError: see `sizes_of`; ValueError too where a row does not fit.
    """
    M, N = sizes_of(x, g, b)
    check_size("x", "N", N, MOST)
    y = torch.empty_like(x)
    block, warps = block_of(N)
    row_kept_kernel[(M,)](x, g, b, y, N, eps, BLOCK=block, num_warps=warps)
    return y
