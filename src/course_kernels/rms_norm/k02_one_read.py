"""RMSNorm, kernel 2: a program keeps its row in registers.

Contract  problem.py
Idea      all of a row is asked for at once and stays in registers until it is scaled: x and r are read once
Against   k01_two_passes, which asks for every number a second time when its sum is known
Cost      reads x, r and g, writes y and s, each once: the least there is. g comes from a cache for all rows but a few
Limits    a row is no longer than the registers of 16 warps. N that is no power of two leaves threads without work.
          A program asks for nothing while it adds up; only its neighbours on the multiprocessor do
Next      k03_ahead asks for the next row before this one is added up
Source    Volkov, Better Performance at Lower Occupancy, GTC 2010
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from course_kernels.dependent_launch import check_early
from course_kernels.rms_norm.arguments import sizes_of
from course_kernels.rms_norm.problem import EPSILON

# Numbers of a row in each thread. Where there are many rows, 32: in half precision four vectors of 16 bytes of x and
# as many of r are asked for before one is used, and the sum takes 32 registers. Where every row has a multiprocessor
# to itself what counts is how long one row takes: one vector a thread, and the row over as many warps as that makes.
MANY, ALONE = 32, 8
FEW_ROWS = 128  # an H200 has 132 multiprocessors
MOST_WARPS = 16

# Past so many bytes of one call nothing of it is still in L2 when it is read again (an H200's driver says 60 MiB): what
# is read once should push out nothing, least of all g.
STREAMED_BYTES = 32 * 2**20


# --- on the device -----------------------------------------------------------


@triton.jit
def scaled(s, g, N, epsilon):
    """Return one row s in float32, divided by its root mean square and weighed by g.

    Zeros past the end count as no number.
    """
    return s * tl.rsqrt(tl.sum(s * s) / N + epsilon) * g.to(tl.float32)


@triton.jit
def one_read_kernel(
    x_ptr, r_ptr, g_ptr, y_ptr, s_ptr, N, epsilon,
    ADD: tl.constexpr, BLOCK: tl.constexpr, ONCE: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Add and normalise one row."""
    row = tl.program_id(0).to(tl.int64) * N  # times N it passes 2**31
    n = tl.arange(0, BLOCK)
    there = n < N
    if PDL:
        gdc_launch_dependents()  # whoever comes next waits for the end of this kernel by itself
    g = tl.load(g_ptr + n, mask=there, other=0.0)  # a weight: no kernel before this one wrote it
    if PDL:
        gdc_wait()
    x = tl.load(x_ptr + row + n, mask=there, other=0.0, eviction_policy=ONCE)
    s = x.to(tl.float32)
    if ADD:
        s += tl.load(r_ptr + row + n, mask=there, other=0.0, eviction_policy=ONCE).to(tl.float32)
        tl.store(s_ptr + row + n, s.to(s_ptr.dtype.element_ty), mask=there, eviction_policy=ONCE)
    y = scaled(s, g, N, epsilon)
    tl.store(y_ptr + row + n, y.to(y_ptr.dtype.element_ty), mask=there, eviction_policy=ONCE)


# --- on the host -------------------------------------------------------------


def warps_for(M: int, N: int) -> int:
    """Return how many warps share a row."""
    numbers = ALONE if M <= FEW_ROWS else MANY
    return min(max(triton.next_power_of_2(N) // (32 * numbers), 1), MOST_WARPS)


def once_for(M: int, N: int, element_bytes: int) -> str:
    """Return what the caches are told of x, r, y and s."""
    return "evict_first" if 4 * M * N * element_bytes > STREAMED_BYTES else ""


def rms_norm(
    x: torch.Tensor,
    g: torch.Tensor,
    r: torch.Tensor | None = None,
    *,
    eps: float = EPSILON,
    warps: int | None = None,
    pdl: bool = False,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Return the rows of x + r divided by their root mean square and weighed by g.

    Args:
        x: (M, N) bfloat16, float16 or float32, contiguous, M <= 2**30, N <= 16384.
        g: (N,), the same type, contiguous.
        r: (M, N), the same type, contiguous; without it the rows of x themselves.
        eps: added to the mean of squares.
        warps: that share a row; without it, what suits M and N.
        pdl: begin while the kernel before this one on the stream ends (Hopper and later): g is read ahead, and must
            not be what that kernel writes.
    Returns:
        With r the pair y, s, each (M, N) of the same type: s = x + r rounded once, y worked out from the sum before it
        was rounded. Without r y alone.
    Raises:
        TypeError, ValueError: see `sizes_of`; ValueError too where no kernel can begin early.
    """
    sizes = sizes_of(x, g, r)
    check_early(pdl, x.device)
    y = torch.empty_like(x)
    s = None if r is None else torch.empty_like(x)
    _start(x, g, r, y, s, sizes, eps, warps, pdl)
    return y if s is None else (y, s)


def rms_norm_in_place(
    x: torch.Tensor,
    g: torch.Tensor,
    r: torch.Tensor,
    *,
    eps: float = EPSILON,
    warps: int | None = None,
    pdl: bool = False,
) -> None:
    """Compute `rms_norm` in place, y for x and s for r: nothing is allocated. Arguments and errors as `rms_norm`.

    Raises:
        ValueError: besides, x and r that lie in the same memory.
    """
    sizes = sizes_of(x, g, r)
    check_early(pdl, x.device)
    if x.data_ptr() == r.data_ptr():
        raise ValueError("r: expected another tensor than x, got the same memory")
    _start(x, g, r, x, r, sizes, eps, warps, pdl)


def _start(x, g, r, y, s, sizes, eps, warps, pdl):
    M, N = sizes
    one_read_kernel[(M,)](
        x, x if r is None else r, g, y, y if s is None else s, N, eps,
        ADD=r is not None, BLOCK=triton.next_power_of_2(N), ONCE=once_for(M, N, x.element_size()), PDL=pdl,
        num_warps=warps or warps_for(M, N), launch_pdl=pdl,
    )  # fmt: skip
