"""The truth of this lab, and of its last task, in NumPy: what a door without torch is judged by."""

import numpy as np

from course_labs.numpy_reference import Truth


def make_inputs(w, generator):
    """One matrix (M, N) of normal random numbers."""
    return (generator.standard_normal((w.M, w.N), dtype=w.dtype),)


def reference(x):
    """The transpose in float64: (N, M)."""
    return np.ascontiguousarray(x.astype(np.float64).T)


def turned(x):
    """The matrix turned by a quarter, in float64: (N, M)."""
    return np.ascontiguousarray(x.astype(np.float64)[::-1].T)


TRUTH = Truth(make_inputs, reference, lambda w: 0.0)
ALONE = Truth(make_inputs, turned, lambda w: 0.0)
