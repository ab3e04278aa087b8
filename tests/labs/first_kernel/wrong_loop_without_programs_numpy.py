# refused for: not in blocks | vector_add_program is never started
import numpy as np

BLOCK = 1024  # elements of one program: the most that it may have before it at once


def vector_add_program(program, x, y, z, N):
    """What one program does."""
    # your lines go here


def vector_add(x, y):
    N = len(x)
    z = np.full(N, np.nan, dtype=x.dtype)  # room; what nobody writes stays NaN
    for i in range(N):
        z[i] = x[i] + y[i]
    return z
