"""RMSNorm, kernel 1: one program for each row, which passes it twice.

Contract  problem.py
Idea      the addition, the mean of squares and the scaling in one kernel, so that the sum does not go to memory and
          come back between them: once over the row for its squares, once more to scale it
Cost      reads x and r twice, the second time from a cache if they are still there; writes y and s once
Limits    the second pass waits for the first, and asks again for what it had
Next      k02_one_read keeps the row in registers
Source    Zhang & Sennrich 2019, arXiv:1910.07467, equation 4
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import torch
import triton
import triton.language as tl

from course_kernels.rms_norm.arguments import sizes_of
from course_kernels.rms_norm.problem import EPSILON

BLOCK = 1024  # numbers of a step: one vector of 16 bytes of half precision for each of 128 threads
WARPS = 4


# --- on the device -----------------------------------------------------------


@triton.jit
def two_passes_kernel(x_ptr, r_ptr, g_ptr, y_ptr, s_ptr, N, epsilon, ADD: tl.constexpr, BLOCK: tl.constexpr):
    """Add and normalise one row."""
    row = tl.program_id(0).to(tl.int64) * N  # times N it passes 2**31
    squares = tl.zeros([BLOCK], tl.float32)
    for first in tl.range(0, N, BLOCK):
        n = first + tl.arange(0, BLOCK)
        s = tl.load(x_ptr + row + n, mask=n < N, other=0.0).to(tl.float32)
        if ADD:
            s += tl.load(r_ptr + row + n, mask=n < N, other=0.0).to(tl.float32)
            tl.store(s_ptr + row + n, s.to(s_ptr.dtype.element_ty), mask=n < N)
        squares += s * s
    scale = tl.rsqrt(tl.sum(squares) / N + epsilon)
    for first in tl.range(0, N, BLOCK):
        n = first + tl.arange(0, BLOCK)
        s = tl.load(x_ptr + row + n, mask=n < N, other=0.0).to(tl.float32)
        if ADD:
            # Added up again: what s_ptr holds was rounded.
            s += tl.load(r_ptr + row + n, mask=n < N, other=0.0).to(tl.float32)
        g = tl.load(g_ptr + n, mask=n < N, other=0.0).to(tl.float32)
        tl.store(y_ptr + row + n, (s * scale * g).to(y_ptr.dtype.element_ty), mask=n < N)


# --- on the host -------------------------------------------------------------


def rms_norm(
    x: torch.Tensor, g: torch.Tensor, r: torch.Tensor | None = None, *, eps: float = EPSILON
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Return the rows of x + r divided by their root mean square and weighed by g.

    Args:
        x: (M, N) bfloat16, float16 or float32, contiguous, M <= 2**30, N <= 16384.
        g: (N,), the same type, contiguous.
        r: (M, N), the same type, contiguous; without it the rows of x themselves.
        eps: added to the mean of squares.
    Returns:
        With r the pair y, s, each (M, N) of the same type: s = x + r rounded once, y worked out from the sum before it
        was rounded. Without r y alone.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    M, N = sizes_of(x, g, r)
    y = torch.empty_like(x)
    s = x if r is None else torch.empty_like(x)
    residual = x if r is None else r
    two_passes_kernel[(M,)](x, residual, g, y, s, N, eps, ADD=r is not None, BLOCK=BLOCK, num_warps=WARPS)
    return y if r is None else (y, s)
