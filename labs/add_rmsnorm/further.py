"""Cases beside the announced sizes: a row of zeros, many rows, long rows, numbers near the largest."""

import random

from course_labs.further_cases import Further


def further(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the lab, from small ones up."""
    zeros = draw.randint(1, 3)

    def without_a_row(x, g, r):
        x[zeros] = 0
        r[zeros] = 0

    told = f"row {zeros} of x and r all zeros"
    return [
        Further(f"dtype=float16,M=4,N={draw.randint(9, 60)}", told, change=without_a_row),
        *drawn(door, draw, slow),
    ]


def further_alone(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the last task, in which no row is all zeros."""
    return drawn(door, draw, slow)


def drawn(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of both.

    Numbers near the largest that fits; a row between 31 and 1000, where one number more or less in the mean still
    shows; many rows; long rows, as long as a step of this door may be.
    """
    N = draw.randint(20, 60)
    rows, places, values = (
        (0, 1),
        (draw.randrange(N), draw.randrange(N)),
        (draw.randint(34, 60), -draw.randint(34, 60)),
    )

    def nearly_too_large(x, g, r):
        for row, place, value in zip(rows, places, values, strict=True):
            x[row, place] = 1000 * value
            r[row, place] = 0

    told = ", ".join(
        f"x[{row}, {at}] is {1000 * value}" for row, at, value in zip(rows, places, values, strict=True)
    )
    many = draw.randint(65, 75) if slow else draw.randint(257, 300)
    middling = draw.randint(33, 64), draw.randint(101, 115), draw.randint(130, 250)
    lengths = (
        [draw.randint(1001, 1024)]
        if door == "numpy"
        else [draw.randint(1025, 2047), draw.randint(4097, 9000)]
    )
    if door != "numpy" and not slow:
        lengths.append(16384)
    return [
        Further(f"dtype=float16,M=2,N={N}", told, change=nearly_too_large),
        *(Further(f"dtype=float16,M=2,N={length}") for length in middling),
        *(Further(f"dtype=float16,M=2,N={length}") for length in lengths),
        Further(f"dtype=float16,M={many},N={draw.randint(5, 12)}"),
    ]
