# right | on: cpu, gpu
# Triton: one program for a block of a row. On a CPU it needs TRITON_INTERPRET=1 before the file is loaded.
import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def scale_rows(x_ptr, s_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + i, mask=i < N)
    tl.store(y_ptr + row * N + i, x * tl.load(s_ptr + row), mask=i < N)


def refusals(x, s):
    M, N = x.shape
    y = torch.empty_like(x)
    scale_rows[(M, triton.cdiv(N, BLOCK))](x, s, y, N, BLOCK=BLOCK)
    return y
