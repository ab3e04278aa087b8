"""Transpose, what kernels 1 to 4 share: one launcher. They differ on the device only.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.cuda.launch import launch, load_kernel

TILE = 32
ROWS = 8  # rows of threads in a block; each thread moves TILE / ROWS elements
MAX_SIZE = 2**30  # rows and columns are 32-bit numbers in the kernels


def turned(x: torch.Tensor) -> tuple[torch.Tensor, int, int]:
    """Room for the transpose of x, and the sizes of x.

    Args:
        x: (M, N) float32, contiguous, M and N <= 2**30.
    Returns:
        y (N, M) float32 with nothing in it yet, M, N.
    Raises:
        TypeError: x is not float32.
        ValueError: x is not a contiguous (M, N) on the current GPU, or too long.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "MN", sizes, dtypes=(torch.float32,))
    for letter, size in sizes.items():
        check_size("x", letter, size, MAX_SIZE)
    M, N = sizes["M"], sizes["N"]
    return torch.empty((N, M), dtype=x.dtype, device=x.device), M, N


def transpose_by_tiles(source: Path, kernel: str, x: torch.Tensor) -> torch.Tensor:
    """Return the transpose of x by one of the kernels that give a block to every tile of 32 x 32 elements.

    Args:
        source: the `.cu` file.
        kernel: its name there.
        x: (M, N) float32, contiguous, M and N <= 2**30.
    Returns:
        (N, M) float32, contiguous, equal to x.T bit by bit.
    Raises:
        TypeError, ValueError: see `turned`.
    """
    y, M, N = turned(x)
    grid = -(-M // TILE) * -(-N // TILE)
    launch(load_kernel(source, kernel), grid, (TILE, ROWS), x, y, np.int32(M), np.int32(N))
    return y
