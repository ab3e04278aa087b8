# refused for: holds too much | works on 1500 numbers
import numpy as np


def reduction(x: np.ndarray) -> np.ndarray:
    return np.array([sum(x)], dtype=x.dtype)
