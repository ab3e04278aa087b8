"""Attention, kernel 2: the launcher of k02_teaching.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from math import sqrt
from pathlib import Path

import numpy as np
import torch

from course_kernels.arguments import check_tensor
from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.problem import Workload

SOURCE = Path(__file__).with_suffix(".cu")
HEAD_SIZES = (64, 128)  # D is a constant of the compilation: a row's columns lie in registers
BLOCK_M = 64
THREADS = 256
MAX_HEADS = 65535  # the grid's second dimension
MAX_N = 2**23  # row * D is a 32-bit number in the kernel


def supports(w: Workload) -> bool:
    """Whether this kernel takes a workload: float32, D = 64 or 128."""
    return w.dtype == "float32" and w.D in HEAD_SIZES


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False) -> torch.Tensor:
    """Attention without a matrix of scores in memory.

    Args:
        q, k, v: (B, H, N, D) float32, contiguous, D = 64 or 128, N <= 8388608, B * H <= 65535.
        causal: row m sees keys 0 to m only.
    Returns:
        (B, H, N, D) float32; every row is a weighted mean of rows of v.
    Raises:
        TypeError: q, k or v is not float32.
        ValueError: shapes that differ, a size out of range, not contiguous, or not on the current GPU.
    """
    sizes: dict[str, int] = {}
    check_tensor("q", q, "BHND", sizes, dtypes=(torch.float32,))
    check_tensor("k", k, "BHND", sizes, dtypes=(torch.float32,), device=q.device)
    check_tensor("v", v, "BHND", sizes, dtypes=(torch.float32,), device=q.device)
    heads, N, D = sizes["B"] * sizes["H"], sizes["N"], sizes["D"]
    if D not in HEAD_SIZES:
        raise ValueError(f"q: expected D = 64 or 128, got D={D}")
    if heads > MAX_HEADS:
        raise ValueError(f"q: expected B * H <= {MAX_HEADS}, got {heads}")
    if N > MAX_N:
        raise ValueError(f"q: expected N <= {MAX_N}, got N={N}")

    o = torch.empty_like(q)
    grid = (-(-N // BLOCK_M), heads)
    kernel = load_kernel(SOURCE, "attention_teaching", {"D": D})
    launch(kernel, grid, THREADS, q, k, v, o, np.int32(N), np.float32(1 / sqrt(D)), np.int32(causal))
    return o
