"""The launcher that calls your kernels: a block of 256 threads for every row."""

import numpy as np
import torch


def launch(kernel, x, g, r):
    """y and s, each (M, N) like x and r; g is (N,)."""
    M, N = x.shape
    y, s = torch.empty_like(x), torch.empty_like(x)
    kernel(M, 256, x, g, r, y, s, np.int32(N))
    return y, s


def add_rmsnorm_scaled(kernel, x, g, r):
    """q (M, N), a (M,) and s (M, N)."""
    M, N = x.shape
    q, s = torch.empty_like(x), torch.empty_like(x)
    a = torch.empty(M, dtype=x.dtype, device=x.device)
    kernel(M, 256, x, g, r, q, a, s, np.int32(N))
    return q, a, s
