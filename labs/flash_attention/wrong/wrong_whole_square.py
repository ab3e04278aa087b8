# refused for: holds too much | 130 × 130
import numpy as np


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool = False) -> np.ndarray:
    s = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[3])
    if causal:
        row = np.arange(q.shape[2])
        s = np.where(row > row[:, None], -np.inf, s)
    p = np.exp(s - s.max(axis=3)[..., None])
    return (p @ v / p.sum(axis=3)[..., None]).astype(q.dtype)
