"""RMSNorm, kernel 3: programs that stay, and ask for the next row before they add up this one.

Contract  problem.py
Idea      as many programs as fit, each walking over many rows; the next row's x and r are asked for before this row's
          sum is known, so that memory has something to do while warps wait for each other; g is read once a program
Against   k02_one_read, whose programs ask, wait, add up, store and end, and are replaced one by one
Cost      reads x and r, writes y and s, each once; two rows lie in registers, so that fewer programs fit
Limits    with no more rows than programs there is no next row: then it is k02_one_read, and a little more
Source    NVIDIA's CUTLASS, docs/efficient_gemm.md: the software pipeline, here with registers for shared memory
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from functools import cache

import torch
import triton
import triton.language as tl

from course_kernels.rms_norm.arguments import sizes_of
from course_kernels.rms_norm.k02_one_read import once_for, scaled
from course_kernels.rms_norm.problem import EPSILON

# Numbers of a row in each thread: this row's sum and the next row's x and r take some 64 registers of half precision.
NUMBERS = 16
MOST_WARPS = 16

# Warps of a multiprocessor: as many as have 80 registers each. For rows of 4096 that is three programs, and each has
# the 16 KB of a row of x and of r under way at all times; an H200 needs some 30 KB for each multiprocessor.
RESIDENT_WARPS = 24


# --- on the device -----------------------------------------------------------


@triton.jit
def ahead_kernel(
    x_ptr, r_ptr, g_ptr, y_ptr, s_ptr, M, N, epsilon,
    ADD: tl.constexpr, BLOCK: tl.constexpr, ONCE: tl.constexpr,
):  # fmt: skip
    """Add and normalise every row whose number is this program's, or larger by a multiple of their count."""
    step = tl.num_programs(0)
    n = tl.arange(0, BLOCK)
    there = n < N
    g = tl.load(g_ptr + n, mask=there, other=0.0)
    at = tl.program_id(0).to(tl.int64) * N + n  # times N it passes 2**31
    x = tl.load(x_ptr + at, mask=there, other=0.0, eviction_policy=ONCE)
    r = x
    if ADD:
        r = tl.load(r_ptr + at, mask=there, other=0.0, eviction_policy=ONCE)
    for row in tl.range(tl.program_id(0), M, step, num_stages=1):
        following = at + step.to(tl.int64) * N
        ahead = there & (row < M - step)  # a sum could pass 2**31
        next_x = tl.load(x_ptr + following, mask=ahead, other=0.0, eviction_policy=ONCE)
        next_r = next_x
        s = x.to(tl.float32)
        if ADD:
            next_r = tl.load(r_ptr + following, mask=ahead, other=0.0, eviction_policy=ONCE)
            s += r.to(tl.float32)
            tl.store(s_ptr + at, s.to(s_ptr.dtype.element_ty), mask=there, eviction_policy=ONCE)
        y = scaled(s, g, N, epsilon)
        tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=there, eviction_policy=ONCE)
        x, r, at = next_x, next_r, following


# --- on the host -------------------------------------------------------------


def warps_for(N: int) -> int:
    """Return how many warps share a row."""
    return min(max(triton.next_power_of_2(N) // (32 * NUMBERS), 1), MOST_WARPS)


@cache
def programs_for(device: torch.device, M: int, warps: int) -> int:
    """Return as many as fit on the card at once, and no more than there are rows."""
    on_gpu = device.type == "cuda"
    multiprocessors = torch.cuda.get_device_properties(device).multi_processor_count if on_gpu else 1
    return min(multiprocessors * max(RESIDENT_WARPS // warps, 1), M)


def rms_norm(
    x: torch.Tensor,
    g: torch.Tensor,
    r: torch.Tensor | None = None,
    *,
    eps: float = EPSILON,
    warps: int | None = None,
    programs: int | None = None,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Return the rows of x + r divided by their root mean square and weighed by g.

    Args:
        x: (M, N) bfloat16, float16 or float32, contiguous, M <= 2**30, N <= 16384.
        g: (N,), the same type, contiguous.
        r: (M, N), the same type, contiguous; without it the rows of x themselves.
        eps: added to the mean of squares.
        warps: that share a row; without it, what suits N.
        programs: how many; without it, as many as fit on the card.
    Returns:
        With r the pair y, s, each (M, N) of the same type: s = x + r rounded once, y worked out from the sum before it
        was rounded. Without r y alone.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    M, N = sizes_of(x, g, r)
    y = torch.empty_like(x)
    s = None if r is None else torch.empty_like(x)
    warps = warps or warps_for(N)
    ahead_kernel[(programs or programs_for(x.device, M, warps),)](
        x, x if r is None else r, g, y, y if s is None else s, M, N, eps,
        ADD=r is not None, BLOCK=triton.next_power_of_2(N), ONCE=once_for(M, N, x.element_size()),
        num_warps=warps,
    )  # fmt: skip
    return y if s is None else (y, s)
