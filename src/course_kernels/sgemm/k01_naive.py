"""Matrix multiply, kernel 1: the launcher of k01_naive.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.sgemm.arguments import product_of

SOURCE = Path(__file__).with_suffix(".cu")
TILE = 32  # 32 x 32 threads, one for each element of a tile of C: as many as a block may have


def sgemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product a @ b in fp32.

    Args:
        a: (M, K) float32, contiguous.
        b: (K, N) float32, contiguous, N <= 2097120.
    Returns:
        (M, N) float32; every element is one running fp32 sum over K.
    Raises:
        TypeError: a or b is not float32.
        ValueError: see `product_of`.
    """
    c, M, N, K = product_of(a, b, tile_n=TILE)
    grid = (-(-M // TILE), -(-N // TILE))  # rows first: kernel 2 turns this round
    kernel = load_kernel(SOURCE, "sgemm_naive")
    launch(kernel, grid, (TILE, TILE), a, b, c, np.int32(M), np.int32(N), np.int32(K))
    return c
