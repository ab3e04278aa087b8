"""Detours, kernel 1: the launcher of k01_one_reason.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from course_kernels.arguments import check_tensor
from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.stall_demos.problem import THREADS

SOURCE = Path(__file__).with_suffix(".cu")


def stall_demos(x: torch.Tensor, *, reason: str) -> torch.Tensor:
    """Return a copy of x whose warps wait for one reason.

    Args:
        x: (N,) float32, contiguous.
        reason: one of `problem.REASONS`.
    Returns:
        (N,) float32.
    Raises:
        TypeError: x is not float32.
        ValueError: x is not a contiguous (N,) on the current GPU, or the reason is unknown.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "N", sizes, dtypes=(torch.float32,))
    if reason not in THREADS:
        raise ValueError(f"reason: expected one of {', '.join(THREADS)}, got {reason!r}")

    y = torch.empty_like(x)
    N, threads = sizes["N"], THREADS[reason]
    launch(load_kernel(SOURCE, f"{reason}_detours"), -(-N // threads), threads, x, y, np.int32(N))
    return y
