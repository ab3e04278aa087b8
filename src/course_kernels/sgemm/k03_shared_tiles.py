"""Matrix multiply, kernel 3: the launcher of k03_shared_tiles.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import torch

from course_kernels.sgemm.by_tiles import sgemm_by_tiles

SOURCE = Path(__file__).with_suffix(".cu")
TILE = 32  # as in the .cu


def sgemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product a @ b in fp32, tile by tile through shared memory: (M, K) and (K, N) to (M, N).

    See `sgemm_by_tiles`.
    """
    return sgemm_by_tiles(SOURCE, "sgemm_shared_tiles", a, b, tile=(TILE, TILE), threads=(TILE, TILE))
