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


def make_rows(w, generator):
    """A (M, K), normal with variance 1."""
    return (generator.standard_normal((w.M, w.K), dtype=w.dtype),)


def products_of_rows(a):
    """The products of every row with itself and with the rows above it, in float64: (M, M)."""
    wide = a.astype(np.float64)
    return np.tril(wide @ wide.T)


ALONE = Truth(make_rows, products_of_rows, max_error, hard=lambda w: ({0: (0.0, -0.0, NAN, INF, -INF)},))
