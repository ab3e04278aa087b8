"""Attention, kernel 2: the launcher of k02_teaching.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from math import sqrt
from pathlib import Path

import numpy as np
import torch

from course_kernels.attention.arguments import HEAD_SIZES, heads_of
from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.problem import Workload

SOURCE = Path(__file__).with_suffix(".cu")
BLOCK_M = 64
THREADS = 256
MAX_N = 2**23  # row * D is a 32-bit number in the kernel


def supports(w: Workload) -> bool:
    """Return whether this kernel takes a workload: float32, D = 64 or 128."""
    return w.dtype == "float32" and w.D in HEAD_SIZES


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False) -> torch.Tensor:
    """Attention without a matrix of scores in memory.

    Args:
        q, k, v: (B, H, N, D) float32, contiguous, D = 64 or 128, N <= 8388608, B * H <= 65535.
        causal: row m sees keys 0 to m only.
    Returns:
        (B, H, N, D) float32; every row is a weighted mean of rows of v.
    Raises:
        TypeError, ValueError: see `heads_of`.
    """
    heads, N, D = heads_of(q, k, v, (torch.float32,), most_n=MAX_N)

    o = torch.empty_like(q)
    grid = (-(-N // BLOCK_M), heads)
    kernel = load_kernel(SOURCE, "attention_teaching", {"D": D})
    launch(kernel, grid, THREADS, q, k, v, o, np.int32(N), np.float32(1 / sqrt(D)), np.int32(causal))
    return o
