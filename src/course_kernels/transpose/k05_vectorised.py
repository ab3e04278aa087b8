"""Transpose, kernel 5: the launcher of k05_vectorised.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.transpose.by_tiles import turned

SOURCE = Path(__file__).with_suffix(".cu")
TILE_M, TILE_N = 64, 64
THREADS = 256


def transpose(x: torch.Tensor) -> torch.Tensor:
    """Return the transpose of x, by vectors of 16 bytes where M and N are divisible by 4.

    Args:
        x: (M, N) float32, contiguous, M and N <= 2**30.
    Returns:
        (N, M) float32, contiguous, equal to x.T bit by bit.
    Raises:
        TypeError, ValueError: see `turned`.
    """
    y, M, N = turned(x)
    whole = M % 4 == 0 and N % 4 == 0 and x.data_ptr() % 16 == 0
    kernel = load_kernel(SOURCE, "transpose_vectorised" if whole else "transpose_any")
    grid = -(-M // TILE_M) * -(-N // TILE_N)
    launch(kernel, grid, THREADS, x, y, np.int32(M), np.int32(N))
    return y
