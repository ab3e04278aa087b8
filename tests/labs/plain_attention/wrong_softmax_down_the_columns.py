# refused for: wrong | N=3
from math import sqrt

import numpy as np


def shares(Q: np.ndarray, K: np.ndarray, causal: bool = False) -> np.ndarray:
    """P [N, N]: row m says what part of its answer token m takes from each token."""
    S = Q @ K.T / sqrt(Q.shape[1])  # [N, N], the square
    if causal:
        place = np.arange(len(S))
        S[place > place[:, None]] = -np.inf  # right of the diagonal; e to it is 0
    S = S - S.max(axis=0, keepdims=True)  # so that no exponential overflows
    P = np.exp(S)
    return P / P.sum(axis=0, keepdims=True)


def one_head(Q: np.ndarray, K: np.ndarray, V: np.ndarray, causal: bool = False) -> np.ndarray:
    """O [N, d]: the answer of one head. Q, K and V are [N, d]."""
    return shares(Q, K, causal) @ V  # [N, d]


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool = False) -> np.ndarray:
    """What the grader calls: (B, H, N, d), and every head is a problem of its own."""
    B, H = q.shape[:2]
    heads = [[one_head(q[b, h], k[b, h], v[b, h], causal) for h in range(H)] for b in range(B)]
    return np.array(heads, dtype=q.dtype)
