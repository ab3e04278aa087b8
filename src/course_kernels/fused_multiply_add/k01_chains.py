"""Fused multiply-add, kernel 1: the launcher of k01_chains.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from course_kernels.arguments import check_tensor
from course_kernels.cuda.launch import launch, load_kernel

SOURCE = Path(__file__).with_suffix(".cu")
THREADS = 128  # a warp for each of the four schedulers of a multiprocessor
CHAINS = (1, 2, 4, 8)


def fused_multiply_add(x: torch.Tensor, a: torch.Tensor, *, chains: int, steps: int) -> torch.Tensor:
    """x after `steps` times x <- a * x + 1, with `chains` chains in every thread.

    Args:
        x: (C, N) float32, contiguous, C = chains.
        a: (N,) float32, contiguous.
        chains: 1, 2, 4 or 8.
        steps: from 1 to 2**30.
    Returns:
        (C, N) float32.
    Raises:
        TypeError: an input is not float32.
        ValueError: a shape, layout or device is wrong, or chains or steps out of range.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "CN", sizes, dtypes=(torch.float32,))
    check_tensor("a", a, "N", sizes, dtypes=(torch.float32,), device=x.device)
    if chains not in CHAINS or chains != sizes["C"]:
        raise ValueError(
            f"chains: expected 1, 2, 4 or 8, and as many rows of x, got {chains} for {sizes['C']} rows"
        )
    if not 1 <= steps <= 2**30:
        raise ValueError(f"steps: expected 1 to {2**30}, got {steps}")

    y = torch.empty_like(x)
    N = sizes["N"]
    kernel = load_kernel(SOURCE, f"chains_{chains}")
    launch(kernel, -(-N // THREADS), THREADS, x, a, y, np.int64(N), np.int32(steps))
    return y
