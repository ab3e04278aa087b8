# refused for: not yours | numpy.matmul
import numpy as np


def sgemm(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b
