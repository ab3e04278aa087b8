"""Matrix absorption: why 128 heads can read one row; what makes their keys and values moves to query and answer.

A token is kept as c, its latent numbers, and r, its rotated ones, which all heads share. Head h makes of c its own key
and its own value, each by a matrix of its own:

    key[h] = W_uk[h] c          value[h] = W_uv[h] c          out[h] = sum over tokens of p * value[h]

A product of a key is a product with c, and a sum of values is one matrix times a sum of c:

    q[h] . (W_uk[h] c)  =  (W_uk[h]^T q[h]) . c               sum of p * (W_uv[h] c)  =  W_uv[h] (sum of p * c)

So the matrices are applied once for a query, instead of once for a token: absorbed. The rotation stands between them:
r is turned by the token's place, which no matrix of the head commutes with, and is kept beside c.

Source  DeepSeek-AI 2024, arXiv:2405.04434, section 2.1
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


class Weights(NamedTuple):
    """H heads, of D numbers in a key without its rotated ones, V in a value; L latent numbers of a token.

    Attributes:
        W_uk: (H, D, L), of a key.
        W_uv: (H, V, L), of a value.
    """

    W_uk: Numbers
    W_uv: Numbers


def _softmax(s: Numbers) -> Numbers:
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def naive(q: Numbers, q_rope: Numbers, c: Numbers, r: Numbers, weights: Weights) -> Numbers:
    """Attention of one query for each head, over keys and values made for each token and head.

    Args:
        q: (H, D). q_rope: (H, R).
        c: (N, L), the latent numbers of N tokens. r: (N, R), the rotated ones.
        weights: see `Weights`.
    Returns:
        (H, V).
    """
    keys = np.einsum("hdl,nl->hnd", weights.W_uk, c)
    values = np.einsum("hvl,nl->hnv", weights.W_uv, c)
    s = np.einsum("hd,hnd->hn", q, keys) + q_rope @ r.T
    p = _softmax(s / np.sqrt(q.shape[1] + q_rope.shape[1]))
    return np.einsum("hn,hnv->hv", p, values)


def absorbed(q: Numbers, q_rope: Numbers, c: Numbers, r: Numbers, weights: Weights) -> Numbers:
    """Return the same, without a key or a value: two products with c, and both matrices outside of the sum over tokens.

    Args:
        q, q_rope, c, r, weights: as for `naive`.
    Returns:
        (H, V).
    """
    q_latent = np.einsum("hdl,hd->hl", weights.W_uk, q)
    s = q_latent @ c.T + q_rope @ r.T
    p = _softmax(s / np.sqrt(q.shape[1] + q_rope.shape[1]))
    return np.einsum("hvl,hl->hv", weights.W_uv, p @ c)


class PerToken(NamedTuple):
    """Costs of one token that is looked at, for all heads together.

    Attributes:
        n_bytes: read from the cache, in 16 bits.
        flops: operations, of both products.
    """

    n_bytes: int
    flops: int

    @property
    def intensity(self) -> float:
        """Operations for each byte."""
        return self.flops / self.n_bytes


def kept_whole(H: int, D: int, V: int, R: int) -> PerToken:
    """Return the costs where the cache keeps every head's key and value, as without MLA: H * (D + R + V) numbers."""
    return PerToken(2 * H * (D + R + V), 2 * H * (D + R + V))


def made_again(H: int, D: int, V: int, R: int, L: int) -> PerToken:
    """Return the costs of `naive`: the cache keeps c and r, and keys and values are made of them for every query."""
    return PerToken(2 * (L + R), 2 * H * (D + V) * L + 2 * H * (D + R + V))


def without_making(H: int, R: int, L: int) -> PerToken:
    """Return the costs of `absorbed`: keys of L + R numbers and values of L, the same for all heads."""
    return PerToken(2 * (L + R), 2 * H * (L + R + L))
