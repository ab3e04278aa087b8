# refused for: not in blocks | your file defines no pair_sums_program
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


def pair_sums(x):
    z = np.full(len(x) // 2, np.nan, dtype=x.dtype)
    for n in range(len(z)):
        z[n] = x[2 * n] + x[2 * n + 1]
    return z
