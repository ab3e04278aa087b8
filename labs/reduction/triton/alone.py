"""Lab reduction: many numbers in, their sum out."""

import torch
import triton
import triton.language as tl

BLOCK = 1024  # numbers of one program in one step
PROGRAMS = 2048  # at most: a few for every SM of a large card


@triton.jit
def reduction_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    """Add up one share of x."""
    first = tl.program_id(0).to(tl.int64) * BLOCK
    step = tl.num_programs(0).to(tl.int64) * BLOCK  # as far as all programs reach together
    share = tl.zeros([BLOCK], dtype=tl.float32)
    while first < N:
        i = first + tl.arange(0, BLOCK)  # [BLOCK]
        share += tl.load(x_ptr + i, mask=i < N, other=0.0)  # what does not exist adds nothing
        first += step
    tl.atomic_add(y_ptr, tl.sum(share))  # one program at a time


def reduction(x: torch.Tensor) -> torch.Tensor:
    """The sum (1,) of x (N,)."""
    (N,) = x.shape
    y = torch.zeros(1, dtype=x.dtype, device=x.device)
    grid = (min(triton.cdiv(N, BLOCK), PROGRAMS),)
    reduction_kernel[grid](x, y, N, BLOCK=BLOCK)
    return y


@triton.jit
def roughness_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    """Add up the squares of one share of the steps."""
    first = tl.program_id(0).to(tl.int64) * BLOCK
    step = tl.num_programs(0).to(tl.int64) * BLOCK
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    while first < N - 1:
        i = first + tl.arange(0, BLOCK)  # [BLOCK]
        pair = i + 1 < N  # the last number has no right neighbour
        rise = tl.load(x_ptr + i + 1, mask=pair, other=0.0) - tl.load(x_ptr + i, mask=pair, other=0.0)
        squares += rise * rise
        first += step
    tl.atomic_add(y_ptr, tl.sum(squares))


def roughness(x: torch.Tensor) -> torch.Tensor:
    """The sum (1,) of the squares of all steps from one number of x (N,) to the next."""
    (N,) = x.shape
    y = torch.zeros(1, dtype=x.dtype, device=x.device)
    grid = (min(triton.cdiv(N, BLOCK), PROGRAMS),)
    roughness_kernel[grid](x, y, N, BLOCK=BLOCK)
    return y
