"""Matrix multiply, kernel 6: the launcher of k06_vectorised.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import torch

from course_kernels.sgemm.by_tiles import sgemm_by_tiles

SOURCE = Path(__file__).with_suffix(".cu")
BM, BN, THREADS = 128, 128, 256  # as in the .cu


def sgemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product a @ b in fp32, by vectors of 16 bytes: (M, K) and (K, N) to (M, N).

    See `sgemm_by_tiles`.
    """
    return sgemm_by_tiles(SOURCE, "sgemm_vectorised", a, b, tile=(BM, BN), threads=THREADS, vectors=True)
