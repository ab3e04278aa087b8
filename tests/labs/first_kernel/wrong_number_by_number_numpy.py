# refused for: not in blocks | vector_add_program is started 5000 times for 5000 numbers
import numpy as np

BLOCK = 1024  # elements of one program: the most that it may have before it at once


def vector_add_program(program, x, y, z, N):
    """What one program does."""
    z[program] = x[program] + y[program]


def vector_add(x, y):
    N = len(x)
    z = np.full(N, np.nan, dtype=x.dtype)  # room; what nobody writes stays NaN
    for program in range(N):
        vector_add_program(program, x, y, z, N)
    return z
