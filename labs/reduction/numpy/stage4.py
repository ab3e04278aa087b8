"""Lab reduction: many numbers in, their sum out."""

import numpy as np

BLOCK = 1024  # numbers of one program in one step
PROGRAMS = 2048  # at most


def reduction_program(program, programs, x, y, N):
    """Add up one share of x."""
    share = np.zeros(BLOCK, dtype=x.dtype)
    for first in range(program * BLOCK, N, programs * BLOCK):  # past the shares of all the others
        i = first + np.arange(BLOCK)  # [BLOCK]
        mask = i < N
        share[mask] += x[i[mask]]  # what does not exist adds nothing
    y[0] += share.sum()  # here one program comes after the other


def reduction(x: np.ndarray) -> np.ndarray:
    """The sum (1,) of x (N,)."""
    (N,) = x.shape
    y = np.zeros(1, dtype=x.dtype)
    programs = min(-(-N // BLOCK), PROGRAMS)
    for program in range(programs):
        reduction_program(program, programs, x, y, N)
    return y
