"""Matrix multiply, kernel 9: the launcher of k09_asynchronous.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import torch

from course_kernels.sgemm.arguments import check_asynchronous_copies
from course_kernels.sgemm.by_tiles import sgemm_by_tiles

SOURCE = Path(__file__).with_suffix(".cu")
BM, BN, THREADS = 128, 128, 256  # as in the .cu


def sgemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product a @ b in fp32, the next tile on its way while this one is multiplied.

    (M, K) and (K, N) to (M, N).

    See `sgemm_by_tiles` and `check_asynchronous_copies`.
    """
    check_asynchronous_copies()
    return sgemm_by_tiles(SOURCE, "sgemm_asynchronous", a, b, tile=(BM, BN), threads=THREADS, vectors=True)
