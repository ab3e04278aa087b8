"""Rows of 16-bit numbers as 8-bit floats: what a step of decoding does with its activations before it multiplies them.

Contract  rounded_rows in problem.py: the same scales, and the same numbers but where a quotient lies between two
Idea      a program takes a row: once to find its largest, and once more, from L2, to divide and round
Cost      reads M * K numbers, and once more from L2; writes M * K bytes
Limits    M programs; with a row or two it is a launch that costs, not the bytes
Next      the kernel before it, a norm, has the row on the chip already and can do this as it leaves
Source    Micikevicius et al. 2022, arXiv:2209.05433
"""

from __future__ import annotations

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.arguments import check_size, check_tensor
from course_kernels.skinny_gemm_fp8.arguments import MAX_SIZE, refuse_older_cards

BLOCK = 4096  # numbers of a step: four vectors of 16 bytes for each of 256 threads
WARPS = 8


@triton.jit
def round_rows_kernel(X, Q, scale_ptr, K, BLOCK: tl.constexpr):
    """One program rounds one row."""
    row = tl.program_id(0).to(tl.int64)
    largest = tl.zeros([BLOCK], tl.float32)
    for start in tl.range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        x = tl.abs(tl.load(X + row * K + k, mask=k < K, other=0.0).to(tl.float32))
        # A maximum that skips NaN would make it a finite number.
        largest = tl.maximum(largest, x, propagate_nan=tl.PropagateNan.ALL)
    # tl.max skips NaN; a sum does not, and adds zero else.
    nan = tl.sum(tl.where(largest == largest, 0.0, largest), 0)
    scale = tl.max(largest, 0) / 448.0 + nan
    scale = tl.where(scale == 0.0, 1.0, scale)
    for start in tl.range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        x = tl.load(X + row * K + k, mask=k < K, other=0.0).to(tl.float32) / scale
        # Dividing rounds: the largest can come out a hair above 448. NaN stays NaN.
        x = tl.where(x > 448.0, 448.0, tl.where(x < -448.0, -448.0, x))
        tl.store(Q + row * K + k, x.to(tl.float8e4nv), mask=k < K)
    tl.store(scale_ptr + row, scale)


def round_rows(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows as 8-bit floats, and a scale for each.

    Args:
        x: (M, K) bfloat16, float16 or float32, contiguous; M and K <= 2**30.
    Returns:
        (M, K) float8_e4m3fn, the largest of a row 448; (M,) float32, 1 where a row is all zeros. A row with NaN or an
        infinity in it has a scale of NaN or infinity, so that everything it is multiplied into shows it.
    Raises:
        TypeError: another type.
        ValueError: another shape, not contiguous, too long, not on the current GPU, or one without 8-bit numbers.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "MK", sizes, dtypes=(torch.bfloat16, torch.float16, torch.float32))
    M, K = sizes["M"], sizes["K"]
    check_size("x", "M", M, MAX_SIZE)
    check_size("x", "K", K, MAX_SIZE)
    refuse_older_cards("x", x.device)
    q = torch.empty((M, K), dtype=torch.float8_e4m3fn, device=x.device)
    scale = torch.empty(M, dtype=torch.float32, device=x.device)
    round_rows_kernel[(M,)](x, q, scale, K, BLOCK=BLOCK, num_warps=WARPS)
    return q, scale
