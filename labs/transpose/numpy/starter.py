"""Lab transpose: the rows of x become the columns of y."""

import numpy as np

TILE = 32  # rows and columns of the piece that one program moves


def transpose_program(down, along, x, y, M, N):
    """Move one tile of x to its place in y; both are lists of M * N numbers, as memory is."""
    # your lines go here


def transpose(x: np.ndarray) -> np.ndarray:
    """The transpose (N, M) of x (M, N)."""
    M, N = x.shape
    y = np.full(N * M, np.nan, dtype=x.dtype)  # what nobody writes stays NaN
    for down in range(-(-M // TILE)):  # a program for every tile of x
        for along in range(-(-N // TILE)):
            transpose_program(down, along, x.reshape(-1), y, M, N)
    return y.reshape(N, M)
