"""Threads and tables of the first page."""

from math import ceil

ANSWERS = {
    "Take the bounds check away": (
        (1000, ceil(1000 / 256), 4, 4 * 256, 4 * 256 - 1000),
        (1024, 2, 1_000_003),
    ),
    "Change the size of the tables": (
        (32, 32, 32 * 32, 32 * 32 / 2048, 2048 // 32, 2048),
        (32, 64, 256, 1024, 4, 32, 32, 256, 1024),
    ),
    "Four at a time": (4 * 4, 4, 2, 2, 4, 2, 4, 16, "x[1:]"),
}
