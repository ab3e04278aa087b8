"""Cases beside the announced sizes: every length up to two tiles, many heads, long lists, scores far from zero."""

import random
from typing import Any

from course_labs.further_cases import Further, twins

INPUTS = ("q", "w_k", "w_v", "cache")


def size(B: int = 1, H: int = 2, N: int = 3, D: int = 4, R: int = 2, C: int = 6) -> str:
    """A workload."""
    return f"dtype=float32,B={B},H={H},N={N},D={D},R={R},C={C}"


def all_scores(times: float) -> Any:
    """All scores far from 0, and as far: the first number of the position takes care of that.

    Whoever begins with a largest score of 0, or gives a token that does not exist a score of 0, sees nothing or sees
    that; whoever subtracts no largest score has infinity. At a few thousand a sum in float32 is rounded to some
    ten-thousandths.
    """

    def change(q: Any, w_k: Any, w_v: Any, cache: Any, *scale: Any) -> None:
        D, C = w_k.shape[1:]
        q[:, :, D] = 64.0
        cache[:, :, C] = 64.0 * times

    return change


def some_heads_only_by_position(q: Any, w_k: Any, w_v: Any, cache: Any, *scale: Any) -> None:
    """Every second head asks by position alone, the others by content alone."""
    D = w_k.shape[1]
    q[:, ::2, :D] = 0
    q[:, 1::2, D:] = 0


def one_token_ahead(q: Any, w_k: Any, w_v: Any, cache: Any, *scale: Any) -> None:
    """The last token's position is what all heads look for."""
    D, C = w_k.shape[1:]
    q[:, :, D] = 16.0
    cache[:, :-1, C] = -16.0
    cache[:, -1, C] = 16.0


def further(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the lab, from small ones up."""
    first, *others = twins(size(H=3, N=draw.randint(4, 6)), draw, INPUTS[:1] if slow else INPUTS)
    return [*drawn(draw, slow), first, *others]


def further_alone(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the last task: those of the lab, and scales that are far apart."""

    def far_apart(q: Any, w_k: Any, w_v: Any, cache: Any, scale: Any) -> None:
        scale[:, ::2] *= 8
        scale[:, 1::2] /= 8

    names = INPUTS[:1] if slow else (*INPUTS, "scale")
    return [
        *drawn(draw, slow),
        Further(size(N=draw.randint(9, 20)), "scales far apart", change=far_apart),
        *twins(size(H=3, N=draw.randint(4, 6)), draw, names),
    ]


def drawn(draw: random.Random, slow: bool) -> list[Further]:
    """Cases that both have: an interpreter has time for some of them."""

    def some(sizes: list[int], count: int) -> list[int]:
        return sorted(draw.sample(sizes, count)) if slow else sizes

    lengths = [*some([*range(1, 67)], 2), 32, *([] if slow else [127, 128, 129, 256])]
    few = draw.randint(5, 9)
    return [
        *(Further(size(N=N)) for N in lengths),
        *(Further(size(H=H)) for H in some([*range(1, 35)], 2)),
        *(Further(size(D=D)) for D in some([*range(3, 20)], 1)),
        *(Further(size(R=R)) for R in some([*range(1, 35)], 2)),
        *(Further(size(C=C)) for C in some([*range(2, 67)], 2)),
        *(Further(size(B=B, H=1)) for B in some([*range(2, 12)], 1)),
        Further(size(B=23 if slow else 205, H=1, N=2)),
        # Room for the next power of two, and one of each that is just that.
        Further(size(H=17, N=33, D=3, R=17, C=17)),
        Further(size(H=16, N=draw.choice((32, 64)), D=4, R=16, C=32)),
        # More of the position than of the latent, and a head wider than the latent.
        Further(size(N=few, D=draw.randint(13, 15), R=draw.randint(9, 12), C=draw.randint(3, 5))),
        *(
            Further(size(N=N, H=3), f"all scores far {where} 0", slack=64, change=all_scores(times))
            for where, times, N in (("above", 1.0, few), ("below", -1.0, few + 28))
        ),
        Further(
            size(N=few + 12, H=4), "heads that ask by position alone", change=some_heads_only_by_position
        ),
        Further(size(N=few + 60), "one token far ahead of the others", slack=4, change=one_token_ahead),
        # Scores of some thousands.
        Further(size(N=draw.randint(9, 20), D=8, C=12), times=16),
        Further(size(H=1, N=draw.randint(257, 270) if slow else draw.randint(1041, 1100))),
    ]
