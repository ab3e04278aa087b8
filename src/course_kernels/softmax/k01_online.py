"""Softmax, kernel 1: the launcher of k01_online.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.cuda.launch import launch, load_kernel

SOURCE = Path(__file__).with_suffix(".cu")
WARP = 32
THREADS = 128  # four rows a block
MAX_SIZE = 2**30  # rows and columns are 32-bit numbers in the kernel, and both are counted past their end


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax over the last axis.

    Args:
        x: (M, N) float32, contiguous, M and N <= 2**30.
    Returns:
        (M, N) float32; every row sums to 1.
    Raises:
        TypeError: x is not float32.
        ValueError: x is not a contiguous (M, N) on the current GPU, or too long.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "MN", sizes, dtypes=(torch.float32,))
    for letter, size in sizes.items():
        check_size("x", letter, size, MAX_SIZE)
    M, N = sizes["M"], sizes["N"]

    y = torch.empty_like(x)
    grid = -(-M // (THREADS // WARP))
    launch(load_kernel(SOURCE, "softmax_online"), grid, THREADS, x, y, np.int32(M), np.int32(N))
    return y
