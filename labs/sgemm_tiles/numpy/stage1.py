"""Lab sgemm_tiles: C = A B in fp32, a tile of C to a block, a tile of A and a tile of B on its tray."""

import numpy as np

TILE = 32  # rows and columns of the piece of C that one block makes; a tray holds as much


def sgemm(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product (M, N) of a (M, K) and b (K, N)."""
    M, N = a.shape[0], b.shape[1]
    c = np.full((M, N), np.nan, dtype=a.dtype)  # what nobody writes stays NaN
    for m in range(0, M, TILE):
        for n in range(0, N, TILE):  # every turn is a block of its own
            one_block(a, b, c, m, n)
    return c


def one_block(A: np.ndarray, B: np.ndarray, C: np.ndarray, m: int, n: int) -> None:
    """Make the tile of C that begins at row m and column n."""
    M, N, K = A.shape[0], B.shape[1], A.shape[1]
    sums = np.zeros((TILE, TILE), dtype=A.dtype)
    row = np.arange(m, m + TILE)  # of A and of C
    column = np.arange(n, n + TILE)  # of B and of C
    for k in range(K):
        sums += A[row, k][:, None] * B[k, column][None, :]
    C[row[:, None], column[None, :]] = sums
