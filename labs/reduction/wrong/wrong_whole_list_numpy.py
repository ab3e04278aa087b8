# refused for: holds too much | works on 1500 numbers in one step, and 1024 is the most
import numpy as np


def reduction(x: np.ndarray) -> np.ndarray:
    return np.array([x.sum()], dtype=x.dtype)
