"""Matrix multiply for a TPU: once for XLA to cut, once cut by hand as our own kernels cut it.

Contract  C (M, N) = A (M, K) @ B (K, N), bfloat16, sums in float32, rounded once; M, N, K multiples of the tile
Idea      Pallas: a tile of C stays in the chip's own memory (VMEM) while the tiles of A and B that it needs pass by.
          The grid says which, and the compiler lets copies run one step ahead. There are no threads: a step has the
          core to itself
Against   course_kernels/gemm/k05_triton.py: the same loop, where it is the programs that run side by side
Limits    no masks: every length is a multiple of the tile
Source    JAX documentation, Pallas: TPU
"""

from __future__ import annotations

from typing import Any

# mypy: allow-untyped-defs
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

BLOCK_M = BLOCK_N = BLOCK_K = 256  # whole tiles of any MXU: 128 x 128 up to v5p, 256 x 256 from v6e on


def in_jax(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return a @ b, (M, N) of the same type, and leave the cutting to XLA."""
    return jnp.dot(a, b, preferred_element_type=jnp.float32).astype(a.dtype)


# region kernel
def multiply_kernel(A, B, C, sums):
    """One step of a tile of C: A [BLOCK_M, BLOCK_K], B [BLOCK_K, BLOCK_N], C and sums [BLOCK_M, BLOCK_N]."""

    @pl.when(pl.program_id(2) == 0)
    def begin():
        sums[...] = jnp.zeros_like(sums)

    sums[...] += jnp.dot(A[...], B[...], preferred_element_type=jnp.float32)

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def end():
        C[...] = sums[...].astype(C.dtype)


# endregion


def in_pallas(a: jax.Array, b: jax.Array, *, interpret: Any = False) -> jax.Array:
    """Return a @ b, tile by tile: (M, N) of the same type.

    Args:
        a: (M, K). b: (K, N).
        interpret: False, or how to run it where there is no TPU, `pltpu.InterpretParams`.
    Raises:
        ValueError: a length is no multiple of its tile.
    """
    (M, K), N = a.shape, b.shape[1]
    for name, length, block in (("M", M, BLOCK_M), ("N", N, BLOCK_N), ("K", K, BLOCK_K)):
        if length % block:
            raise ValueError(f"{name}: expected a multiple of {block}, got {length}")
    return pl.pallas_call(
        multiply_kernel,
        grid=(M // BLOCK_M, N // BLOCK_N, K // BLOCK_K),  # the last one runs first: along K
        in_specs=[
            pl.BlockSpec((BLOCK_M, BLOCK_K), lambda m, n, k: (m, k)),
            pl.BlockSpec((BLOCK_K, BLOCK_N), lambda m, n, k: (k, n)),
        ],
        out_specs=pl.BlockSpec((BLOCK_M, BLOCK_N), lambda m, n, k: (m, n)),
        out_shape=jax.ShapeDtypeStruct((M, N), a.dtype),
        scratch_shapes=[pltpu.VMEM((BLOCK_M, BLOCK_N), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
        interpret=interpret,
    )(a, b)
