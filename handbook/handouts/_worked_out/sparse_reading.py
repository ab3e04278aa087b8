"""Bytes of a decode that reads everything, and of one that reads an index and a choice."""

# A row of DeepSeek-V3.2's cache and a key of its index, in numbers of 2 bytes; tokens chosen.
LATENT, POSITION, INDEX_WIDTH, CHOSEN, LONG = 512, 64, 128, 2048, 131072
ROW, KEY = 2 * (LATENT + POSITION), 2 * INDEX_WIDTH


def crossing(chosen):
    """Tokens at which keys of all and rows of the chosen are as many bytes as all rows."""
    return chosen * ROW / (ROW - KEY)


def megabytes(chosen):
    """What a step reads of a long context: keys of all, rows of the chosen."""
    return (LONG * KEY + chosen * ROW) / 1e6


ANSWERS = {
    "Where do the lines cross?": (
        (ROW, KEY, CHOSEN, ROW, CHOSEN, ROW, ROW - KEY, crossing(CHOSEN)),
        2700,
    ),
    "Twice the choice": (
        (2 * CHOSEN, ROW, ROW - KEY, crossing(2 * CHOSEN)),
        (
            LONG,
            LONG,
            KEY,
            LONG * KEY / 1e6,
            CHOSEN * ROW / 1e6,
            2 * CHOSEN * ROW / 1e6,
        ),
        (
            megabytes(CHOSEN),
            megabytes(2 * CHOSEN),
        ),
    ),
}
