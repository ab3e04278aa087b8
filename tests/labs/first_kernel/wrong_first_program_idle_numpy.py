# refused for: not in blocks | the first of 6 calls of vector_add_program is not needed for any
import numpy as np

BLOCK = 1024  # elements of one program: the most that it may have before it at once


def vector_add_program(program, x, y, z, N):
    """What one program does."""
    if program > 0:
        for i in range(N):
            z[i] = x[i] + y[i]


def vector_add(x, y):
    N = len(x)
    z = np.full(N, np.nan, dtype=x.dtype)  # room; what nobody writes stays NaN
    programs = 1 + -(-N // BLOCK)
    for program in range(programs):
        vector_add_program(program, x, y, z, N)
    return z
