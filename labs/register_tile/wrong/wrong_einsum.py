# refused for: not yours | numpy.einsum
import numpy as np


def sgemm(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("mk,kn->mn", a, b)
