"""Softmax of rows, each read twice: once for its maximum and sum, once to be written.

Contract  softmax(x): x (M, N) float32, row-major -> (M, N)
Idea      one program a row, in pieces of BLOCK; maximum and sum are carried from piece to piece
Limits    a row is read twice: half as many bytes again as must move; CUDA, or Triton's interpreter
"""

import torch
import triton
import triton.language as tl

BLOCK = 4096  # numbers of a row that are held at once


@triton.jit
def rows(x, y, N, BLOCK: tl.constexpr):
    """One row: its maximum and sum first, then its weights."""
    start = tl.program_id(0).to(tl.int64) * N
    most = tl.full((), float("-inf"), tl.float32)
    total = tl.full((), 0.0, tl.float32)
    for first in range(0, N, BLOCK):
        n = first + tl.arange(0, BLOCK)
        v = tl.load(x + start + n, mask=n < N, other=float("-inf"))
        new = tl.maximum(most, tl.max(v, 0))  # NaN is kept by the sum
        # A piece of nothing but -inf: no weight yet, and -inf - -inf would be NaN.
        held = tl.where(new == float("-inf"), 0.0, new)
        total = total * tl.exp(most - held) + tl.sum(tl.exp(v - held), 0)
        most = new
    for first in range(0, N, BLOCK):
        n = first + tl.arange(0, BLOCK)
        v = tl.load(x + start + n, mask=n < N, other=float("-inf"))
        tl.store(y + start + n, tl.exp(v - most) / total, mask=n < N)


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Return the softmax of every row."""
    if x.dtype != torch.float32:
        raise TypeError(f"x: expected float32, got {x.dtype}")
    if x.dim() != 2 or not x.is_contiguous():
        raise ValueError(f"x: expected (M, N), row-major, got shape {tuple(x.shape)}, strides {x.stride()}")
    y = torch.empty_like(x)
    M, N = x.shape
    rows[(M,)](x, y, N, BLOCK=BLOCK)
    return y
