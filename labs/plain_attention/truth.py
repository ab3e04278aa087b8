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


def reference(q, k, v, *, causal=False):
    """The answer in float64: (..., N, D); keys and values fit the queries."""
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) / sqrt(q.shape[-1])
    place = np.arange(q.shape[-2])
    scores = np.where(causal & (place > place[:, None]), -np.inf, scores)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights @ v.astype(np.float64) / weights.sum(axis=-1, keepdims=True)


TRUTH = Truth(
    make_inputs, reference, lambda w: MAX_ERROR[w.dtype], options, rows_apart=True, hard=lambda w: ()
)


def make_groups(w, generator):
    """Queries (H, N, D), keys and values (KV, N, D), normal with variance 1."""
    heads = (w.H, w.KV, w.KV)
    return tuple(generator.standard_normal((n, w.N, w.D), dtype="float32").astype(w.dtype) for n in heads)


def of_groups(q, k, v, *, causal=False):
    """The answer in float64: (H, N, D)."""
    KV, N, D = k.shape
    groups = reference(q.reshape(KV, -1, N, D), k[:, None], v[:, None], causal=causal)
    return groups.reshape(q.shape)


ALONE = Truth(make_groups, of_groups, lambda w: 2.0**-15, options, rows_apart=True, hard=lambda w: ())
