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


@triton.jit
def row_products_kernel(a_ptr, t_ptr, M, K, TILE: tl.constexpr):
    """Make one tile of T."""
    m = tl.program_id(1).to(tl.int64) * TILE + tl.arange(0, TILE)  # [TILE] rows of T, and of A
    n = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)  # [TILE] columns of T, rows of A as well
    sums = tl.zeros([TILE, TILE], dtype=tl.float32)
    if tl.program_id(0) <= tl.program_id(1):  # above the diagonal nothing is read
        for first in range(0, K, TILE):  # both tiles walk to the right
            k = first + tl.arange(0, TILE).to(tl.int64)  # [TILE]
            in_here = (m[:, None] < M) & (k[None, :] < K)
            in_there = (n[:, None] < M) & (k[None, :] < K)
            here = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=in_here, other=0.0)
            there = tl.load(a_ptr + n[:, None] * K + k[None, :], mask=in_there, other=0.0)
            sums += tl.dot(here, tl.trans(there), input_precision="ieee")
    sums = tl.where(n[None, :] <= m[:, None], sums, 0.0)  # a tile on the diagonal is half zeros
    in_t = (m[:, None] < M) & (n[None, :] < M)
    tl.store(t_ptr + m[:, None] * M + n[None, :], sums, mask=in_t)


def row_products(a: torch.Tensor) -> torch.Tensor:
    """The products (M, M) of every row of a (M, K) with itself and with the rows above it; 0 elsewhere."""
    M, K = a.shape
    t = torch.empty((M, M), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(M, TILE), triton.cdiv(M, TILE))  # a program for every tile of T
    row_products_kernel[grid](a, t, M, K, TILE=TILE)
    return t
