# refused for: holds too much | works on 5000 numbers
import numpy as np


def vector_add(x, y):
    z = np.zeros(len(x), dtype=x.dtype)
    z[:] = x
    z += y
    return z
