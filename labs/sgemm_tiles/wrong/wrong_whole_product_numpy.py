# refused for: not yours | line 6 calls NumPy's own
import numpy as np


def sgemm(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b
