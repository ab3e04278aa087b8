# refused for: holds too much | 130 numbers
from math import sqrt

import numpy as np


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool = False) -> np.ndarray:
    B, H, N, D = q.shape
    o = np.empty_like(q)
    for b, h, i in np.ndindex(B, H, N):
        seen = i + 1 if causal else N
        s = k[b, h, :seen] @ q[b, h, i] / sqrt(D)
        p = np.exp(s - s.max())
        o[b, h, i] = p @ v[b, h, :seen] / p.sum()
    return o
