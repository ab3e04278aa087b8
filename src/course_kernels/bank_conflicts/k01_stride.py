"""Bank conflicts, kernel 1: the launcher of k01_stride.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from course_kernels.arguments import check_tensor
from course_kernels.cuda.launch import launch, load_kernel

SOURCE = Path(__file__).with_suffix(".cu")
TILE = 1024  # elements, and threads, of one block


def bank_conflicts(x: torch.Tensor, *, stride: int) -> torch.Tensor:
    """Sum 512 words of a tile, lane by lane `stride` words further.

    Args:
        x: (N,) float32, contiguous.
        stride: words between neighbouring lanes, 1 to 33.
    Returns:
        (N,) float32.
    Raises:
        TypeError: x is not float32.
        ValueError: x is not a contiguous (N,) on the current GPU, or the stride is out of range.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "N", sizes, dtypes=(torch.float32,))
    if not 1 <= stride <= 33:
        raise ValueError(f"stride: expected 1 to 33 words, got {stride}")

    y = torch.empty_like(x)
    N = sizes["N"]
    launch(load_kernel(SOURCE, "sum_windows"), -(-N // TILE), TILE, x, y, np.int64(N), np.int32(stride))
    return y
