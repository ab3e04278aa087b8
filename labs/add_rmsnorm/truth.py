"""The truth of this lab, and of its last task, in NumPy: a door without torch is judged by it."""

import numpy as np

from course_kernels.problem import INF, NAN
from course_labs.numpy_reference import Truth

EPSILON = 1e-5
SMALL = 2.0**-9  # of a usual row
ROUNDED = 2.0**-10  # of float16, up to three times; in the last task up to five


def make_inputs(w, generator):
    """x (M, N), g (N,) and r (M, N) as in the problem: one column of r is large, and the first row small."""

    def normal(*shape):
        return generator.standard_normal(shape, dtype="float32")

    size = np.ones((w.M, 1), dtype="float32")
    size[0] = SMALL
    x, g, r = size * normal(w.M, w.N), 1 + normal(w.N) / 8, 4 * size * normal(w.M, w.N)
    r[:, w.N // 3] *= 100
    return tuple(array.astype(w.dtype) for array in (x, g, r))


def reference(x, g, r):
    """y and s in float64, each (M, N)."""
    s = x.astype(np.float64) + r.astype(np.float64)
    return g.astype(np.float64) * s / np.sqrt(np.square(s).mean(axis=-1, keepdims=True) + EPSILON), s


def to_one(x, g, r):
    """q (M, N), a (M,) and s (M, N) in float64."""
    y, s = reference(x, g, r)
    a = np.abs(y).max(axis=-1)
    return y / a[:, None], a, s


def hard(w):
    """Values that are not numbers, and in a set of their own numbers whose squares do not fit into 16 bits."""
    return ({0: (0.0, -0.0, NAN, INF, -INF)}, {0: (30000.0, -30000.0)})


def hard_of_numbers(w):
    """Numbers only: a right program that takes the larger of two may lose a NaN."""
    return ({0: (0.0, -0.0)}, {0: (30000.0, -30000.0)})


TRUTH = Truth(make_inputs, reference, lambda w: ROUNDED, rows_apart=True, hard=hard)
ALONE = Truth(make_inputs, to_one, lambda w: 2 * ROUNDED, rows_apart=True, hard=hard_of_numbers)
