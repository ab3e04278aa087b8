# refused for: holds too much | 33 × 31, and 32 is the most
import numpy as np


def sgemm(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    c = np.zeros((a.shape[0], b.shape[1]), dtype=a.dtype)
    for k in range(a.shape[1]):
        c += a[:, k, None] * b[None, k, :]
    return c
