"""Lab plain_attention: softmax(Q K^T / sqrt(d)) V, with the whole square of scores in memory."""

from math import sqrt

import numpy as np


def shares(Q: np.ndarray, K: np.ndarray, causal: bool = False) -> np.ndarray:
    """P [N, N]: row m says what part of its answer token m takes from each token."""
    # your lines go here


def one_head(Q: np.ndarray, K: np.ndarray, V: np.ndarray, causal: bool = False) -> np.ndarray:
    """O [N, d]: the answer of one head. Q, K and V are [N, d]."""
    return np.full(V.shape, np.nan)  # your line goes here, in place of this one


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool = False) -> np.ndarray:
    """What the grader calls: (B, H, N, d), and every head is a problem of its own."""
    B, H = q.shape[:2]
    heads = [[one_head(q[b, h], k[b, h], v[b, h], causal) for h in range(H)] for b in range(B)]
    return np.array(heads, dtype=q.dtype)


if __name__ == "__main__":  # your own tests:  python my_labs/plain_attention.py
    rng = np.random.default_rng(0)
    for N in (10, 1000):
        Q, K, V = rng.standard_normal((3, N, 8))
        # a test goes here
