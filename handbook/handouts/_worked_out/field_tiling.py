"""What the exercises of the page on tiling come to."""

SMS, N, BYTES = 132, 1024, 4


def said(side):
    """Numbers fetched in a step, multiply-adds in it, bytes for each of these, and blocks."""
    return [
        BYTES,
        2 * side,
        side * side,
        BYTES * 2 * side / side**2,
        (N // side) ** 2,
    ]


SMALL, LARGE = 64, 128
IDLE = SMS - (N // LARGE) ** 2

ANSWERS = {
    "Two tiles": [SMALL, SMALL, *said(SMALL), LARGE, LARGE, *said(LARGE), IDLE],
}
