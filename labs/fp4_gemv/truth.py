"""The truth of this lab, and of its last task, in NumPy: what a door without torch is judged by.

Codes of scales come as bytes, for NumPy has no type of eight bits with a point.
"""

from math import sqrt

import numpy as np

from course_kernels.nvfp4.blocks import NVFP4, unpack
from course_kernels.nvfp4.formats import E2M1, E4M3, decode
from course_kernels.problem import INF, NAN
from course_labs.numpy_reference import Truth

LARGEST_SCALE = 0x40  # the code of 2.0, as the problem says it


def codes(generator, below, *shape):
    """Codes of every kind, in bytes."""
    return generator.integers(below, size=shape, dtype=np.uint8)


def values_of(packed, scales):
    """What packed codes stand for, times their scales, in float64: (…, K)."""
    return decode(unpack(packed), E2M1) * decode(scales, E4M3).repeat(NVFP4.block, axis=-1)


def make_inputs(w, generator):
    """Any codes: a (L, M, K/2) and b (L, K/2), scales from 0 to 2 (L, M, K/16) and (L, K/16)."""
    numbers, scales = w.K // 2, w.K // NVFP4.block
    shapes = (((w.L, w.M, numbers), (w.L, w.M, scales)), ((w.L, numbers), (w.L, scales)))
    return tuple(
        drawn
        for packed, of_each in shapes
        for drawn in (codes(generator, 256, *packed), codes(generator, LARGEST_SCALE + 1, *of_each))
    )


def reference(a, scales_a, b, scales_b):
    """The product in float64: (L, M)."""
    return (values_of(a, scales_a) @ values_of(b, scales_b)[..., None])[..., 0]


TRUTH = Truth(
    make_inputs,
    reference,
    lambda w: 2.0**-10,
    hard=lambda w: ({1: (0.0, NAN)}, {3: (0.0, NAN)}),
)


def make_layer(w, generator):
    """Any codes: packed (M, K/2), scales (M, K/16), a second scale (1,) and normal numbers (K,)."""
    packed, scales = codes(generator, 256, w.M, w.K // 2), codes(generator, 127, w.M, w.K // NVFP4.block)
    second = np.float32(6 * 448) / (0.5 + generator.random(1, dtype=w.dtype))
    return packed, scales, second, generator.standard_normal(w.K, dtype=w.dtype)


def layer(packed, scales, second, x):
    """The product in float64: (M,)."""
    return values_of(packed, scales) @ x.astype(np.float64) / second.astype(np.float64)


ALONE = Truth(
    make_layer,
    layer,
    lambda w: 8 * 2.0**-24 * sqrt(w.K),
    hard=lambda w: ({1: (0.0, NAN)}, {3: (0.0, NAN)}, {3: (INF,)}),
)
