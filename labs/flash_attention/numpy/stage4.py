"""Lab flash_attention: softmax(Q K^T / sqrt(D)) V, one tile of scores at a time."""

from math import sqrt

import numpy as np

TILE = 16  # rows of Q, K and V that lie on the tray at once


def tile_of(matrix: np.ndarray, first: int) -> np.ndarray:
    """A tray of TILE rows, from row `first` on. Past the last row of the matrix: zeros."""
    tray = np.zeros((TILE, matrix.shape[1]), dtype=matrix.dtype)
    rows = matrix[first : first + TILE]
    tray[: len(rows)] = rows
    return tray


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool = False) -> np.ndarray:
    """The answer (B, H, N, D); every (b, h) is a problem of its own."""
    o = np.full(q.shape, np.nan, dtype=q.dtype)  # what nobody writes stays NaN
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            one_head(q[b, h], k[b, h], v[b, h], o[b, h], causal)
    return o


def one_head(Q: np.ndarray, K: np.ndarray, V: np.ndarray, O: np.ndarray, causal: bool) -> None:
    """Fills O. All four are [N, D]."""
    N, D = Q.shape
    for i in range(0, N, TILE):  # a tile of queries sits down: from here on, one block
        q = tile_of(Q, i) / sqrt(D)
        m = np.full(TILE, -np.inf)  # largest score so far, for each row
        l = np.zeros(TILE)  # sum of exponentials so far
        acc = np.zeros((TILE, D))  # the plate
        for j in range(0, N, TILE):  # keys and values are carried past
            K_tile, V_tile = tile_of(K, j), tile_of(V, j)
            s = q @ K_tile.T  # [TILE, TILE], all there ever is of the square
            s = np.where(j + np.arange(TILE) < N, s, -np.inf)  # a key that does not exist
            m_new = np.maximum(m, s.max(axis=1))
            repair = np.exp(m - m_new)  # the first time exp(-inf), which is 0
            p = np.exp(s - m_new[:, None])
            l = l * repair + p.sum(axis=1)
            acc = acc * repair[:, None] + p @ V_tile
            m = m_new
        O[i : i + TILE] = (acc / l[:, None])[: N - i]  # rows past the last one are not kept
