"""The truth of this lab, and of its last task, in NumPy: what a door without torch is judged by."""

from math import sqrt

import numpy as np

from course_labs.numpy_reference import Truth

MAX_ERROR = {"float16": 2.0**-7, "float32": 2.0**-15}


def make_inputs(w, generator):
    """Q, K and V (B, H, N, D), normal with variance 1."""
    shape = (w.B, w.H, w.N, w.D)
    return tuple(generator.standard_normal(shape, dtype="float32").astype(w.dtype) for _ in range(3))


def options(w):
    """The keyword argument `causal`."""
    return {"causal": bool(w.dims.get("causal", False))}


def weighted(scores, v):
    """softmax(scores) V, both in float64."""
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights @ v.astype(np.float64) / weights.sum(axis=-1, keepdims=True)


def scores_of(q, k):
    """Q K^T / sqrt(D) in float64: (B, H, N, N)."""
    return q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) / sqrt(q.shape[-1])


def reference(q, k, v, *, causal=False):
    """The answer in float64: (B, H, N, D)."""
    place = np.arange(q.shape[2])
    hidden = causal & (place > place[:, None])
    return weighted(np.where(hidden, -np.inf, scores_of(q, k)), v)


TRUTH = Truth(
    make_inputs, reference, lambda w: MAX_ERROR[w.dtype], options, rows_apart=True, hard=lambda w: ()
)


def make_with_slopes(w, generator):
    """Q, K and V as above, and a slope (H,) between 0.05 and 0.25 for every head."""
    return *make_inputs(w, generator), (0.05 + generator.random(w.H) / 5).astype(w.dtype)


def by_distance(q, k, v, slope):
    """The answer in float64: (B, H, N, D)."""
    place = np.arange(q.shape[2])
    away = np.abs(place[:, None] - place)
    return weighted(scores_of(q, k) - slope.astype(np.float64)[:, None, None] * away, v)


ALONE = Truth(make_with_slopes, by_distance, lambda w: 2.0**-15, rows_apart=True, hard=lambda w: ())
