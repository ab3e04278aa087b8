"""Lab wmma: C = A B with 16-bit numbers and 32-bit sums, in steps of a tensor core, which are given."""

import numpy as np

F = 16  # a fragment is F x F numbers


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


def gemm(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product (M, N) of a (M, K) and b (K, N)."""
    M, N, K = a.shape[0], b.shape[1], a.shape[1]
    c = np.full((M, N), np.nan, dtype=a.dtype)  # what nobody writes stays NaN
    long_a, long_b = a.reshape(-1), b.reshape(-1)  # as they lie in memory
    for m in range(0, M, F):
        for n in range(0, N, F):  # from here on: one warp
            sums = fill_fragment(0.0)
            fragment_a = load_matrix_sync(long_a, m * K, K)  # rows of A begin K numbers apart
            fragment_b = load_matrix_sync(long_b, n, N)  # rows of B begin N numbers apart
            sums = mma_sync(fragment_a, fragment_b, sums)
            store_matrix_sync(c, m, n, sums)
    return c
