"""Matrix multiply for Blackwell, a tile a block: the launcher of one_block.cu. Read that file first.

Contract  ../gemm/problem.py
"""

from __future__ import annotations

from pathlib import Path

import torch

from course_kernels.blackwell.bf16 import Shape, multiply
from course_kernels.blackwell.bf16 import supports as supports

SOURCE = Path(__file__).with_suffix(".cu")
SHAPE = Shape("gemm_one_block", 1, BM=128, BN=256, stages=4)  # as in the source


def gemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product a @ b on data-centre Blackwell: one thread multiplies, the sums are in tensor memory.

    Args:
        a: (M, K) bfloat16 or float16, contiguous, K a multiple of 8, M and K <= 2**30.
        b: (K, N), the same type, contiguous, N a multiple of 8, N <= 2**30.
    Returns:
        (M, N), the same type; sums over K in float32, rounded once.
    Raises:
        TypeError, ValueError: see `multiply`.
    """
    return multiply(SOURCE, SHAPE, a, b)
