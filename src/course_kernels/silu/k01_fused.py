"""SiLU, kernel 1: sigmoid and product in one pass.

Contract  problem.py
Idea      a program takes a block of numbers; the sigmoid never leaves its registers
Against   two operators, which write the sigmoid to memory and read it again: five passes over it instead of two
Cost      reads x once and writes y once. exp and the quotient are two instructions of the special-function unit for
          each number, and memory brings fewer numbers than that unit takes
Limits    a vector that fits into one wave of programs is a matter of latency: one wait for memory, and the launch
Source    Elfwing, Uchibe & Doya 2017, arXiv:1702.03118
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import torch
import triton
import triton.language as tl

from course_kernels.arguments import check_size, check_tensor

DTYPES = (torch.bfloat16, torch.float16, torch.float32)

# In half precision each of 128 threads asks for two vectors of 16 bytes; with 16 programs on a multiprocessor that is
# 64 KB under way, more than one latency of a Hopper takes.
BLOCK, WARPS = 2048, 4
MAX_SIZE = (2**31 - 1) * BLOCK  # a program for each block


# --- on the device -----------------------------------------------------------


# region kernel
@triton.jit
def silu_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    """Compute one block of numbers."""
    n = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # it passes 2**31
    there = n < N  # the last program reaches past the end
    x = tl.load(x_ptr + n, mask=there, other=0.0).to(tl.float32)
    # As a quotient: exp of a large number is infinite, and what is divided by it is nought.
    y = x / (1.0 + tl.exp(-x))
    tl.store(y_ptr + n, y.to(y_ptr.dtype.element_ty), mask=there)


# endregion


# --- on the host -------------------------------------------------------------


def silu(x: torch.Tensor) -> torch.Tensor:
    """x * sigmoid(x), number by number.

    Args:
        x: (N,) bfloat16, float16 or float32, contiguous, N < 2**42.
    Returns:
        (N,), the same type, rounded to it once.
    Raises:
        TypeError: another type.
        ValueError: more dimensions, no number, too many, not contiguous, or not on the current GPU.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "N", sizes, dtypes=DTYPES)
    check_size("x", "N", sizes["N"], MAX_SIZE)
    y = torch.empty_like(x)
    silu_kernel[(triton.cdiv(sizes["N"], BLOCK),)](x, y, sizes["N"], BLOCK=BLOCK, num_warps=WARPS)
    return y
