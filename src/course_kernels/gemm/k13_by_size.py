"""Matrix multiply, kernel 13: the launcher of k13_by_size.cu. Read that file, and plans.py.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import torch

from course_kernels.gemm.by_tma import supports as supports
from course_kernels.gemm.plans import Plan, gemm_by_plan

SOURCE = Path(__file__).with_suffix(".cu")


def gemm(a: torch.Tensor, b: torch.Tensor, *, plan: Plan | None = None) -> torch.Tensor:
    """Return the product a @ b on Hopper, cut as its size wants it.

    Args:
        a: (M, K) bfloat16 or float16, contiguous, K a multiple of 8, M and K <= 2**30.
        b: (K, N), the same type, contiguous, or the transpose of a contiguous (N, K); N a multiple of 8, N <= 2**30.
        plan: how to cut it; without it, `plans.plan_of` decides.
    Returns:
        (M, N), the same type; sums over K in float32, rounded once, the same bit for bit in every call.
    Raises:
        TypeError, ValueError: see `gemm_by_plan`.
    """
    return gemm_by_plan(SOURCE, "gemm_by_size", a, b, plan)
