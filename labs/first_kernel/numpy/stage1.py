"""Vector add in NumPy, block by block: z[i] = x[i] + y[i], for two vectors of any length N."""

import numpy as np

BLOCK = 1024  # elements of one program: the most that it may have before it at once


def vector_add_program(program, x, y, z, N):
    """What one program does."""
    i = program
    z[i] = x[i] + y[i]


def vector_add(x, y):
    N = len(x)
    z = np.full(N, np.nan, dtype=x.dtype)  # room; what nobody writes stays NaN
    for program in range(1):
        vector_add_program(program, x, y, z, N)
    return z
