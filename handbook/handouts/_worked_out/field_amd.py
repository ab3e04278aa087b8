"""Lanes and shuffles, for the field guide's page on AMD."""

from math import log2

WARP, WAVE = 32, 64


def reach(lanes):
    """The sum of all steps of such a tree."""
    return sum(lanes >> step for step in range(1, int(log2(lanes)) + 1))


ANSWERS = {
    "A shuffle too few": (
        reach(WARP),
        reach(WARP) + 1,
        1 / 2,
        WAVE // 2,
        int(log2(WAVE)),
        WAVE,
    )
}
