"""A few rows times a large matrix, kernel 1: a program for some rows of the weights, with all of K.

Contract  problem.py
Idea      weights take the side of the multiply that is wide: 64 rows of them are what a warpgroup multiplies, and the
          few rows of x, made up to 16, are the narrow side. So the tensor cores take the weights from shared memory,
          as they came, and almost nothing is done for nothing
Against   gemm/k05_triton, whose tile of 128 rows of x would be empty but for a few
Cost      every weight is read once; x by every program, but x is small and lies in L2
Limits    N / 64 programs, however many multiprocessors there are: where they do not come out even, the last ones run
          while most of the card has nothing to do
Next      k02_shares gives every program as many bytes as every other
Source    Triton tutorial 03
"""

from __future__ import annotations

from dataclasses import dataclass

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.skinny_gemm.arguments import sizes_of

LEAST_ROWS = 16  # of x, in a multiply on tensor cores


@dataclass(frozen=True)
class Tile:
    """Tile shape.

    Attributes:
        block_n, block_k: a tile of the weights is block_n x block_k.
        warps: warps of a program.
        stages: tiles on their way or in use; the copies run one less ahead.
        resident: programs that a multiprocessor holds at once.
    """

    block_n: int
    block_k: int
    warps: int
    stages: int
    resident: int


# By the rows of x, made up to a power of two. 16 KB of weights a step, three to five steps ahead: with the programs
# that fit, 80 to 96 KB are under way for each multiprocessor. What memory delivers in the time of one latency is some
# 45 to 64 KB on Hopper. With many rows of x a tile takes more rows of the weights, so that x crosses L2 less often.
TILES = {
    16: Tile(64, 128, warps=4, stages=4, resident=2),
    32: Tile(64, 128, warps=4, stages=4, resident=2),
    64: Tile(128, 64, warps=8, stages=6, resident=1),
    128: Tile(128, 64, warps=8, stages=6, resident=1),
}


# --- on the device -----------------------------------------------------------


@triton.jit
def multiply(
    X, W, n, first, last, M, N, K,
    ROWS: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Return rows n of the weights times all rows of x, from step `first` to step `last` of K: [BLOCK_N, ROWS]."""
    m = tl.arange(0, ROWS)
    acc = tl.zeros([n.shape[0], ROWS], tl.float32)
    from_w = W + n[:, None].to(tl.int64) * K
    from_x = X + m[:, None].to(tl.int64) * K
    for step in tl.range(first, last):
        k = step * BLOCK_K + tl.arange(0, BLOCK_K)
        w = tl.load(from_w + k[None, :], mask=(n < N)[:, None] & (k < K)[None, :], other=0.0)
        x = tl.load(from_x + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        acc = tl.dot(w, x.T, acc)
    return acc


@triton.jit
def store(Y, n, acc, M, N):
    """Columns n of y."""
    m = tl.arange(0, acc.shape[1])
    to = Y + m[None, :].to(tl.int64) * N + n[:, None]
    tl.store(to, acc.to(Y.dtype.element_ty), mask=(m < M)[None, :] & (n < N)[:, None])


@triton.jit
def one_program_kernel(
    X, W, Y, M, N, K,
    ROWS: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """One program takes BLOCK_N rows of the weights."""
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = multiply(X, W, n, 0, tl.cdiv(K, BLOCK_K), M, N, K, ROWS, BLOCK_K)
    store(Y, n, acc, M, N)


# --- on the host -------------------------------------------------------------


def rows_of(M: int) -> int:
    """Return rows of x in a multiply."""
    return max(LEAST_ROWS, triton.next_power_of_2(M))


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
    rows = rows_of(M)
    tile = tile or TILES[rows]
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    one_program_kernel[(triton.cdiv(N, tile.block_n),)](
        x, w, y, M, N, K,
        ROWS=rows, BLOCK_N=tile.block_n, BLOCK_K=tile.block_k, num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
    return y
