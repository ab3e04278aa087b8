"""Matrix multiply, kernel 7: the launcher of k07_wide.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import torch

from course_kernels.gemm.by_tma import Shape, gemm_by_tma
from course_kernels.gemm.by_tma import supports as supports

SOURCE = Path(__file__).with_suffix(".cu")
SHAPE = Shape(128, 256, stages=4, threads=256)  # as in the source


def gemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product a @ b on Hopper: by the widest product there is.

    Args:
        a: (M, K) bfloat16 or float16, contiguous, K a multiple of 8, M and K <= 2**30.
        b: (K, N), the same type, contiguous, N a multiple of 8, N <= 2**30.
    Returns:
        (M, N), the same type; sums over K in float32, rounded once.
    Raises:
        TypeError, ValueError: see `gemm_by_tma`.
    """
    return gemm_by_tma(SOURCE, "gemm_wide", SHAPE, a, b)
