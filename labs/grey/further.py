"""Cases beside the announced sizes: rows a little longer than their pieces, many rows, dark pictures."""

import random
from typing import Any

from course_labs.further_cases import Further, every_size, scaled, twins


def further(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the lab, from small pictures up.

    What is left of a row after its last whole piece is less than half of one, one pixel, all but one, or nothing.
    """
    heights = [draw.randint(130, 140)] if slow else [draw.randint(1025, 1100), draw.randint(4097, 4200)]
    side = draw.randint(9, 31)
    return [
        *twins(f"dtype=float32,H={side},W={side}", draw),
        scaled(f"dtype=float32,H=2,W={draw.randint(257, 383)}", 2.0**-20),
        *(Further(f"dtype=float32,H=1,W={W}") for W in (1023, 1025, draw.randint(4097, 4104))),
        Further("dtype=float32,H=1,W=1024", "colours, or pictures, that are equal", change=alike),
        *every_size("dtype=float32,H={},W={}".format, 2, draw, slow),
        *(Further(f"dtype=float32,H={H},W={draw.randint(1, 3)}") for H in heights),
    ]


def alike(picture: Any, *others: Any) -> None:
    """Make the colours of each pixel equal, or, of two pictures, every second pixel of both."""
    if others:
        others[0][:, ::2] = picture[:, ::2]
    else:
        picture[..., 1] = picture[..., 0]
        picture[..., 2] = picture[..., 0]


def further_alone(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the last task: masks of nothing but 0 and 1, too."""

    def all_or_nothing(over: Any, under: Any, mask: Any) -> None:
        mask[...] = mask > 0.5

    def dark(over: Any, under: Any, mask: Any) -> None:
        over *= 2.0**-20
        under *= 2.0**-20

    def hidden(over: Any, under: Any, mask: Any) -> None:
        over[0, 1], under[1, 2] = float("inf"), float("-inf")
        mask[0, 1], mask[1, 2] = 0.0, 1.0

    size = f"dtype=float32,H={draw.randint(3, 8)},W={draw.randint(9, 30)}"
    return [
        *further(door, draw, slow),
        Further(size, "the mask 0 or 1", change=all_or_nothing),
        Further(size, "both pictures nearly black", change=dark),
        Further(size, "infinities where the mask hides them", change=hidden),
    ]
