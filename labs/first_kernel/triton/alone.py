"""Vector add in Triton: z[i] = x[i] + y[i], for two vectors of any length N."""

import torch
import triton
import triton.language as tl

BLOCK = 1024  # elements of one program: a power of two


@triton.jit
def vector_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK: tl.constexpr):
    """What one program does."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < N
    x = tl.load(x_ptr + i, mask=mask)
    y = tl.load(y_ptr + i, mask=mask)
    tl.store(z_ptr + i, x + y, mask=mask)


def vector_add(x, y):
    N = x.numel()
    z = torch.empty_like(x)
    programs = triton.cdiv(N, BLOCK)  # rounded up
    vector_add_kernel[(programs,)](x, y, z, N, BLOCK=BLOCK)
    return z


@triton.jit
def pair_sums_kernel(x_ptr, z_ptr, N, BLOCK: tl.constexpr):
    """What one program does: BLOCK sums of two neighbours."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < N
    left = tl.load(x_ptr + 2 * i, mask=mask)
    right = tl.load(x_ptr + 2 * i + 1, mask=mask)
    tl.store(z_ptr + i, left + right, mask=mask)


def pair_sums(x):
    N = x.numel() // 2  # sums
    z = torch.empty(N, dtype=x.dtype, device=x.device)
    programs = triton.cdiv(N, BLOCK)  # rounded up
    pair_sums_kernel[(programs,)](x, z, N, BLOCK=BLOCK)
    return z
