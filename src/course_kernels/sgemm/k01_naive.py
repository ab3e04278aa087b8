"""Matrix multiply, kernel 1: the launcher of k01_naive.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from course_kernels.arguments import check_tensor
from course_kernels.cuda.launch import launch, load_kernel

SOURCE = Path(__file__).with_suffix(".cu")
TILE = 32  # 32 x 32 threads, one for each element of a tile of C: as many as a block may have
MAX_N = 65535 * TILE  # the grid's second dimension ends at 65535 blocks


def sgemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The product a @ b in fp32.

    Args:
        a: (M, K) float32, contiguous.
        b: (K, N) float32, contiguous, N <= 2097120.
    Returns:
        (M, N) float32; every element is one running fp32 sum over K.
    Raises:
        TypeError: a or b is not float32.
        ValueError: shapes that do not fit each other, N out of range, not contiguous, not on the current GPU.
    """
    sizes: dict[str, int] = {}
    check_tensor("a", a, "MK", sizes, dtypes=(torch.float32,))
    check_tensor("b", b, "KN", sizes, dtypes=(torch.float32,), device=a.device)
    M, N, K = sizes["M"], sizes["N"], sizes["K"]
    if N > MAX_N:
        raise ValueError(f"b: expected N <= {MAX_N}, got N={N}")

    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = (-(-M // TILE), -(-N // TILE))
    sizes_of_the_kernel = (np.int32(M), np.int32(N), np.int32(K))
    launch(load_kernel(SOURCE, "sgemm_naive"), grid, (TILE, TILE), a, b, c, *sizes_of_the_kernel)
    return c
