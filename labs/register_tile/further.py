"""Cases beside the announced sizes: each side alone long, squares, small and large numbers, infinities."""

import random
from typing import Any

from course_labs.further_cases import (
    Further,
    every_size,
    huge_and_tiny,
    past_a_group,
    scaled,
    subnormal,
    twins,
    whole_and_ragged,
    zeros_and_infinities,
)


def further(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the lab, and of its last task, from small ones up."""

    def size(M: int, N: int, K: int) -> str:
        return f"dtype=float32,M={M},N={N},K={K}"

    def infinity_in_a(a: Any, b: Any) -> None:
        a.reshape(-1)[0] = float("inf")

    def infinity_in_b(a: Any, b: Any) -> None:
        b.reshape(-1)[-1] = float("inf")

    few, long = (lambda: draw.randint(3, 5)), draw.randint(4097, 4200)
    wide = draw.randint(1025, 1100) if slow else long
    side = draw.randint(9, 15)
    return [
        *twins(size(side, side, side), draw),
        *(Further(size(one, one, one)) for one in (16, draw.randint(65, 70))),
        *(Further(size(*sides)) for sides in ((7, 66, 18), (66, 7, 11))),
        scaled(size(5, 7, 33), 2.0**-20),
        scaled(size(7, 5, 32), 2.0**10),
        huge_and_tiny(size(9, 10, 34)),
        zeros_and_infinities(size(9, 10, 34)),
        Further(size(9, 10, 33), "an infinity in A", change=infinity_in_a),
        Further(size(9, 10, 33), "an infinity in B", change=infinity_in_b),
        *every_size(size, 3, draw, slow, longest=1000, beside=(5, 8)),
        *whole_and_ragged(size, (8, 16) if slow else (8, 16, 32), draw.randint(1, 7)),
        subnormal(size(9, 10, 34)),
        *past_a_group(lambda M, N: size(M, N, few()), draw),
        Further(size(few(), few(), long)),
        Further(size(wide, few(), few())),
        Further(size(few(), wide, few())),
    ]


further_alone = further
