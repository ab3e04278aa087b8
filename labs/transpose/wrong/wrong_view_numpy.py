# refused for: shares memory
import numpy as np


def transpose(x: np.ndarray) -> np.ndarray:
    return x.T
