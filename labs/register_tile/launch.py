"""What calls your kernels: a block for every tile of BM x BN numbers of C, a thread for every TM x TN of them."""

import numpy as np
import torch


def launch(kernel, a, b):
    """The product (M, N) of a (M, K) and b (K, N)."""
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty(M, N, dtype=a.dtype, device=a.device)
    BM, BN, TM, TN = (kernel.constants[name] for name in ("BM", "BN", "TM", "TN"))  # as your file has them
    threads = (BM // TM) * (BN // TN)
    grid = (-(-N // BN), -(-M // BM))  # both rounded up
    kernel(grid, threads, a, b, c, np.int32(M), np.int32(N), np.int32(K))
    return c


def complex_product(kernel, a, b):
    """The product (M, N, 2) of a (M, K, 2) and b (K, N, 2), numbers of two parts."""
    M, K, _ = a.shape
    N = b.shape[1]
    c = torch.empty(M, N, 2, dtype=a.dtype, device=a.device)
    BM, BN, TM, TN = (kernel.constants[name] for name in ("BM", "BN", "TM", "TN"))  # as your file has them
    threads = (BM // TM) * (BN // TN)
    grid = (-(-N // BN), -(-M // BM))  # both rounded up
    kernel(grid, threads, a, b, c, np.int32(M), np.int32(N), np.int32(K))
    return c
