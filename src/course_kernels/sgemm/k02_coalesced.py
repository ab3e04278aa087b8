"""Matrix multiply, kernel 2: the launcher of k02_coalesced.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import torch

from course_kernels.sgemm.by_tiles import sgemm_by_tiles

SOURCE = Path(__file__).with_suffix(".cu")
TILE = 32  # 32 x 32 threads, one for each element of a tile of C: as many as a block may have


def sgemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product a @ b in fp32, neighbouring threads on neighbouring columns: (M, K) and (K, N) to (M, N).

    See `sgemm_by_tiles`.
    """
    return sgemm_by_tiles(SOURCE, "sgemm_coalesced", a, b, tile=(TILE, TILE), threads=(TILE, TILE))
