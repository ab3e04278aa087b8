"""Matrix multiply on tensor cores, kernel 2: the launcher of k02_wmma.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import torch

from course_kernels.gemm.arguments import supports as supports
from course_kernels.gemm.by_tiles import gemm_by_tiles

SOURCE = Path(__file__).with_suffix(".cu")


def gemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product a @ b by fragments of 16 x 16, sums in fp32: (M, K) and (K, N) to (M, N).

    See `gemm_by_tiles`.
    """
    return gemm_by_tiles(SOURCE, "gemm_wmma", a, b)
