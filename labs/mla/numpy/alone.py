"""Lab mla: attention over one list of latents that all heads share."""

from math import sqrt

import numpy as np

TILE = 64  # tokens of the list that are looked at together


def one_sequence(q: np.ndarray, w_k: np.ndarray, w_v: np.ndarray, cache: np.ndarray) -> np.ndarray:
    """The answer [H, D] of one sequence: q is [H, D + R], w_k and w_v are [H, D, C], cache is [N, C + R]."""
    H, D, C = len(w_k), w_k.shape[1], w_k.shape[2]
    latent, position = cache[:, :C], cache[:, C:]  # [N, C] and [N, R], no copies
    absorbed = (q[:, None, :D] @ w_k)[:, 0]  # [H, C]: the query, as a latent sees it
    m = np.full((H, 1), -np.inf)  # largest score so far, for each head
    l = np.zeros((H, 1))  # sum of exponentials so far
    acc = np.zeros((H, C))
    for n in range(0, len(cache), TILE):
        tile, place = latent[n : n + TILE], position[n : n + TILE]
        s = (absorbed @ tile.T + q[:, D:] @ place.T) / sqrt(q.shape[1])  # [H, TILE]
        m_new = np.maximum(m, s.max(axis=1, keepdims=True))
        repair = np.exp(m - m_new)  # the first time exp(-inf), which is 0
        p = np.exp(s - m_new)
        l = l * repair + p.sum(axis=1, keepdims=True)
        acc = acc * repair + p @ tile
        m = m_new
    return (w_v @ (acc / l)[:, :, None])[:, :, 0]  # [H, D]


def latent_attention(q: np.ndarray, w_k: np.ndarray, w_v: np.ndarray, cache: np.ndarray) -> np.ndarray:
    """What the grader calls: q [B, H, D + R], cache [B, N, C + R], and one answer [H, D] after the other."""
    o = np.full((*q.shape[:2], w_v.shape[1]), np.nan, dtype=q.dtype)  # what nobody writes stays NaN
    for b in range(len(q)):
        o[b] = one_sequence(q[b], w_k, w_v, cache[b])
    return o


def scaled_latent_attention(q, w_k, w_v, cache, scale):
    """The answer [B, H, D]; the latent of token n of sequence b is scale[b, n] times what the list has."""
    o = np.full((*q.shape[:2], w_v.shape[1]), np.nan, dtype=q.dtype)
    for b in range(len(q)):
        o[b] = one_scaled(q[b], w_k, w_v, cache[b], scale[b])
    return o


def one_scaled(q, w_k, w_v, cache, scale):
    """The answer [H, D] of one sequence; scale is [N]."""
    H, D, C = len(w_k), w_k.shape[1], w_k.shape[2]
    asked = (q[:, None, :D] @ w_k)[:, 0]
    largest, total, mix = np.full((H, 1), -np.inf), np.zeros((H, 1)), np.zeros((H, C))
    for n in range(0, len(cache), TILE):
        tile, place, times = cache[n : n + TILE, :C], cache[n : n + TILE, C:], scale[n : n + TILE]
        scores = (asked @ tile.T * times + q[:, D:] @ place.T) / sqrt(q.shape[1])
        now = np.maximum(largest, scores.max(axis=1, keepdims=True))
        shares = np.exp(scores - now)
        total = total * np.exp(largest - now) + shares.sum(axis=1, keepdims=True)
        mix = mix * np.exp(largest - now) + shares * times @ tile  # the scale of a value, not of a share
        largest = now
    return (w_v @ (mix / total)[:, :, None])[:, :, 0]
