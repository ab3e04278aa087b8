# refused for: not written | on: cpu | source: ours
# Right for rows of up to 1024 numbers: a row is one block.
import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, s_ptr, y_ptr, N, BLOCK: tl.constexpr):
    m = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + m * N + n, mask=n < N)
    tl.store(y_ptr + m * N + n, x * tl.load(s_ptr + m), mask=n < N)


def refusals(x, s):
    M, N = x.shape
    y = torch.empty_like(x)
    scale_kernel[(M,)](x, s, y, N, BLOCK=1024)
    return y
