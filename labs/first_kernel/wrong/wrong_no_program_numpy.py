# refused for: not in blocks | your file defines no vector_add_program
import numpy as np


def vector_add(x, y):
    N = len(x)
    z = np.full(N, np.nan, dtype=x.dtype)
    for i in range(N):
        z[i] = x[i] + y[i]
    return z
