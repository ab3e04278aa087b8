"""Cases beside the announced sizes: squares, a single row or column, long sides, and numbers to the last bit."""

import random
from typing import Any

from course_labs.further_cases import Further, twins


def further(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the lab, and of its last task, from small matrices up."""
    squares = [1, 64, draw.randint(129, 140)]
    sides = [
        draw.sample(range(2, 32), 2),
        (128, 64),
        (draw.randint(4097, 4200), 1),
        (3, draw.randint(4097, 4200)),
    ]
    if not slow:
        sides += [(1, 66_000), (66_000, 1)]  # more than 1024 tiles

    def every_bit(x: Any) -> None:
        flat = x.reshape(-1)
        for at, value in zip(draw.sample(range(len(flat)), 4), (-0.0, 0.0, 1e-40, -1e-40), strict=True):
            flat[at] = value

    small, middling = draw.randint(2, 15), draw.randint(17, 63)
    told = "zeros of both signs among them"
    return [
        *twins(f"dtype=float32,M={small},N={small}", draw),
        Further(f"dtype=float32,M={middling},N={middling}", told, change=every_bit, exact=True),
        *(Further(f"dtype=float32,M={M},N={N}") for M, N in (*zip(squares, squares, strict=True), *sides)),
    ]


further_alone = further
