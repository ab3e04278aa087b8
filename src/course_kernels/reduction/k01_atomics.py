"""Reduction, kernel 1: the launcher of k01_atomics.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from course_kernels.arguments import check_tensor
from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.problem import Workload

SOURCE = Path(__file__).with_suffix(".cu")
THREADS = 256
MAX_N = 2**24


def supports(w: Workload) -> bool:
    """Whether one float32 can hold the running total: past 2**24 elements it no longer grows by less than one."""
    return w.dtype == "float32" and w.N <= MAX_N


def reduction(x: torch.Tensor) -> torch.Tensor:
    """The sum of x, one atomic addition for every element.

    Args:
        x: (N,) float32, contiguous; past 2**24 elements one float32 total may lose some of them, see `supports`.
    Returns:
        (1,) float32; its last bits depend on which thread came first.
    Raises:
        TypeError: x is not float32.
        ValueError: x is not a contiguous (N,) on the current GPU.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "N", sizes, dtypes=(torch.float32,))
    N = sizes["N"]

    y = torch.zeros(1, dtype=x.dtype, device=x.device)
    grid = -(-N // THREADS)
    launch(load_kernel(SOURCE, "reduction_atomics"), grid, THREADS, x, y, np.int64(N))
    return y
