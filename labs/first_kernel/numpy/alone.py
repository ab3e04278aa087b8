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


def pair_sums_program(program, x, z, N):
    """What one program does: BLOCK sums of two neighbours."""
    i = program * BLOCK + np.arange(BLOCK)
    i = i[i < N]
    left = x[2 * i]
    z[i] = left + x[2 * i + 1]


def pair_sums(x):
    N = len(x) // 2  # sums
    z = np.full(N, np.nan, dtype=x.dtype)
    programs = -(-N // BLOCK)  # rounded up
    for program in range(programs):
        pair_sums_program(program, x, z, N)
    return z
