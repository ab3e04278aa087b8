"""The launcher of your kernels: a block of BLOCK_M * QUAD threads for every BLOCK_M rows of Q, in every head."""

from math import sqrt

import numpy as np
import torch


def launch(kernel, q, k, v, causal=False):
    """The answer (B, H, N, D); q, k and v have the same shape."""
    B, H, N, D = q.shape
    o = torch.empty_like(q)
    BLOCK_M, QUAD = (kernel.constants[name] for name in ("BLOCK_M", "QUAD"))  # as your file has them
    grid = (-(-N // BLOCK_M), B * H)  # the first rounded up
    kernel(grid, BLOCK_M * QUAD, q, k, v, o, np.int32(N), np.float32(1 / sqrt(D)), np.int32(causal))
    return o


def attention_by_distance(kernel, q, k, v, slope):
    """The answer (B, H, N, D); q, k and v have the same shape, and slope is (H,)."""
    B, H, N, D = q.shape
    o = torch.empty_like(q)
    BLOCK_M, QUAD = (kernel.constants[name] for name in ("BLOCK_M", "QUAD"))  # as your file has them
    grid = (-(-N // BLOCK_M), B * H)  # the first rounded up; block (x, y) has head y % H
    kernel(grid, BLOCK_M * QUAD, q, k, v, slope, o, np.int32(N), np.int32(H), np.float32(1 / sqrt(D)))
    return o
