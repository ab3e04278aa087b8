# refused for: not yours | numpy.dot
import numpy as np


def sgemm(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.dot(a, b)
