"""The truth of this lab, and of its last task, in NumPy: what a door without torch is judged by."""

from math import sqrt

import numpy as np

from course_kernels.problem import INF, LARGE, NAN
from course_labs.numpy_reference import Truth


def make_inputs(w, generator):
    """A (M, K) and B (K, N), normal with variance 1."""
    return tuple(generator.standard_normal(shape, dtype=w.dtype) for shape in ((w.M, w.K), (w.K, w.N)))


def reference(a, b):
    """The product in float64: (M, N)."""
    return a.astype(np.float64) @ b.astype(np.float64)


def max_error(w):
    """As the problem says it."""
    return 8 * 2.0**-24 * sqrt(w.K)


def hard(w):
    """Of A they fill a row, of B a column."""
    return ({0: (0.0, -0.0, NAN, INF, -INF, LARGE), 1: (NAN,)},)


TRUTH = Truth(make_inputs, reference, max_error, hard=hard)


def make_complex(w, generator):
    """A (M, K, 2) and B (K, N, 2), normal with variance 1."""
    return tuple(generator.standard_normal(shape, dtype=w.dtype) for shape in ((w.M, w.K, 2), (w.K, w.N, 2)))


def complex_product(a, b):
    """The product of complex numbers in float64: (M, N, 2)."""
    (x, y), (u, v) = np.moveaxis(a.astype(np.float64), -1, 0), np.moveaxis(b.astype(np.float64), -1, 0)
    return np.stack((x @ u - y @ v, x @ v + y @ u), axis=-1)


ALONE = Truth(make_complex, complex_product, lambda w: 8 * 2.0**-24 * sqrt(2 * w.K), hard=hard)
