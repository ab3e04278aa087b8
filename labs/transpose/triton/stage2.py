"""Lab transpose: the rows of x become the columns of y."""

import torch
import triton
import triton.language as tl

TILE = 32  # rows and columns of the piece that one program moves


@triton.jit
def transpose_kernel(x_ptr, y_ptr, M, N, TILE: tl.constexpr):
    """Move one tile of x to its place in y."""
    m = tl.program_id(1).to(tl.int64) * TILE + tl.arange(0, TILE)  # [TILE] rows of x
    n = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)  # [TILE] columns of x
    in_x = (m[:, None] < M) & (n[None, :] < N)  # the last tiles reach past two edges
    tile = tl.load(x_ptr + m[:, None] * N + n[None, :], mask=in_x)  # [TILE, TILE]
    tl.store(y_ptr + m[:, None] * N + n[None, :], tile, mask=in_x)


def transpose(x: torch.Tensor) -> torch.Tensor:
    """The transpose (N, M) of x (M, N)."""
    M, N = x.shape
    y = torch.empty(N, M, dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(N, TILE), triton.cdiv(M, TILE))  # a program for every tile of x
    transpose_kernel[grid](x, y, M, N, TILE=TILE)
    return y
