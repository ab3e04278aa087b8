# refused for: holds too much | works on 8192 numbers
import numpy as np


def transpose(x: np.ndarray) -> np.ndarray:
    y = np.empty(x.shape[::-1], dtype=x.dtype)
    y[:] = x.T
    return y
