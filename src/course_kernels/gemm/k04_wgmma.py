"""Matrix multiply, kernel 4: the launcher of k04_wgmma.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.cuda.shared_memory import allow_shared_memory
from course_kernels.gemm.arguments import in_vectors, product_of
from course_kernels.gemm.arguments import supports as supports

SOURCE = Path(__file__).with_suffix(".cu")
BM, BN, BK = 128, 256, 64  # block tile
STAGES = 4
THREADS = 256
SHARED_BYTES = STAGES * (BM + BN) * BK * 2 + 1024  # the last 1024 to begin where the swizzle does


def gemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product a @ b on Hopper's tensor cores; by cp.async where K and N are divisible by 8.

    Args:
        a: (M, K) bfloat16 or float16, contiguous, M and K <= 2**30.
        b: (K, N), the same type, contiguous, N <= 2**30.
    Returns:
        (M, N), the same type; sums over K in float32, rounded once.
    Raises:
        TypeError: see `product_of`.
        ValueError: see `product_of`; or a GPU of another compute capability than 9.0.
    """
    c, M, N, K = product_of(a, b)
    capability = torch.cuda.get_device_capability(a.device)
    if capability != (9, 0):
        raise ValueError(
            f"a: expected a GPU of compute capability 9.0 (Hopper, for wgmma), got {'.'.join(map(str, capability))}"
        )

    defines = {"FLOAT16": int(a.dtype is torch.float16), "WHOLE": int(in_vectors(a, b))}
    kernel = load_kernel(SOURCE, "gemm_wgmma", defines)
    allow_shared_memory(kernel, SHARED_BYTES)
    grid = -(-M // BM) * -(-N // BN)
    sizes_of_the_kernel = (np.int32(M), np.int32(N), np.int32(K))
    launch(kernel, grid, THREADS, a, b, c, *sizes_of_the_kernel, shared_bytes=SHARED_BYTES)
    return c
