"""Micro-batches against the bubble, for week 7."""

import math

BATCH = 64


def least(stages):
    """The fewest micro-batches with a bubble below a tenth."""
    return next(m for m in range(1, 1000) if (stages - 1) / (m + stages - 1) < 0.1)


FOUR = 2 ** math.ceil(math.log2(least(4)))  # that divides the batch
EIGHT = 2 ** math.ceil(math.log2(least(8)))

assert EIGHT == BATCH  # micro-batches of one
ANSWERS = {
    "How many micro-batches?": (3, 3, least(4), FOUR, BATCH // FOUR, 7),
}
