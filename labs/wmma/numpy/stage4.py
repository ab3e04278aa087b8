"""Lab wmma: C = A B with 16-bit numbers and 32-bit sums, in steps of a tensor core, which are given."""

import numpy as np

F = 16  # a fragment is F x F numbers
BM, BN = 32, 32  # the tile of C that one warp makes: 2 x 2 fragments


def fill_fragment(value: float) -> np.ndarray:
    """F x F sums, all of them `value`."""
    return np.full((F, F), value, dtype=np.float32)


def load_matrix_sync(numbers: np.ndarray, start: int, stride: int) -> np.ndarray:
    """F x F numbers out of one long row: the first at `start`, each row `stride` after the one before."""
    fragment = np.zeros((F, F), dtype=numbers.dtype)
    for row in range(F):
        fragment[row] = numbers[start + row * stride : start + row * stride + F]
    return fragment


def mma_sync(a: np.ndarray, b: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """sums + a b: on a tensor core, one instruction or two."""
    for k in range(F):
        sums = sums + np.multiply(a[:, k, None], b[None, k], dtype=np.float32)
    return sums


def store_matrix_sync(c: np.ndarray, m: int, n: int, sums: np.ndarray) -> None:
    """Store F x F sums in c, from row m and column n on, as far as c reaches."""
    square = c[m : m + F, n : n + F]
    square[...] = sums[: square.shape[0], : square.shape[1]]


def tile_of(matrix: np.ndarray, row: int, column: int, rows: int, columns: int) -> np.ndarray:
    """A piece of a matrix as one long row, in shared memory; what does not exist is 0."""
    tile = np.zeros((rows, columns), dtype=matrix.dtype)
    piece = matrix[row : row + rows, column : column + columns]
    tile[: piece.shape[0], : piece.shape[1]] = piece
    return tile.reshape(-1)


def gemm(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product (M, N) of a (M, K) and b (K, N)."""
    M, N, K = a.shape[0], b.shape[1], a.shape[1]
    c = np.full((M, N), np.nan, dtype=a.dtype)  # what nobody writes stays NaN
    for m in range(0, M, BM):
        for n in range(0, N, BN):  # from here on: one warp
            sums = {(i, j): fill_fragment(0.0) for i in range(2) for j in range(2)}
            for k in range(0, K, F):
                tile_a, tile_b = tile_of(a, m, k, BM, F), tile_of(b, k, n, F, BN)
                fragments_a = [load_matrix_sync(tile_a, i * F * F, F) for i in range(2)]
                fragments_b = [load_matrix_sync(tile_b, j * F, BN) for j in range(2)]
                for i, j in sums:
                    sums[i, j] = mma_sync(fragments_a[i], fragments_b[j], sums[i, j])
            for i, j in sums:
                store_matrix_sync(c, m + i * F, n + j * F, sums[i, j])
    return c
