"""Matrix multiply on tensor cores, kernel 2: the launcher of k02_wmma.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from course_kernels.arguments import check_tensor
from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.problem import Workload

SOURCE = Path(__file__).with_suffix(".cu")
TYPES = {torch.bfloat16: "__nv_bfloat16", torch.float16: "__half"}
BM, BN = 128, 128  # as in the source
THREADS = 256
MAX_SIZE = 2**30  # rows and columns are 32-bit numbers in the kernel


def supports(w: Workload) -> bool:
    """Whether the numbers have 16 bits."""
    return w.torch_dtype in TYPES


def gemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The product a @ b by fragments of 16 x 16, sums in fp32.

    Args:
        a: (M, K) bfloat16 or float16, contiguous, M and K <= 2**30.
        b: (K, N), the same type, contiguous, N <= 2**30. Where N or K is no multiple of 8, or an address none of
            16 bytes, it is slower.
    Returns:
        (M, N), the same type; every element is rounded to it once.
    Raises:
        TypeError: a is neither bfloat16 nor float16, or b is of another type.
        ValueError: shapes that do not fit each other or are too long, not contiguous, not on the current GPU.
    """
    sizes: dict[str, int] = {}
    check_tensor("a", a, "MK", sizes, dtypes=tuple(TYPES))
    check_tensor("b", b, "KN", sizes, dtypes=(a.dtype,), device=a.device)
    M, N, K = sizes["M"], sizes["N"], sizes["K"]
    if max(M, N, K) > MAX_SIZE:
        raise ValueError(f"a, b: expected M, N and K <= {MAX_SIZE}, got M={M}, N={N}, K={K}")

    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    whole = N % 8 == 0 and K % 8 == 0 and a.data_ptr() % 16 == 0 and b.data_ptr() % 16 == 0
    kernel = load_kernel(SOURCE, "gemm_wmma", {"TYPE": TYPES[a.dtype], "WHOLE": int(whole)})
    grid = -(-M // BM) * -(-N // BN)
    launch(kernel, grid, THREADS, a, b, c, np.int32(M), np.int32(N), np.int32(K))
    return c
