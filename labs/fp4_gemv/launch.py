"""What calls your kernels: blocks of THREADS threads, a block for every ROWS numbers of the answer."""

import numpy as np
import torch


def launch(kernel, a, scales_a, b, scales_b):
    """The product (1, M) of a (1, M, K/2) and b (1, K/2), with a scale for every sixteen numbers of each."""
    _, M, half = a.shape
    c = torch.empty(1, M, dtype=torch.float16, device=a.device)
    THREADS, ROWS = (kernel.constants[name] for name in ("THREADS", "ROWS"))  # as your file has them
    blocks = -(-M // ROWS)  # rounded up
    kernel(blocks, THREADS, a, scales_a, b, scales_b, c, np.int32(M), np.int32(2 * half))
    return c


def layer(kernel, packed, scales, second, x):
    """The product (M,) of packed (M, K/2), with scales (M, K/16) and a second one (1,), and x (K,)."""
    M, half = packed.shape
    y = torch.empty(M, dtype=torch.float32, device=x.device)
    THREADS, ROWS = (kernel.constants[name] for name in ("THREADS", "ROWS"))
    blocks = -(-M // ROWS)
    kernel(blocks, THREADS, packed, scales, second, x, y, np.int32(M), np.int32(2 * half))
    return y
