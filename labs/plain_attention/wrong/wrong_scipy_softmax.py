# refused for: not yours | imports scipy
from math import sqrt

import numpy as np
from scipy.special import softmax


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool = False) -> np.ndarray:
    return softmax(q @ k.swapaxes(2, 3) / sqrt(q.shape[3]), axis=3) @ v
