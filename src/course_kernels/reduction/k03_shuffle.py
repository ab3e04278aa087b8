"""Reduction, kernel 3: the launcher of k03_shuffle.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from course_kernels.arguments import check_tensor
from course_kernels.cuda.launch import launch, load_kernel

SOURCE = Path(__file__).with_suffix(".cu")
THREADS = 256


def reduction(x: torch.Tensor) -> torch.Tensor:
    """The sum of x, warp by warp by shuffles.

    Args:
        x: (N,) float32, contiguous.
    Returns:
        (1,) float32; its last bits depend on which block came first.
    Raises:
        TypeError: x is not float32.
        ValueError: x is not a contiguous (N,) on the current GPU.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "N", sizes, dtypes=(torch.float32,))
    N = sizes["N"]

    y = torch.zeros(1, dtype=x.dtype, device=x.device)
    grid = -(-N // THREADS)
    launch(load_kernel(SOURCE, "reduction_shuffle"), grid, THREADS, x, y, np.int64(N))
    return y
