"""What the exercises of the page on vectors and ILP come to."""

WARPS, NUMBERS, LATENCY = 2, 1024, 4


def ticks(sums):
    """How long the additions take: a chain's wait, or the slots of the scheduler."""
    return max(NUMBERS // sums * LATENCY, WARPS * NUMBERS)


ONE, TWO, EIGHT = (ticks(sums) for sums in (1, 2, 8))
AT_THE_END = (8 - 1) - (2 - 1)  # additions of the sums themselves

ANSWERS = {
    "How many sums?": [
        NUMBERS,
        LATENCY,
        ONE,
        2,
        WARPS,
        WARPS,
        NUMBERS,
        TWO,
        8,
        EIGHT,
        AT_THE_END,
    ],
}
