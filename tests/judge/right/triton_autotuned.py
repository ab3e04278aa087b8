# right | on: cpu, gpu
# Triton, autotuned: the first call for a width launches it many times over, into the same output.
import torch
import triton
import triton.language as tl

CONFIGS = [
    triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in ((512, 4), (1024, 4), (2048, 8))
]


# The interpreter has no clock for the configurations; it gets one of them.
@triton.autotune(configs=CONFIGS if torch.cuda.is_available() else CONFIGS[:1], key=["N"])
@triton.jit
def scale_rows(x_ptr, s_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + i, mask=i < N)
    tl.store(y_ptr + row * N + i, x * tl.load(s_ptr + row), mask=i < N)


def refusals(x, s):
    M, N = x.shape
    y = torch.empty_like(x)
    scale_rows[lambda meta: (M, triton.cdiv(N, meta["BLOCK"]))](x, s, y, N)
    return y
