"""The truth of this lab, and of its last task, in NumPy: what a door without torch is judged by."""

from math import sqrt

import numpy as np

from course_kernels.problem import INF, LARGE, NAN
from course_labs.numpy_reference import Truth

MAX_ERROR = {"float16": 2.0**-9, "float32": 2.0**-7}


def make_inputs(w, generator):
    """A (M, K) and B (K, N), normal with variance 1."""
    shapes = ((w.M, w.K), (w.K, w.N))
    return tuple(generator.standard_normal(shape, dtype="float32").astype(w.dtype) for shape in shapes)


def reference(a, b):
    """The product in float64: (M, N)."""
    return a.astype(np.float64) @ b.astype(np.float64)


def hard(w):
    """A hard value of A fills a row, one of B a column."""
    return ({0: (0.0, -0.0, NAN, INF, -INF, *([] if w.dtype == "float16" else [LARGE])), 1: (NAN,)},)


TRUTH = Truth(make_inputs, reference, lambda w: MAX_ERROR[w.dtype], hard=hard)


def make_biased(w, generator):
    """A (M, K), normal with mean 1 and variance 1/16; B (K, N), normal; the bias (N,), minus its columns' sums."""
    a = (generator.standard_normal((w.M, w.K), dtype="float32") / 4 + 1).astype(w.dtype)
    b = generator.standard_normal((w.K, w.N), dtype="float32").astype(w.dtype)
    return a, b, (-b.astype(np.float64).sum(axis=0)).astype(w.dtype)


def with_bias(a, b, bias):
    """The product with the bias, in float64: (M, N)."""
    return reference(a, b) + bias.astype(np.float64)


ALONE = Truth(
    make_biased,
    with_bias,
    lambda w: 2.0**-11 + 64 * 2.0**-24 * sqrt(w.K),
    hard=lambda w: ({0: (0.0, -0.0, NAN, INF, -INF), 1: (NAN,), 2: (INF,)},),
)
