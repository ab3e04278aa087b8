"""Lab add_rmsnorm: s = x + r, and y is s divided by the size of its row, times g; all in numbers of 16 bits."""

import numpy as np

EPSILON = 1e-5  # under the root


def add_rmsnorm_program(row, x, g, r, y, s, N, BLOCK):
    """What one program does: one row."""
    n = np.arange(BLOCK)  # [BLOCK]
    s[row, n] = x[row, n] + r[row, n]


def norm_program(row, s, g, y, N, BLOCK):
    """The same row again, loaded a second time."""
    n = np.arange(BLOCK)  # [BLOCK]
    v = s[row, n]
    squares = (v * v).astype(np.float32)
    mean = squares.sum() / N
    y[row, n] = v / np.sqrt(mean + EPSILON) * g[n]


def add_rmsnorm(x: np.ndarray, g: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """y and s, each (M, N) like x and r; g is (N,)."""
    M, N = x.shape
    y, s = np.full_like(x, np.nan), np.full_like(x, np.nan)  # what nobody writes stays NaN
    BLOCK = 1 << (N - 1).bit_length()  # seats for a whole row: a power of two, as on a card
    for row in range(M):
        add_rmsnorm_program(row, x, g, r, y, s, N, BLOCK)
    for row in range(M):
        norm_program(row, s, g, y, N, BLOCK)
    return y, s
