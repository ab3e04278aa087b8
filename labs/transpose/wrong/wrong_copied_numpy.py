# refused for: holds too much | works on 8192 numbers
import numpy as np


def transpose(x: np.ndarray) -> np.ndarray:
    return x.T.copy()
