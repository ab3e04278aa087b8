"""What calls your kernel: blocks of 256 threads, and never more than 2048 of them."""

import numpy as np
import torch


def launch(kernel, x):
    """The sum (1,) of x (N,)."""
    (N,) = x.shape
    y = torch.zeros(1, dtype=x.dtype, device=x.device)
    blocks = min(-(-N // 256), 2048)  # rounded up
    kernel(blocks, 256, x, y, np.int64(N))
    return y
