"""The truth of this lab, and of its last task, in NumPy: what a door without torch is judged by."""

from math import sqrt

import numpy as np

from course_labs.numpy_reference import Truth


def make_inputs(w, generator):
    """Queries (B, H, D + R), weights (H, D, C) twice, list (B, N, C + R): normal; keys and values have variance 1."""
    shapes = ((w.B, w.H, w.D + w.R), (w.H, w.D, w.C), (w.H, w.D, w.C), (w.B, w.N, w.C + w.R))
    q, w_k, w_v, cache = (generator.standard_normal(shape, dtype="float32") for shape in shapes)
    return q, w_k / np.float32(sqrt(w.C)), w_v / np.float32(sqrt(w.C)), cache


def reference(q, w_k, w_v, cache):
    """The answer in float64: (B, H, D); keys and values are made."""
    q, w_k, w_v, cache = (x.astype(np.float64) for x in (q, w_k, w_v, cache))
    _, D, C = w_k.shape
    out = np.empty((*q.shape[:2], D))
    for b, h in np.ndindex(out.shape[:2]):  # one head's keys and values at a time
        keys, values = cache[b, :, :C] @ w_k[h].T, cache[b, :, :C] @ w_v[h].T
        scores = (keys @ q[b, h, :D] + cache[b, :, C:] @ q[b, h, D:]) / sqrt(q.shape[2])
        weights = np.exp(scores - scores.max())
        out[b, h] = weights @ values / weights.sum()
    return out


TRUTH = Truth(make_inputs, reference, lambda w: 2.0**-15, hard=lambda w: ())


def make_scaled(w, generator):
    """The same, and the scale of every latent (B, N): each is divided by it, and its largest is then 1."""
    q, w_k, w_v, cache = make_inputs(w, generator)
    latent = cache[:, :, : w.C]
    scale = abs(latent).max(axis=2)
    latent /= scale[:, :, None]
    return q, w_k, w_v, cache, scale * generator.uniform(0.5, 2, scale.shape).astype("float32")


def of_scaled(q, w_k, w_v, cache, scale):
    """The answer in float64: (B, H, D)."""
    cache = cache.astype(np.float64)
    cache[:, :, : w_k.shape[2]] *= scale[:, :, None]
    return reference(q, w_k, w_v, cache)


ALONE = Truth(make_scaled, of_scaled, lambda w: 2.0**-15, hard=lambda w: ())
