"""What the exercises of the page on coalescing come to."""


def sectors(distance_bytes, lanes=32, sector_bytes=32):
    """How many sectors hold one float of each lane."""
    return len({lane * distance_bytes // sector_bytes for lane in range(lanes)})


APART, BESIDE = 4 * 4, 4  # an array of structures, four arrays
SPAN = 32 * APART
USED = 32 * 4 / (32 * sectors(APART))  # of the bytes that are fetched

ANSWERS = {
    "Structures": [
        APART,
        SPAN,
        sectors(APART),
        USED,
        sectors(BESIDE),
        APART,
        sectors(APART),
    ],
}
