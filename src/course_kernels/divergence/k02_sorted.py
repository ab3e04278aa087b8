"""Divergence, kernel 2: the launcher of k02_sorted.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from course_kernels.arguments import check_tensor
from course_kernels.cuda.launch import launch, load_kernel

SOURCE = Path(__file__).with_suffix(".cu")
THREADS = 1024  # 32 warps: a multiple of every number of ways
WAYS = (1, 2, 4, 8, 16, 32)


def divergence(x: torch.Tensor, *, ways: int) -> torch.Tensor:
    """Return every element through the branch of its number; all lanes of a warp take the same one.

    Args:
        x: (N,) float32, contiguous.
        ways: 1, 2, 4, 8, 16 or 32 branches.
    Returns:
        (N,) float32.
    Raises:
        TypeError: x is not float32.
        ValueError: x is not a contiguous (N,) on the current GPU, or another number of ways.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "N", sizes, dtypes=(torch.float32,))
    if ways not in WAYS:
        raise ValueError(f"ways: expected 1, 2, 4, 8, 16 or 32, got {ways}")

    y = torch.empty_like(x)
    N = sizes["N"]
    launch(
        load_kernel(SOURCE, "branches_by_warp"), -(-N // THREADS), THREADS, x, y, np.int64(N), np.int32(ways)
    )
    return y
