# refused for: holds too much | works on
import numpy as np


def vector_add(x, y):
    return np.array([a + b for a, b in zip(x, y, strict=True)], dtype=x.dtype)
