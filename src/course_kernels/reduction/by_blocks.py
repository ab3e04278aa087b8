"""Reduction, what kernels 1 to 3 share: one launcher. They differ on the device only.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from course_kernels.arguments import check_tensor
from course_kernels.cuda.launch import launch, load_kernel

THREADS = 256


def sum_by_blocks(source: Path, kernel: str, x: torch.Tensor) -> torch.Tensor:
    """Return the sum of x by one of the kernels that give a thread to every element and add to one total.

    Args:
        source: the `.cu` file.
        kernel: its name there.
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
    launch(load_kernel(source, kernel), grid, THREADS, x, y, np.int64(N))
    return y
