"""Reduction, kernel 1: the launcher of k01_atomics.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import torch

from course_kernels.problem import Workload
from course_kernels.reduction.by_blocks import sum_by_blocks

SOURCE = Path(__file__).with_suffix(".cu")
MAX_N = 2**24


def supports(w: Workload) -> bool:
    """Return whether one float32 can hold the running total.

    Past 2**24 elements it no longer grows by less than one.
    """
    return w.dtype == "float32" and w.N <= MAX_N


def reduction(x: torch.Tensor) -> torch.Tensor:
    """Return the sum of x, one atomic addition for every element: (N,) float32 to (1,). See `sum_by_blocks`.

    Past 2**24 elements one float32 total may lose some of them, see `supports`.
    """
    return sum_by_blocks(SOURCE, "reduction_atomics", x)
