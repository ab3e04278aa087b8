"""Lab reduction: many numbers in, their sum out."""

import numpy as np

BLOCK = 1024  # numbers of one program


def reduction_program(program, x, y, N):
    """Add up one share of x."""
    i = program * BLOCK + np.arange(BLOCK)  # [BLOCK]
    mask = i < N
    share = np.zeros(BLOCK, dtype=x.dtype)  # what does not exist adds nothing
    share[mask] = x[i[mask]]
    y[0] += share.sum()  # here one program comes after the other


def reduction(x: np.ndarray) -> np.ndarray:
    """The sum (1,) of x (N,)."""
    (N,) = x.shape
    y = np.zeros(1, dtype=x.dtype)
    for program in range(-(-N // BLOCK)):
        reduction_program(program, x, y, N)
    return y
