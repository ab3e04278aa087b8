"""A butterfly of eight lanes, for week 13."""

import math

LANES = [3, 1, 4, 1, 5, 9, 2, 6]


def step(lanes, bit):
    """Every lane adds the number of the one that differs in this bit."""
    return [value + lanes[i ^ bit] for i, value in enumerate(lanes)]


FIRST = step(LANES, 4)
SECOND = step(FIRST, 2)
THIRD = step(SECOND, 1)
assert FIRST[:4] == FIRST[4:]
assert SECOND[:4] == SECOND[4:]
assert len({*THIRD}) == 1

ANSWERS = {
    "A butterfly on paper": (
        *FIRST[:4],
        4,
        *SECOND[:4],
        THIRD[0],
        32,
        round(math.log2(32)),
        0,
    ),
}
