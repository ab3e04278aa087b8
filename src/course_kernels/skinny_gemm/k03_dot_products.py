"""A few rows times a large matrix, kernel 3: dot products on the CUDA cores, for one row of x or a few.

Contract  problem.py
Idea      with one row there is no matrix to multiply: every thread multiplies the weights that it loads with its
          numbers of x, keeps what it adds up in registers, and the threads of a row of weights meet once, at its end.
          Weights go from memory to registers, by no tile, and no barrier is in the loop
Against   k02_shares, whose tensor cores multiply 16 rows of x of which 15 are zeros, by way of shared memory
Cost      two operations for each weight and row of x, and a conversion to float32 for each weight
Limits    four rows of x at a time: then the operations take as long as the bytes. With more rows the weights are read
          anew for each four of them: it is a kernel for few. What is under way are the weights of one step of
          each program, so many small programs are on a multiprocessor at once
Next      skinny_gemm_w4, where making numbers of the weights is most of the work
Source    ours; that the threads of a row meet once, and at its end, is the CUDA samples' reduction
"""

from __future__ import annotations

from dataclasses import dataclass

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.skinny_gemm.arguments import sizes_of

AT_ONCE = 4  # rows of x


@dataclass(frozen=True)
class Tile:
    """Tile shape: rows of the weights of a program, numbers of a step, warps."""

    block_n: int
    block_k: int
    warps: int


# By the rows of x. Four loads of 16 bytes for each thread of a step: 8 KB for each program, and with one row of x the
# registers hold seven programs on a multiprocessor. Every further row of x has as many sums, so fewer programs fit.
TILES = {1: Tile(4, 1024, 4), 2: Tile(4, 1024, 4), 4: Tile(4, 512, 4)}


# --- on the device -----------------------------------------------------------


@triton.jit
def dot_products_kernel(
    X, W, Y, M, N, K,
    ROWS: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """One program takes BLOCK_N rows of the weights and ROWS rows of x."""
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)[:, None]
    at = tl.arange(0, BLOCK_K)[None, :]
    from_w = W + n.to(tl.int64) * K
    # Every row of weights has its own pointers to x: a thread then loads the very numbers that it multiplies.
    first = tl.program_id(1).to(tl.int64) * ROWS
    left = M - first  # rows of x, of which this program takes the next ones
    from_x = X + first * K + (n * 0)
    two, three = tl.full((), 2, tl.int64), tl.full((), 3, tl.int64)
    acc_0 = tl.zeros([BLOCK_N, BLOCK_K], tl.float32)
    acc_1, acc_2, acc_3 = acc_0, acc_0, acc_0
    # Read once and never again: other things have more use for the place in L2.
    coming = tl.load(from_w + at, mask=(n < N) & (at < K), other=0.0, eviction_policy="evict_first")
    for start in tl.range(0, K, BLOCK_K):
        k = start + at
        there = k < K
        w = coming.to(tl.float32)
        # The weights of the next step are on their way while these are multiplied.
        later = k + BLOCK_K
        coming = tl.load(from_w + later, mask=(n < N) & (later < K), other=0.0, eviction_policy="evict_first")
        acc_0 += w * tl.load(from_x + k, mask=there, other=0.0).to(tl.float32)
        if ROWS > 1:
            acc_1 += w * tl.load(from_x + K + k, mask=there & (left > 1), other=0.0).to(tl.float32)
        if ROWS > 2:
            acc_2 += w * tl.load(from_x + two * K + k, mask=there & (left > 2), other=0.0).to(tl.float32)
            acc_3 += w * tl.load(from_x + three * K + k, mask=there & (left > 3), other=0.0).to(tl.float32)
    to = Y + first * N + tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N) < N
    tl.store(to, tl.sum(acc_0, 1).to(Y.dtype.element_ty), mask=inside)
    if ROWS > 1:
        tl.store(to + N, tl.sum(acc_1, 1).to(Y.dtype.element_ty), mask=inside & (left > 1))
    if ROWS > 2:
        tl.store(to + two * N, tl.sum(acc_2, 1).to(Y.dtype.element_ty), mask=inside & (left > 2))
        tl.store(to + three * N, tl.sum(acc_3, 1).to(Y.dtype.element_ty), mask=inside & (left > 3))


# --- on the host -------------------------------------------------------------


def skinny_gemm(x: torch.Tensor, w: torch.Tensor, *, tile: Tile | None = None) -> torch.Tensor:
    """Return a few rows times the transpose of a matrix.

    Args:
        x: (M, K) bfloat16 or float16, contiguous, M <= 128.
        w: (N, K), the same type, contiguous.
        tile: how to cut the work; without it, what suits the rows of x.
    Returns:
        (M, N), the same type; sums over K in float32, rounded once.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    M, N, K = sizes_of(x, w)
    rows = min(triton.next_power_of_2(M), AT_ONCE)
    tile = tile or TILES[rows]
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    dot_products_kernel[(triton.cdiv(N, tile.block_n), triton.cdiv(M, rows))](
        x, w, y, M, N, K, ROWS=rows, BLOCK_N=tile.block_n, BLOCK_K=tile.block_k, num_warps=tile.warps
    )
    return y
