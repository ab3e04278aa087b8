"""Cases beside the announced sizes: each side alone long, squares, small and large numbers, infinities."""

import random
from typing import Any

from course_labs.further_cases import (
    Further,
    every_size,
    huge_and_tiny,
    infinite,
    past_a_group,
    scaled,
    subnormal,
    twins,
    whole_and_ragged,
    zeros_and_infinities,
)


def further(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the lab, from small ones up."""

    def size(M: int, N: int, K: int) -> str:
        return f"dtype=float32,M={M},N={N},K={K}"

    few, long = (lambda: draw.randint(3, 5)), draw.randint(4097, 4200)
    wide = draw.randint(1025, 1100) if slow else long
    side = draw.randint(17, 31)
    return [
        *twins(size(side, side, side), draw),
        *(Further(size(one, one, one)) for one in (32, draw.randint(65, 70))),
        Further(size(few(), few(), 33)),
        scaled(size(6, 7, 31), 2.0**-20),
        scaled(size(7, 6, 66), 2.0**10),
        huge_and_tiny(size(5, 6, 130)),
        zeros_and_infinities(size(5, 6, 130)),
        *infinite(size(33, 34, 97), inputs=2),
        *every_size(size, 3, draw, slow, most=34, longest=1000, beside=(5, 8)),
        *whole_and_ragged(size, (32,), draw.randint(1, 9)),
        subnormal(size(9, 10, 34)),
        *past_a_group(lambda M, N: size(M, N, few()), draw),
        Further(size(few(), few(), long)),
        Further(size(wide, few(), few())),
        Further(size(few(), wide, few())),
    ]


def further_alone(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the last task."""

    def above(a: Any) -> None:
        a[1:-1] = 0.0
        a[0, 1], a[-1, 2] = float("inf"), float("inf")

    def size(M: int, K: int) -> str:
        return f"dtype=float32,M={M},K={K}"

    M, side = draw.randint(260, 300) if slow else draw.randint(1025, 1100), draw.randint(17, 31)
    return [
        *twins(size(side, side), draw),
        *(Further(size(M, draw.randint(1, 3))) for M in (2, 32, 65)),
        Further(size(draw.randint(2, 3), 33)),
        scaled(size(31, 31), 2.0**-50),
        scaled(size(5, 64), 2.0**10),
        Further(size(34, 33), "an infinity that meets zeros", change=above),
        *infinite(size(5, 129), inputs=1),
        *every_size(size, 2, draw, slow, most=34, longest=250, beside=(5, 8)),
        Further(size(draw.randint(2, 3), draw.randint(4097, 4200))),
        Further(size(M, draw.randint(1, 2))),
    ]
