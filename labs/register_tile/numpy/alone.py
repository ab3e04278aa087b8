"""Lab register_tile: C = A B in fp32, several numbers of C to a thread."""

import numpy as np

TM, TN = 8, 8  # the register tile: rows and columns of C that one thread owns

# Predict on paper. A multiply-add takes a number of A and a number of B. A thread keeps what it has read
# for one k until the next k. How many numbers does it read from a and b for 64 multiply-adds, if it owns
ONE = 128  # one number of C?
COLUMN = 72  # a column of 8?
SQUARE = 16  # a square of 8 x 8?
assert 7 * ONE + 5 * COLUMN + 3 * SQUARE == 1304, "predict first: the three numbers, on paper"


def sgemm(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product (M, N) of a (M, K) and b (K, N)."""
    M, N = a.shape[0], b.shape[1]
    c = np.full((M, N), np.nan, dtype=a.dtype)  # what nobody writes stays NaN
    for m in range(0, M, TM):
        for n in range(0, N, TN):  # from here on: one thread
            rows, columns = min(TM, M - m), min(TN, N - n)  # the last ones reach past two edges
            sums = np.zeros((rows, columns), dtype=a.dtype)
            for k in range(a.shape[1]):
                of_a = a[m : m + rows, k]  # read once, used for all columns
                of_b = b[k, n : n + columns]  # read once, used for all rows
                sums += of_a[:, None] * of_b[None, :]
            c[m : m + rows, n : n + columns] = sums
    return c


def complex_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product (M, N, 2) of a (M, K, 2) and b (K, N, 2), numbers of two parts."""
    M, N = a.shape[0], b.shape[1]
    c = np.full((M, N, 2), np.nan, dtype=a.dtype)
    for m in range(0, M, TM):
        for n in range(0, N, TN):  # from here on: one thread
            rows, columns = min(TM, M - m), min(TN, N - n)
            real = np.zeros((rows, columns), dtype=a.dtype)
            imaginary = np.zeros((rows, columns), dtype=a.dtype)
            for k in range(a.shape[1]):
                x, y = (
                    a[m : m + rows, k, 0, None],
                    a[m : m + rows, k, 1, None],
                )  # read once, used for all columns
                u, v = b[k, n : n + columns, 0], b[k, n : n + columns, 1]  # read once, used for all rows
                real += x * u
                real -= y * v
                imaginary += x * v
                imaginary += y * u
            c[m : m + rows, n : n + columns, 0] = real
            c[m : m + rows, n : n + columns, 1] = imaginary
    return c
