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
    for k in range(K):
        column = tl.load(a_ptr + m * K + k)  # [TILE] of A
        row = tl.load(b_ptr + k * N + n)  # [TILE] of B
        sums += column[:, None] * row[None, :]
    tl.store(c_ptr + m[:, None] * N + n[None, :], sums)


def sgemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The product (M, N) of a (M, K) and b (K, N)."""
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty(M, N, dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(N, TILE), triton.cdiv(M, TILE))  # a program for every tile of C
    sgemm_kernel[grid](a, b, c, M, N, K, TILE=TILE)
    return c
