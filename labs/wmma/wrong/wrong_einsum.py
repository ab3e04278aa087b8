# refused for: not yours | numpy.einsum
import numpy as np


def gemm(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("mk,kn->mn", a, b, dtype=np.float32)
