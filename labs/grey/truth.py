"""The truth of this lab, and of its last task, in NumPy: what a door without torch is judged by."""

import numpy as np

from course_labs.numpy_reference import Truth

WEIGHTS = (0.299, 0.587, 0.114)


def make_inputs(w, generator):
    """One picture (H, W, 3), every colour between 0 and 1."""
    return (generator.random((w.H, w.W, 3), dtype=w.dtype),)


def reference(picture):
    """The weighted sum in float64: (H, W)."""
    red, green, blue = np.moveaxis(picture.astype(np.float64), -1, 0)
    return WEIGHTS[0] * red + WEIGHTS[1] * green + WEIGHTS[2] * blue


TRUTH = Truth(make_inputs, reference, lambda w: 2.0**-21)


def make_pictures(w, generator):
    """Two pictures (H, W, 3) and a mask (H, W), every number between 0 and 1."""
    shapes = ((w.H, w.W, 3), (w.H, w.W, 3), (w.H, w.W))
    return tuple(generator.random(shape, dtype=w.dtype) for shape in shapes)


def blended(over, under, mask):
    """The picture in float64: (H, W, 3)."""
    shows = mask.astype(np.float64)[..., None]
    return shows * over + (1 - shows) * under


ALONE = Truth(make_pictures, blended, lambda w: 2.0**-21)
