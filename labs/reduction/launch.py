"""What calls your kernels: blocks of 256 threads, and never more than 2048 of them."""

import numpy as np
import torch


def launch(kernel, x):
    """The sum (1,) of x (N,)."""
    (N,) = x.shape
    y = torch.zeros(1, dtype=x.dtype, device=x.device)
    blocks = min(-(-N // 256), 2048)  # rounded up
    kernel(blocks, 256, x, y, np.int64(N))
    return y


def roughness(kernel, x):
    """The sum (1,) of the squares of all steps from one number of x (N,) to the next."""
    (N,) = x.shape
    y = torch.zeros(1, dtype=x.dtype, device=x.device)
    blocks = min(-(-N // 256), 2048)  # a thread for every number, as above
    kernel(blocks, 256, x, y, np.int64(N))
    return y
