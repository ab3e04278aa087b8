# refused for: not yours | numpy.ndarray.copy
import numpy as np


def transpose(x: np.ndarray) -> np.ndarray:
    return x.T.copy()
