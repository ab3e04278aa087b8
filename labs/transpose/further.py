"""Cases beside the announced sizes: squares, sides about those of a tile, long sides, and numbers to the last bit."""

import random
from typing import Any

from course_labs.further_cases import Further, every_size, past_a_group, twins

TILES = 16, 32, 64


def further(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the lab, and of its last task, from small matrices up."""
    about = [size for tile in TILES for size in (tile - 1, tile, tile + 1)]
    squares = [1, *((63, 64, 65) if slow else about), 129]
    past = 128 * draw.randint(32, 33) + 1  # one past the last whole tile, whatever its size
    sides = [draw.sample(range(2, 32), 2), (128, 64), (past, 1), (3, past)]
    sides += [(1, 128 * draw.randint(66, 70) + 1)]  # more tiles than a card has multiprocessors
    if slow:
        sides += [draw.sample(about[-3:], 2)]
    else:
        sides += [(M, N) for M in about for N in about if M != N]
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
        *every_size("dtype=float32,M={},N={}".format, 2, draw, slow),
        *(Further(f"dtype=float32,M={M},N={N}") for M, N in (*zip(squares, squares, strict=True), *sides)),
        *past_a_group("dtype=float32,M={},N={}".format, draw),
    ]


further_alone = further
