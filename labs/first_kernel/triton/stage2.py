"""Vector add in Triton: z[i] = x[i] + y[i], for two vectors of any length N."""

import torch
import triton
import triton.language as tl

BLOCK = 1024  # elements of one program: a power of two


@triton.jit
def vector_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK: tl.constexpr):
    """What one program does."""
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    y = tl.load(y_ptr + i)
    tl.store(z_ptr + i, x + y)


def vector_add(x, y):
    N = x.numel()
    z = torch.empty_like(x)
    vector_add_kernel[(1,)](x, y, z, N, BLOCK=BLOCK)
    return z
