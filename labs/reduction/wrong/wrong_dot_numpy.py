# refused for: not yours | numpy.dot
import numpy as np


def reduction(x: np.ndarray) -> np.ndarray:
    return np.array([np.dot(x, np.ones_like(x))])
