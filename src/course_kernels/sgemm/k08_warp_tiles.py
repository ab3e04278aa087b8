"""Matrix multiply, kernel 8: the launcher of k08_warp_tiles.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import torch

from course_kernels.sgemm.by_tiles import sgemm_by_tiles

SOURCE = Path(__file__).with_suffix(".cu")
BM, BN, THREADS = 128, 128, 256  # as in the .cu


def sgemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product a @ b in fp32, by warp tiles: (M, K) and (K, N) to (M, N).

    See `sgemm_by_tiles`.
    """
    return sgemm_by_tiles(SOURCE, "sgemm_warp_tiles", a, b, tile=(BM, BN), threads=THREADS, vectors=True)
