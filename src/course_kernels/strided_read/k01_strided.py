"""Strided read, kernel 1: the launcher of k01_strided.cu. Read that file first.

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
MOST_LAPS = 65535  # the second dimension of a grid goes no further


def strided_read(x: torch.Tensor, *, stride: int) -> torch.Tensor:
    """Return all of x, in the order of a walk with this stride.

    Args:
        x: (N,) float32, contiguous.
        stride: elements between neighbouring threads; it divides N, and is at most 65535.
    Returns:
        (N,) float32.
    Raises:
        TypeError: x is not float32.
        ValueError: x is not a contiguous (N,) on the current GPU, or the stride does not fit.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "N", sizes, dtypes=(torch.float32,))
    N = sizes["N"]
    if not 1 <= stride <= MOST_LAPS or N % stride:
        raise ValueError(f"stride: expected a divisor of N={N} up to {MOST_LAPS}, got {stride}")

    y = torch.empty_like(x)
    blocks = -(-(N // stride) // THREADS)
    launch(
        load_kernel(SOURCE, "read_strided"), (blocks, stride), THREADS, x, y, np.int64(N), np.int32(stride)
    )
    return y
