# refused for: holds too much | works on 3000 numbers in one step, and 1024 is the most
import numpy as np

EPSILON = 1e-5


def add_rmsnorm(x: np.ndarray, g: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    s = x.astype(np.float32) + r
    mean = (s * s).sum(axis=1, keepdims=True) / x.shape[1]
    return (s / np.sqrt(mean + EPSILON) * g).astype(x.dtype), s.astype(x.dtype)
