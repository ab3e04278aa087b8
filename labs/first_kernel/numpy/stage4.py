"""Vector add in NumPy, block by block: z[i] = x[i] + y[i], for two vectors of any length N."""

import numpy as np

BLOCK = 1024  # elements of one program: the most that it may have before it at once


def vector_add_program(program, x, y, z, N):
    """What one program does."""
    i = program * BLOCK + np.arange(BLOCK)
    mask = i < N
    z[i[mask]] = x[i[mask]] + y[i[mask]]


def vector_add(x, y):
    N = len(x)
    z = np.full(N, np.nan, dtype=x.dtype)  # room; what nobody writes stays NaN
    programs = -(-N // BLOCK)  # rounded up
    for program in range(programs):
        vector_add_program(program, x, y, z, N)
    return z
