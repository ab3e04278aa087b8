"""Cases beside the announced sizes: lists a number longer or shorter than shares, in sums that are not rounded."""

import random
from typing import Any

from course_labs.further_cases import Further, every_size, scaled, twins


def further(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the lab, from short lists up: one number too few or too many shows."""
    N = draw.randint(30, 60)
    at = draw.randint(1, N - 2)

    def all_but_one(x: Any) -> None:
        x[...] = 0.0
        x[at] = 1.0

    def ones(x: Any) -> None:
        x[...] = 1.0

    def only_the_last(x: Any) -> None:
        x[...] = 0.0
        x[-1] = 1.0

    return [
        Further("dtype=float32,N=2"),
        Further(f"dtype=float32,N={N}", f"all 0 but for x[{at}]", change=all_but_one, exact=True),
        scaled("dtype=float32,N=513", 2.0**-20),
        *every_size("dtype=float32,N={}".format, 1, draw, slow, longest=70_000),
        *(Further(f"dtype=float32,N={N}", "all 1", change=ones, exact=True) for N in edges(draw)),
        *(
            Further(f"dtype=float32,N={N}", "all 0 but for the last", change=only_the_last, exact=True)
            for N in far(door, draw, slow)
        ),
    ]


def edges(draw: random.Random) -> tuple[int, ...]:
    """Lengths of which one number, all but one, or nothing is left after the last whole block."""
    return 33, 257, 1022, 1023, 1024, 1025, 1024 * draw.randint(64, 70) + 1


def far(door: str, draw: random.Random, slow: bool) -> list[int]:
    """Lengths of which 1024 shares of 4096 are not all; none where a CPU runs every thread."""
    return [] if door == "cuda" and slow else [2**22 + draw.randint(1, 100_000)]


def further_alone(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the last task: lists that rise or never move, up to one that 1024 shares of 4096 do not hold."""

    def rising(x: Any) -> None:
        for n in range(len(x)):
            x[n] = n / 1024

    def flat(x: Any) -> None:
        x[...] = 0.75

    def up_and_down(x: Any) -> None:
        x[::2] = 0.0
        x[1::2] = 1.0

    N = draw.randint(30, 60)
    lengths = [*edges(draw), *far(door, draw, slow)]
    return [
        *twins(f"dtype=float32,N={N}", draw),
        *every_size("dtype=float32,N={}".format, 1, draw, slow, longest=70_000),
        scaled("dtype=float32,N=513", 2.0**-10),
        Further(f"dtype=float32,N={draw.randint(900, 1024)}", "rising", change=rising, exact=True),
        Further(f"dtype=float32,N={N}", "all the same", change=flat, exact=True),
        *(Further(f"dtype=float32,N={N}", "0, 1, 0, 1, …", change=up_and_down, exact=True) for N in lengths),
    ]
