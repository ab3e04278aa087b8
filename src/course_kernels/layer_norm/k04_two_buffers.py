"""LayerNorm, kernel 4: blocks that stay, and fetch the next row while they work on this one.

Contract  problem.py
Idea      as many blocks as fit, each walking over many rows. The next row is on its way to shared memory, by cp.async,
          while this one is added up and written
Against   k03_row_kept, a block for each row, which asks, waits, adds up, writes and ends, and is replaced by another
Cost      reads x and writes y once; g and b once for each block. A row takes the way through shared memory
Limits    where enough blocks are resident, the others' rows are on their way already, and there is nothing to gain
Source    NVIDIA's CUDA programming guide, asynchronous copies; Triton makes them of a loop with `num_stages`
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from functools import cache

import torch
import triton
import triton.language as tl

from course_kernels.arguments import check_size, interpreted
from course_kernels.layer_norm.arguments import sizes_of
from course_kernels.layer_norm.k03_row_kept import centred
from course_kernels.layer_norm.problem import EPSILON
from course_kernels.problem import Workload

MOST = 8192  # numbers of a row: two of them are 64 KB of shared memory
STAGES = 3  # two buffers: Triton counts the row at work as a stage
A_WARP = 256  # numbers of a row for each warp: 8 for each thread, since those of x, g and b lie in registers at once
MOST_WARPS = 16
# Numbers of the rows that a multiprocessor works on at a time: with 48 registers or a few more each, two blocks of 512
# threads fit beside one another, and each has two rows in its buffers.
AT_WORK = 8192
MOST_BLOCKS = 32


# --- on the device -----------------------------------------------------------


# region kernel
@triton.jit
def two_buffers_kernel(x_ptr, g_ptr, b_ptr, y_ptr, M, N, epsilon, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """Normalise every row whose number is this program's, or larger by a multiple of their count."""
    n = tl.arange(0, BLOCK)
    there = n < N
    g = tl.load(g_ptr + n, mask=there, other=0.0)
    b = tl.load(b_ptr + n, mask=there, other=0.0)
    for row in tl.range(tl.program_id(0), M, tl.num_programs(0), num_stages=STAGES):
        at = row * tl.cast(N, tl.int64) + n  # it passes 2**31
        x = tl.load(x_ptr + at, mask=there, other=0.0)
        tl.store(y_ptr + at, centred(x, there, N, epsilon) * g + b, mask=there)


# endregion


# --- on the host -------------------------------------------------------------


def supports(w: Workload) -> bool:
    """Return whether two rows of a workload fit into a block's shared memory."""
    return w.N <= MOST


@cache
def programs_for(device: torch.device, M: int, block: int) -> int:
    """Return as many as fit on the card at once, and no more than there are rows."""
    multiprocessors = 1 if interpreted() else torch.cuda.get_device_properties(device).multi_processor_count
    return min(multiprocessors * min(MOST_BLOCKS, max(1, AT_WORK // block)), M)


def layer_norm(
    x: torch.Tensor, g: torch.Tensor, b: torch.Tensor, *, eps: float = EPSILON, programs: int | None = None
) -> torch.Tensor:
    """Return the rows of x with mean 0 and variance 1, weighed by g and shifted by b.

    Args:
        x: (M, N) float32, contiguous, M <= 2**30, N <= 8192.
        g, b: (N,) float32, contiguous.
        eps: added to the variance.
        programs: how many; by default as many as fit on the card.
    Returns:
        (M, N) float32.
    Raises:
        TypeError, ValueError: see `sizes_of`; ValueError too where a row does not fit, or for no program.
    """
    return _start(x, g, b, eps, programs, STAGES)


def without_buffers(
    x: torch.Tensor, g: torch.Tensor, b: torch.Tensor, *, eps: float = EPSILON, programs: int | None = None
) -> torch.Tensor:
    """Run the same blocks with nothing on its way ahead: each row is asked for when the one before is written.

    Arguments, answer and errors are those of `layer_norm`.
    """
    return _start(x, g, b, eps, programs, 1)


def _start(
    x: torch.Tensor, g: torch.Tensor, b: torch.Tensor, eps: float, programs: int | None, stages: int
) -> torch.Tensor:
    M, N = sizes_of(x, g, b)
    check_size("x", "N", N, MOST)
    if programs is not None and programs < 1:
        raise ValueError(f"programs: expected at least 1, got {programs}")
    y = torch.empty_like(x)
    block = triton.next_power_of_2(N)
    warps = min(MOST_WARPS, max(1, block // A_WARP))
    grid = (programs or programs_for(x.device, M, block),)
    two_buffers_kernel[grid](x, g, b, y, M, N, eps, BLOCK=block, STAGES=stages, num_warps=warps)
    return y
