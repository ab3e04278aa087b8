"""What calls the student's kernel: one thread for every pair, 256 threads to a block."""

import numpy as np
import torch


def launch(kernel, x, y):
    N = x.numel()
    z = torch.empty_like(x)
    blocks = -(-N // 256)  # rounded up
    kernel(blocks, 256, x, y, z, np.int64(N))
    return z
