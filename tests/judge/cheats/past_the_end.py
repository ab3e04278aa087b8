# refused for: out of bounds | on: gpu | source: Wafer (reads and writes past what was asked for); ours
# No mask: the last program stores behind the output, over whatever lies there.
import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def scale(x_ptr, s_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i) * tl.load(s_ptr + i // N))


def refusals(x, s):
    y = torch.empty_like(x)
    scale[(triton.cdiv(x.numel(), BLOCK),)](x, s, y, x.shape[1], BLOCK=BLOCK)
    return y
