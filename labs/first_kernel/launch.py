"""What calls the student's kernels: one thread for every number of the answer, 256 threads to a block."""

import numpy as np
import torch


def launch(kernel, x, y):
    N = x.numel()
    z = torch.empty_like(x)
    blocks = -(-N // 256)  # rounded up
    kernel(blocks, 256, x, y, z, np.int64(N))
    return z


def pair_sums(kernel, x):
    N = x.numel() // 2  # sums
    z = x.new_empty(N)
    blocks = -(-N // 256)  # rounded up
    kernel(blocks, 256, x, z, np.int64(N))
    return z
