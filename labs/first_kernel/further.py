"""Cases beside the announced sizes: a number more or less than whole blocks, long lists, small and large numbers."""

import random
from typing import Any

from course_labs.further_cases import Further, every_size, opposites, scaled, twins


def further(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the lab: the sum of two zeros keeps their sign."""
    return [opposites(f"dtype=float32,N={draw.randint(26, 60)}"), *_sizes(draw, slow)]


def further_alone(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the last task, whose sums may begin at 0; they are counted as the others are."""
    return [opposites(f"dtype=float32,N={draw.randint(26, 60)}", exact=False), *_sizes(draw, slow)]


def _sizes(draw: random.Random, slow: bool) -> list[Further]:
    """Lists of any length, from short ones up.

    What is left after the last whole block is one number, all but one, or nothing, whatever power of two a block has.
    The longest list takes more than 256 programs of 1024 numbers, or more than 1024 where each takes little time.
    """
    return [
        *twins("dtype=float32,N=2049", draw),
        Further("dtype=float32,N=1022"),  # two more than whole groups of four
        Further("dtype=float32,N=1023"),
        Further("dtype=float32,N=1024", "both of a sum equal, or each the other's negative", change=alike),
        *every_size("dtype=float32,N={}".format, 1, draw, slow, longest=70_000),
        scaled("dtype=float32,N=1025", 2.0**-20),
        scaled(f"dtype=float32,N={1024 * draw.randint(2, 6) + 1}", 2.0**20),
        Further(f"dtype=float32,N={2**18 + 1 if slow else 2**20 + 1}"),
    ]


def alike(x: Any, *others: Any) -> None:
    """Make the two numbers of a sum equal, or one the other's negative."""
    if others:
        (y,) = others
        y[::2] = x[::2]
        y[1::2] = -x[1::2]
    else:  # pairs of neighbours
        x[1::4] = x[::4]
        x[3::4] = -x[2::4]
