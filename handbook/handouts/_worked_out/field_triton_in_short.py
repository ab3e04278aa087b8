"""What the exercise of the page on Triton comes to."""

SHORT, LONG, THREADS = 1000, 1100, 4 * 32


def tile(row):
    """The least power of two that holds a row."""
    return 1 << (row - 1).bit_length()


ANSWERS = {
    "A row and its tile": [tile(SHORT), tile(SHORT), THREADS, tile(SHORT) // THREADS, tile(LONG), tile(LONG) - LONG],
}
