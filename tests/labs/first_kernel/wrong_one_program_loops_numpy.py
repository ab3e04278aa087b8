# refused for: not in blocks | vector_add_program is started once for 5000 numbers; a block has 1024 at most
import numpy as np

BLOCK = 1024  # elements of one program: the most that it may have before it at once


def vector_add_program(program, x, y, z, N):
    """What one program does."""
    for i in range(N):
        z[i] = x[i] + y[i]


def vector_add(x, y):
    N = len(x)
    z = np.full(N, np.nan, dtype=x.dtype)  # room; what nobody writes stays NaN
    programs = -(-N // BLOCK)  # rounded up
    for program in range(1):
        vector_add_program(program, x, y, z, N)
    return z
