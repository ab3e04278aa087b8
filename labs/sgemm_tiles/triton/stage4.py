"""Lab sgemm_tiles: C = A B in fp32."""

import torch
import triton
import triton.language as tl

TILE = 32  # rows and columns of the piece of C that one program makes


@triton.jit
def sgemm_kernel(a_ptr, b_ptr, c_ptr, M, N, K, TILE: tl.constexpr):
    """Make one tile of C."""
    m = tl.program_id(1).to(tl.int64) * TILE + tl.arange(0, TILE)  # [TILE] rows of A and of C
    n = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)  # [TILE] columns of B and of C
    sums = tl.zeros([TILE, TILE], dtype=tl.float32)
    for first in range(0, K, TILE):  # the next tile of A to the right, the next tile of B below
        k = first + tl.arange(0, TILE).to(tl.int64)  # [TILE]
        in_a = (m[:, None] < M) & (k[None, :] < K)
        in_b = (k[:, None] < K) & (n[None, :] < N)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=in_a, other=0.0)  # [TILE, TILE]
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=in_b, other=0.0)  # [TILE, TILE]
        sums += tl.dot(a, b, input_precision="ieee")  # fp32 all the way
    in_c = (m[:, None] < M) & (n[None, :] < N)  # the last tiles reach past two edges
    tl.store(c_ptr + m[:, None] * N + n[None, :], sums, mask=in_c)


def sgemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The product (M, N) of a (M, K) and b (K, N)."""
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty(M, N, dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(N, TILE), triton.cdiv(M, TILE))  # a program for every tile of C
    sgemm_kernel[grid](a, b, c, M, N, K, TILE=TILE)
    return c
