# refused for: not yours | torch.sub
import torch
import triton
import triton.language as tl

BLOCK = 1024  # numbers of one program
LONG = 16384  # of the sum: the interpreter is soon done with it
PROGRAMS = 2048  # at most


@triton.jit
def reduction_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    """Add up one share of x."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # [BLOCK]
    share = tl.load(x_ptr + i, mask=i < N, other=0.0)  # what does not exist adds nothing
    tl.atomic_add(y_ptr, tl.sum(share))  # one program at a time


def reduction(x: torch.Tensor) -> torch.Tensor:
    """The sum (1,) of x (N,)."""
    (N,) = x.shape
    y = torch.zeros(1, dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(N, LONG),)
    reduction_kernel[grid](x, y, N, BLOCK=LONG)
    return y


def roughness(x):
    rise = x[1:] - x[:-1]
    return reduction(rise * rise)
