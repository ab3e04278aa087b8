"""Add and norm, what all kernels of this folder share on the host: they differ on the device only.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from course_kernels.add_norm.problem import EPSILON, MAX_N
from course_kernels.arguments import check_size, check_tensor
from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.cuda.shared_memory import allow_shared_memory

MAX_M = 2**30  # rows are counted in 32 bits


def add_norm_by_rows(
    source: Path,
    kernel: str,
    rows: int,
    threads: int,
    x: torch.Tensor,
    r: torch.Tensor,
    g: torch.Tensor,
    *,
    holds_row: bool = False,
) -> torch.Tensor:
    """x + r, every row with a mean of 0 and a spread of 1, weighed by g.

    Args:
        source: the `.cu` file.
        kernel: its name there.
        rows: how many of them one block takes.
        threads: of one block.
        x, r: (M, N) float32, contiguous, N <= 16384.
        g: (N,) float32, contiguous.
        holds_row: a block gets shared memory for one row of N numbers.
    Returns:
        (M, N) float32.
    Raises:
        TypeError: one of them is not float32.
        ValueError: one is not contiguous, of another shape, too large, or not on the current GPU, as x is.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "MN", sizes, dtypes=(torch.float32,))
    check_tensor("r", r, "MN", sizes, dtypes=(torch.float32,), device=x.device)
    check_tensor("g", g, "N", sizes, dtypes=(torch.float32,), device=x.device)
    M, N = sizes["M"], sizes["N"]
    check_size("x", "M", M, MAX_M)
    check_size("x", "N", N, MAX_N)

    y = torch.empty_like(x)
    loaded = load_kernel(source, kernel)
    shared_bytes = 4 * N if holds_row else 0
    if holds_row:
        allow_shared_memory(loaded, shared_bytes)
    numbers = (np.int32(M), np.int32(N), np.float32(EPSILON))
    launch(loaded, -(-M // rows), threads, x, r, g, y, *numbers, shared_bytes=shared_bytes)
    return y
