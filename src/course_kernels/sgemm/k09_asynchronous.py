"""Matrix multiply, kernel 9: the launcher of k09_asynchronous.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.sgemm.arguments import check_asynchronous_copies, in_vectors, product_of

SOURCE = Path(__file__).with_suffix(".cu")
BM, BN, THREADS = 128, 128, 256  # as in the .cu


def sgemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The product a @ b in fp32.

    Args:
        a: (M, K) float32, contiguous.
        b: (K, N) float32, contiguous.
    Returns:
        (M, N) float32; every element is one running fp32 sum over K.
    Raises:
        TypeError: a or b is not float32.
        ValueError: see `product_of` and `check_asynchronous_copies`.
    """
    check_asynchronous_copies()
    c, M, N, K = product_of(a, b, tile_m=BM)
    grid = (-(-N // BN), -(-M // BM))
    kernel = load_kernel(SOURCE, "sgemm_asynchronous" if in_vectors(a, b) else "sgemm_any")
    launch(kernel, grid, THREADS, a, b, c, np.int32(M), np.int32(N), np.int32(K))
    return c
