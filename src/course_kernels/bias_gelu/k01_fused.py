"""Bias + GELU, kernel 1: the launcher of k01_fused.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.cuda.alignment import check_address
from course_kernels.cuda.launch import launch, load_kernel

SOURCE = Path(__file__).with_suffix(".cu")
KERNELS = {torch.float32: "bias_gelu_fp32", torch.bfloat16: "bias_gelu_bf16"}
THREADS = 256
ROWS = 4  # as in the source
MAX_SIZE = 2**30  # rows, and 16-byte vectors of a row, are 32-bit numbers in the kernel


def bias_gelu(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """GELU(x + b), with the bias added to every row.

    Args:
        x: (M, N) float32 or bfloat16, contiguous, M <= 2**30, N a multiple of 8 and no row past 2**34 bytes,
            at an address divisible by 16.
        b: (N,), the same type, on the same device, contiguous, at an address divisible by 16.
    Returns:
        (M, N), the same type; the sum is rounded to it only once, after the GELU.
    Raises:
        TypeError: x is neither float32 nor bfloat16, or b is of another type.
        ValueError: a shape, layout or device other than these, or a tensor that starts between two vectors.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "MN", sizes, dtypes=tuple(KERNELS))
    check_tensor("b", b, "N", sizes, dtypes=(x.dtype,), device=x.device)
    M, N = sizes["M"], sizes["N"]
    check_size("x", "M", M, MAX_SIZE)
    check_size("x", "N", N, MAX_SIZE * 16 // x.element_size())
    if N % 8:
        raise ValueError(f"x: expected (M, N) with N a multiple of 8, got N={N}")
    check_address("x", x)
    check_address("b", b)

    y = torch.empty_like(x)
    width = N * x.element_size() // 16
    grid = -(-width // THREADS) * -(-M // ROWS)
    launch(load_kernel(SOURCE, KERNELS[x.dtype]), grid, THREADS, x, b, y, np.int32(M), np.int32(width))
    return y
