"""Transpose, kernel 5: the launcher of k05_vectorised.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from course_kernels.arguments import check_tensor
from course_kernels.cuda.launch import launch, load_kernel

SOURCE = Path(__file__).with_suffix(".cu")
TILE_M, TILE_N = 64, 64
THREADS = 256
MAX_SIZE = 2**30  # rows and columns are 32-bit numbers in the kernel


def transpose(x: torch.Tensor) -> torch.Tensor:
    """The transpose of x, by vectors of 16 bytes where M and N are divisible by 4.

    Args:
        x: (M, N) float32, contiguous, M and N <= 2**30.
    Returns:
        (N, M) float32, contiguous, equal to x.T bit by bit.
    Raises:
        TypeError: x is not float32.
        ValueError: x is not a contiguous (M, N) on the current GPU, or too long.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "MN", sizes, dtypes=(torch.float32,))
    M, N = sizes["M"], sizes["N"]
    if max(M, N) > MAX_SIZE:
        raise ValueError(f"x: expected M and N <= {MAX_SIZE}, got ({M}, {N})")

    y = torch.empty((N, M), dtype=x.dtype, device=x.device)
    whole = M % 4 == 0 and N % 4 == 0 and x.data_ptr() % 16 == 0
    kernel = load_kernel(SOURCE, "transpose_vectorised" if whole else "transpose_any")
    grid = -(-M // TILE_M) * -(-N // TILE_N)
    launch(kernel, grid, THREADS, x, y, np.int32(M), np.int32(N))
    return y
