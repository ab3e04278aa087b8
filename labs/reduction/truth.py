"""The truth of this lab, and of its last task, in NumPy: what a door without torch is judged by."""

from math import sqrt

import numpy as np

from course_kernels.problem import INF, NAN
from course_labs.numpy_reference import Truth


def make_inputs(w, generator):
    """One vector (N,) of random numbers, every value between 0 and 1 equally likely."""
    return (generator.random(w.N, dtype=w.dtype),)


def hard(w):
    """One NaN is the whole answer, and so is one infinity: each needs inputs of its own."""
    return ({0: (0.0, -0.0, INF)}, {0: (NAN,)})


def reference(x):
    """The sum in float64: (1,)."""
    return x.astype(np.float64).sum().reshape(1)


def steps_squared(x):
    """The sum of the squares of all steps, in float64: (1,)."""
    return np.square(np.diff(x.astype(np.float64))).sum().reshape(1)


TRUTH = Truth(make_inputs, reference, lambda w: sqrt(w.N) * 2.0**-24, hard=hard)
ALONE = Truth(make_inputs, steps_squared, lambda w: (2 + sqrt(w.N)) * 2.0**-24, hard=hard)
