"""Our multiply and our attention in MLX, tile by tile, as our own kernels cut them.

Contract  C (M, N) = A (M, K) @ B (K, N); O = softmax(Q K^T / sqrt(D)) V, each (B, H, N, D); sums in float32
Idea      plain operations of MLX on slices: tiles along K, and an online softmax over tiles of keys
Against   course_chips/tpu_attention.py, in_jax: the same loop, in another library
Limits    lengths are multiples of the tile; no mask
Source    Dao 2023, arXiv:2307.08691, algorithm 1
"""

from __future__ import annotations

from math import sqrt

# mypy: allow-untyped-defs
import mlx.core as mx

BLOCK = 128  # along K, and of keys


def tile(x, step: int, axis: int):
    """Return the tile of an array that a step needs, along an axis."""
    return mx.take(x, mx.arange(step * BLOCK, (step + 1) * BLOCK), axis=axis)


# region kernels
def multiply(a, b):
    """Return a @ b, (M, N), of the same type: a tile of K after the other."""
    sums = mx.zeros((a.shape[0], b.shape[1]), mx.float32)
    for step in range(a.shape[1] // BLOCK):
        rows, columns = tile(a, step, 1), tile(b, step, 0)
        sums = sums + rows.astype(mx.float32) @ columns.astype(mx.float32)
    return sums.astype(a.dtype)


def attention(q, k, v):
    """Return attention, (B, H, N, D), of the same type: a tile of keys after the other."""
    N, D = q.shape[-2:]
    q = q.astype(mx.float32) / sqrt(D)
    m = mx.full((*q.shape[:-1], 1), -float("inf"))
    l, acc = mx.zeros_like(m), mx.zeros_like(q)
    for step in range(N // BLOCK):
        s = q @ tile(k, step, 2).astype(mx.float32).swapaxes(-1, -2)
        m_new = mx.maximum(m, s.max(axis=-1, keepdims=True))
        p, repair = mx.exp(s - m_new), mx.exp(m - m_new)
        l = l * repair + p.sum(axis=-1, keepdims=True)
        acc = acc * repair + p @ tile(v, step, 2).astype(mx.float32)
        m = m_new
    return (acc / l).astype(v.dtype)


# endregion
