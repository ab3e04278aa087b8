"""Lab register_tile: C = A B in fp32, several numbers of C to a thread."""

import numpy as np

TM, TN = 8, 1  # the register tile: rows and columns of C that one thread owns

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
    # your lines go here
    return c
