# refused for: not yours | imports scipy
from math import sqrt

import numpy as np
from scipy.special import softmax


def latent_attention(q: np.ndarray, w_k: np.ndarray, w_v: np.ndarray, cache: np.ndarray) -> np.ndarray:
    D, C = w_k.shape[1:]
    asked = np.einsum("bhd,hdc->bhc", q[:, :, :D], w_k)
    asked = np.concatenate([asked, q[:, :, D:]], axis=2)
    p = softmax(asked @ cache.swapaxes(1, 2) / sqrt(q.shape[2]), axis=2)
    return np.einsum("bhc,hdc->bhd", p @ cache[:, :, :C], w_v)
