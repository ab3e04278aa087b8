"""Cases beside the announced sizes: each side alone long, squares, numbers small and large, sums that nearly cancel."""

import random
from typing import Any

from course_labs.further_cases import Further, every_size, infinite, past_a_group, twins, whole_and_ragged

F = 16  # rows and columns of a square


def size(M: int, N: int, K: int) -> str:
    """A workload as text."""
    return f"dtype=float16,M={M},N={N},K={K}"


def further(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the lab, from small ones up."""

    def cancelling(a: Any, b: Any) -> None:
        half = a.shape[1] // 2
        a[:, half:] = -a[:, :half]
        b[half:] = b[:half]
        a[:, 0] += (
            0.125 if half < 1000 else 1.0
        )  # so that the rounding of many sums is small beside what is left

    return [
        *sides(draw, slow, biased=False),
        *(
            Further(size(M, N, K), "sums that nearly cancel", change=cancelling)
            for M, N, K in (
                (draw.randint(5, 40), draw.randint(5, 40), 256),
                (draw.randint(5, 8), draw.randint(5, 8), 2 * draw.randint(1100, 1300)),
            )
        ),
    ]


def further_alone(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the last task."""
    return sides(draw, slow, biased=True)


def ragged(draw: random.Random, slow: bool) -> list[tuple[int, ...]]:
    """Sides that leave of the last squares, or of a tile, a row or column, all but one, or any other number."""
    if slow:
        return [(17, 31, 15), (31, 17, 33), (49, 47, 1), (47, 49, 2)]
    every = range(1, 2 * F + 1)
    found = list(zip(*(draw.sample(every, len(every)) for _ in "MNK"), strict=True))
    return [(M + 2 * F, N, K) if draw.random() < 0.5 else (M, N + 2 * F, K) for M, N, K in found]


def sides(draw: random.Random, slow: bool, biased: bool) -> list[Further]:
    """Cases of both."""

    def small(a: Any, *others: Any) -> None:
        a *= 2.0**-10
        for bias in others[1:]:
            bias *= 2.0**-10

    def small_b(a: Any, b: Any, *others: Any) -> None:
        b *= 2.0**-10
        for bias in others:
            bias *= 2.0**-10

    def large(a: Any, *others: Any) -> None:
        a *= 2.0**7
        for bias in others[1:]:
            bias *= 2.0**7

    few, long = (lambda: draw.randint(2, 3)), draw.randint(4097, 4200)
    wide = draw.randint(1025, 1100) if slow else long
    side = draw.randint(17, 31)
    names = ("A", "B", "the bias") if biased else ("A", "B")
    return [
        *twins(size(side, side, side), draw, names),
        Further(size(64, 64, 64)),
        *(Further(size(*sides)) for sides in ((15, 66, 31), (66, 15, 34), *ragged(draw, slow))),
        Further(size(9, 11, 40), "A times 2^-10", change=small),
        Further(size(11, 9, 40), "B times 2^-10", change=small_b),
        Further(size(9, 11, 40), "A times 128", change=large),
        *infinite(size(5, 6, 65), inputs=2),
        *every_size(size, 3, draw, slow, most=18, longest=70, beside=(5, 8)),
        *whole_and_ragged(size, (F,), draw.randint(1, 9)),
        *past_a_group(lambda M, N: size(M, N, draw.randint(5, 8)), draw),
        Further(size(few(), few(), long)),
        Further(size(wide, few(), few())),
        Further(size(few(), wide, few())),
    ]
