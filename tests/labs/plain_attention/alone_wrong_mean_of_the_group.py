# refused for: wrong shape | (1, 3, 8)
from math import sqrt

import numpy as np


def shares(Q: np.ndarray, K: np.ndarray, causal: bool = False) -> np.ndarray:
    """P [N, N]: row m says what part of its answer token m takes from each token."""
    S = Q @ K.T / sqrt(Q.shape[1])  # [N, N], the square
    if causal:
        place = np.arange(len(S))
        S[place > place[:, None]] = -np.inf  # right of the diagonal; e to it is 0
    S = S - S.max(axis=1, keepdims=True)  # so that no exponential overflows
    P = np.exp(S)
    return P / P.sum(axis=1, keepdims=True)


def one_head(Q: np.ndarray, K: np.ndarray, V: np.ndarray, causal: bool = False) -> np.ndarray:
    """O [N, d]: the answer of one head. Q, K and V are [N, d]."""
    return shares(Q, K, causal) @ V  # [N, d]


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool = False) -> np.ndarray:
    """What the grader calls: (B, H, N, d), and every head is a problem of its own."""
    B, H = q.shape[:2]
    heads = [[one_head(q[b, h], k[b, h], v[b, h], causal) for h in range(H)] for b in range(B)]
    return np.array(heads, dtype=q.dtype)


def grouped_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool = False) -> np.ndarray:
    """The answer (H, N, d) of H heads of queries, which share KV heads of keys and values, (KV, N, d)."""
    group = len(q) // len(k)  # heads of queries for one head of keys
    means = [sum(q[g * group : (g + 1) * group]) / group for g in range(len(k))]
    answers = [one_head(mean, k[g], v[g], causal) for g, mean in enumerate(means)]
    return np.array(answers, dtype=q.dtype)
