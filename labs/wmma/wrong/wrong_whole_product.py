# refused for: not yours | __matmul__
import numpy as np


def gemm(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b
