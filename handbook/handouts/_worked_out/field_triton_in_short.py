"""What the exercise of the page on Triton comes to."""

ROW, THREADS = 1000, 4 * 32


def tile(row):
    """The least power of two that holds a row."""
    return 1 << (row - 1).bit_length()


NEXT = tile(ROW) + 1  # the shortest row that does not fit

ANSWERS = {
    "A row and its tile": [
        tile(ROW),
        tile(ROW),
        THREADS,
        tile(ROW) // THREADS,
        tile(ROW) - ROW,
        NEXT,
        tile(NEXT),
    ],
}
