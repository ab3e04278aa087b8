# refused for: not yours | numpy.add.reduce
import numpy as np


def reduction(x: np.ndarray) -> np.ndarray:
    return np.array([np.add.reduce(x)], dtype=x.dtype)
