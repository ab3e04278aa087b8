# refused for: NaN lost
import torch
import triton
import triton.language as tl


@triton.jit
def vector_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < N
    z = tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask)
    tl.store(z_ptr + i, tl.where(z == z, z, 0.0), mask=mask)


def vector_add(x, y):
    z = torch.empty_like(x)
    vector_add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, z, x.numel(), BLOCK=1024)
    return z
