"""Attention for a TPU: the online softmax of our kernels, in plain JAX and in Pallas.

Contract  O = softmax(Q K^T / sqrt(D)) V, each (heads, N, D), bfloat16, scores and sums in float32; whole tiles
Idea      rows of Q keep a running maximum m, a running sum l and a running answer; tiles of K and V pass by
Against   course_kernels/attention/k03_flash.py: the same loop, with a program for every block of rows
Limits    no mask, so not causal, and no short last tile
Source    Dao 2023, arXiv:2307.08691, algorithm 1
"""

from __future__ import annotations

from functools import partial
from math import e, log2, sqrt
from typing import Any

# mypy: allow-untyped-defs
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

BLOCK_M = BLOCK_N = 256  # query rows that stay, keys that pass


def in_jax(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Return attention, (heads, N, D) of the same type: all rows of all heads at once, keys tile by tile."""
    heads, N, D = q.shape
    scale = log2(e) / sqrt(D)

    def step(tile, state):
        m, l, acc = state
        keys = jax.lax.dynamic_slice_in_dim(k, tile * BLOCK_N, BLOCK_N, axis=1)  # [heads, BLOCK_N, D]
        values = jax.lax.dynamic_slice_in_dim(v, tile * BLOCK_N, BLOCK_N, axis=1)
        s = jnp.einsum("hmd,hnd->hmn", q, keys, preferred_element_type=jnp.float32) * scale
        m_new = jnp.maximum(m, jnp.max(s, axis=2, keepdims=True))
        p, repair = jnp.exp2(s - m_new), jnp.exp2(m - m_new)
        new = jnp.einsum("hmn,hnd->hmd", p.astype(v.dtype), values, preferred_element_type=jnp.float32)
        return m_new, l * repair + jnp.sum(p, axis=2, keepdims=True), acc * repair + new

    begin = (jnp.full((heads, N, 1), -jnp.inf), jnp.zeros((heads, N, 1)), jnp.zeros((heads, N, D)))
    _, l, acc = jax.lax.fori_loop(0, N // BLOCK_N, step, begin)
    return (acc / l).astype(q.dtype)


# region kernel
def attention_kernel(Q, K, V, O, m, l, acc, *, scale):
    """One tile of keys for a block of rows: Q, O [1, BLOCK_M, D], K, V [1, BLOCK_N, D], m, l [BLOCK_M, 1]."""
    step = pl.program_id(2)

    @pl.when(step == 0)
    def begin():
        m[...] = jnp.full_like(m, -jnp.inf)
        l[...] = jnp.zeros_like(l)
        acc[...] = jnp.zeros_like(acc)

    s = jax.lax.dot_general(Q[0], K[0], (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32) * scale
    m_new = jnp.maximum(m[...], jnp.max(s, axis=1, keepdims=True))  # [BLOCK_M, 1]
    p, repair = jnp.exp2(s - m_new), jnp.exp2(m[...] - m_new)
    l[...] = l[...] * repair + jnp.sum(p, axis=1, keepdims=True)
    acc[...] = acc[...] * repair + jnp.dot(p.astype(V.dtype), V[0], preferred_element_type=jnp.float32)
    m[...] = m_new

    @pl.when(step == pl.num_programs(2) - 1)
    def end():
        O[0] = (acc[...] / l[...]).astype(O.dtype)


# endregion


def in_pallas(q: jax.Array, k: jax.Array, v: jax.Array, *, interpret: Any = False) -> jax.Array:
    """Return attention, a block of rows after the other: (heads, N, D) of the same type.

    Args:
        q, k, v: (heads, N, D).
        interpret: False, or how to run it where there is no TPU, `pltpu.InterpretParams`.
    Raises:
        ValueError: N is no multiple of the tile.
    """
    heads, N, D = q.shape
    if N % BLOCK_N:
        raise ValueError(f"N: expected a multiple of {BLOCK_N}, got {N}")
    rows = pl.BlockSpec((1, BLOCK_M, D), lambda head, row, key: (head, row, 0))
    keys = pl.BlockSpec((1, BLOCK_N, D), lambda head, row, key: (head, key, 0))
    return pl.pallas_call(
        partial(attention_kernel, scale=log2(e) / sqrt(D)),
        grid=(heads, N // BLOCK_M, N // BLOCK_N),  # the last one runs first: along the keys
        in_specs=[rows, keys, keys],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct(q.shape, q.dtype),
        scratch_shapes=[
            *(pltpu.VMEM((BLOCK_M, 1), jnp.float32) for _ in range(2)),
            pltpu.VMEM((BLOCK_M, D), jnp.float32),
        ],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
        interpret=interpret,
    )(q, k, v)
