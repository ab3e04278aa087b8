"""Reduction, kernel 5: the same in Triton.

Contract  problem.py
Idea      tl.sum is the shuffles, the shared memory and the barrier; what is left to say is which part of the vector
          a program adds up
Against   k04_vectorised, where every exchange is written out
Cost      reads every element once; writes and reads one partial sum a program; the same bits every time
Source    Triton documentation, tl.sum and tl.reduce
"""

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.arguments import check_tensor

BLOCK = 4096  # elements of one step: four 16-byte vectors for each of 256 threads
STEPS = 8
WARPS = 8


@triton.jit
def reduction_kernel(x_ptr, sums_ptr, N, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    """Add up one strip of BLOCK * STEPS elements."""
    i = tl.program_id(0).to(tl.int64) * BLOCK * STEPS + tl.arange(0, BLOCK)  # [BLOCK]
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for _ in range(STEPS):
        total += tl.load(x_ptr + i, mask=i < N, other=0.0)
        i += BLOCK
    tl.store(sums_ptr + tl.program_id(0), tl.sum(total))


def reduction(x: torch.Tensor) -> torch.Tensor:
    """Return the sum of x.

    Args:
        x: (N,) float32, contiguous.
    Returns:
        (1,) float32; the same bits every time.
    Raises:
        TypeError: x is not float32.
        ValueError: x is not a contiguous (N,) on a GPU.
    """
    check_tensor("x", x, "N", {}, dtypes=(torch.float32,))

    # Each pass leaves one number a strip, until it leaves one number.
    while True:
        N = x.numel()
        programs = triton.cdiv(N, BLOCK * STEPS)
        sums = torch.empty(programs, dtype=x.dtype, device=x.device)
        reduction_kernel[(programs,)](x, sums, N, BLOCK=BLOCK, STEPS=STEPS, num_warps=WARPS)
        if programs == 1:
            return sums
        x = sums
