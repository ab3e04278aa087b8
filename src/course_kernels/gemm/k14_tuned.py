"""Matrix multiply, kernel 14: the launcher of k14_tuned.cu. Read that file, one_wave.cu and plans.py.

Contract  problem.py
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import torch

from course_kernels.gemm import one_wave
from course_kernels.gemm.by_tma import multiprocessors
from course_kernels.gemm.by_tma import supports as supports
from course_kernels.gemm.launch_cache import Ready, multiply
from course_kernels.gemm.plans import Plan, plan_of, ready_by_plan, sizes_and_layout

SOURCE = Path(__file__).with_suffix(".cu")


def gemm(a: torch.Tensor, b: torch.Tensor, *, plan: Plan | None = None) -> torch.Tensor:
    """Return the product a @ b on Hopper, cut as its size wants it.

    Args:
        a: (M, K) bfloat16 or float16, contiguous, K a multiple of 8, M and K <= 2**30.
        b: (K, N), the same type, contiguous, or the transpose of a contiguous (N, K); N a multiple of 8, N <= 2**30.
        plan: how to cut it; without it, `plans.plan_of` decides, and where it has a block for every tile, the kernel is
            that of one_wave.cu.
    Returns:
        (M, N), the same type; sums over K in float32, rounded once, the same bit for bit in every call.
    Raises:
        TypeError, ValueError: see `gemm_by_plan`.
    """
    return multiply(("gemm_tuned", plan), a, b, partial(_ready, plan))


def _ready(plan: Plan | None, a: torch.Tensor, b: torch.Tensor) -> Ready:
    """Return what multiplies tensors that lie like a and b."""
    if plan is None:
        M, N, K, _ = sizes_and_layout(a, b)
        usual = plan_of(M, N, K, multiprocessors(a.get_device()))
        if one_wave.suits(usual, M, N):
            return one_wave.ready(usual, a, b)
    return ready_by_plan(SOURCE, "gemm_tuned", plan, a, b)
