"""Matrix multiply, kernel 9: the launcher of k09_registers.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import torch

from course_kernels.gemm.by_tma import Shape, gemm_by_tma
from course_kernels.gemm.by_tma import supports as supports

SOURCE = Path(__file__).with_suffix(".cu")
SHAPE = Shape(128, 256, stages=4, threads=384)  # as in the source
WIDE = Shape(256, 192, stages=4, threads=384)
ONE_CONSUMER = Shape(128, 256, stages=4, threads=256)


def gemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product a @ b on Hopper: registers go to the warpgroups that multiply.

    Args:
        a: (M, K) bfloat16 or float16, contiguous, K a multiple of 8, M and K <= 2**30.
        b: (K, N), the same type, contiguous, N a multiple of 8, N <= 2**30.
    Returns:
        (M, N), the same type; sums over K in float32, rounded once.
    Raises:
        TypeError, ValueError: see `gemm_by_tma`.
    """
    return gemm_by_tma(SOURCE, "gemm_registers", SHAPE, a, b)


def wide(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the same with tiles of 256 x 192.

    A consumer has 192 sums in each thread, which only more registers allow.
    """
    return gemm_by_tma(SOURCE, "gemm_registers", WIDE, a, b, (("WIDE", 1),))


def one_consumer(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Multiply with one warpgroup of consumers: 256 sums in each thread are too many, so they spill to memory."""
    return gemm_by_tma(SOURCE, "gemm_registers", ONE_CONSUMER, a, b, (("CONSUMERS", 1),))
