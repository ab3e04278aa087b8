"""Lab add_rmsnorm: s = x + r, and y is s divided by the size of its row, times g; all in numbers of 16 bits."""

import numpy as np

EPSILON = 1e-5  # under the root


def add_rmsnorm_program(row, x, g, r, y, s, N, BLOCK):
    """What one program does: one row."""
    n = np.arange(BLOCK)  # [BLOCK]
    n = n[n < N]  # a row may have fewer numbers than seats
    v = x[row, n].astype(np.float32) + r[row, n]  # before anything is squared
    s[row, n] = v
    mean = (v * v).sum() / N  # v is still in the hand; of numbers, not of seats
    y[row, n] = v / np.sqrt(mean + EPSILON) * g[n]


def add_rmsnorm(x: np.ndarray, g: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """y and s, each (M, N) like x and r; g is (N,)."""
    M, N = x.shape
    y, s = np.full_like(x, np.nan), np.full_like(x, np.nan)  # what nobody writes stays NaN
    BLOCK = 1 << (N - 1).bit_length()  # seats for a whole row: a power of two, as on a card
    for row in range(M):
        add_rmsnorm_program(row, x, g, r, y, s, N, BLOCK)
    return y, s


def add_rmsnorm_scaled_program(row, x, g, r, q, a, s, N, BLOCK):
    """What one program does: one row, and its largest number."""
    n = np.arange(BLOCK)
    n = n[n < N]
    v = x[row, n].astype(np.float32) + r[row, n]
    s[row, n] = v
    scaled = v / np.sqrt((v * v).sum() / N + EPSILON) * g[n]  # in the hand, and stored nowhere
    a[row] = largest = np.abs(scaled).max()
    q[row, n] = scaled / largest


def add_rmsnorm_scaled(x, g, r):
    """q (M, N), a (M,) and s (M, N)."""
    M, N = x.shape
    q, s, a = np.full_like(x, np.nan), np.full_like(x, np.nan), np.full(M, np.nan, dtype=x.dtype)
    BLOCK = 1 << (N - 1).bit_length()
    for row in range(M):
        add_rmsnorm_scaled_program(row, x, g, r, q, a, s, N, BLOCK)
    return q, a, s
