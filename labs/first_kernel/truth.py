"""The truth of this lab, and of its last task, in NumPy: what a door without torch is judged by."""

import numpy as np

from course_kernels.problem import HARD
from course_labs.numpy_reference import Truth


def make_inputs(w, generator):
    """Two vectors (N,) of normal random numbers."""
    return tuple(generator.standard_normal(w.N, dtype=w.dtype) for _ in range(2))


def reference(x, y):
    """The sum in float64: (N,)."""
    return x.astype(np.float64) + y


TRUTH = Truth(make_inputs, reference, lambda w: 2.0**-24, hard=lambda w: ({0: HARD, 1: HARD},))


def make_pairs(w, generator):
    """One vector (2*N,) of normal random numbers."""
    return (generator.standard_normal(2 * w.N, dtype=w.dtype),)


def sums_of_pairs(x):
    """The sums in float64: (N,)."""
    return x.astype(np.float64).reshape(-1, 2).sum(axis=1)


ALONE = Truth(make_pairs, sums_of_pairs, lambda w: 2.0**-24)
