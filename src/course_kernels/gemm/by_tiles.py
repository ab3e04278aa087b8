"""Matrix multiply in 16 bits, what kernels 1 and 2 share: one launcher. They differ on the device only.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.gemm.arguments import in_vectors, product_of

TYPES = {torch.bfloat16: "__nv_bfloat16", torch.float16: "__half"}
BM, BN = 128, 128  # as in the sources
THREADS = 256


def gemm_by_tiles(source: Path, kernel: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product a @ b, by one of the kernels that give a block to every tile of 128 x 128 of C; sums in fp32.

    Args:
        source: the `.cu` file.
        kernel: its name there.
        a: (M, K) bfloat16 or float16, contiguous, M and K <= 2**30.
        b: (K, N), the same type, contiguous, N <= 2**30. Where N or K is no multiple of 8, or an address none of
            16 bytes, it is slower.
    Returns:
        (M, N), the same type; every element is rounded to it once.
    Raises:
        TypeError, ValueError: see `product_of`.
    """
    c, M, N, K = product_of(a, b)
    defines: dict[str, str | int] = {"TYPE": TYPES[a.dtype], "WHOLE": int(in_vectors(a, b))}
    grid = -(-M // BM) * -(-N // BN)
    launch(
        load_kernel(source, kernel, defines), grid, THREADS, a, b, c, np.int32(M), np.int32(N), np.int32(K)
    )
    return c
