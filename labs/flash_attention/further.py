"""Cases beside the announced sizes: every length up to two tiles, many heads, long ones, heads of every kind."""

import random

from course_labs.attention_inputs import KINDS, heads_of_every_kind, without_infinity
from course_labs.further_cases import Further, every_size, twins

TILE = 16


def size(B: int, H: int, N: int, causal: str = "") -> str:
    """A workload; without the flag where a task has none."""
    return f"dtype=float32,B={B},H={H},N={N},D=128{causal}"


def lengths(draw: random.Random, slow: bool) -> list[int]:
    """All lengths of up to five tiles, and whole tiles; or two of them."""
    return (
        sorted(draw.sample(range(1, 4 * TILE), 2)) if slow else [*range(1, 5 * TILE), 8 * TILE, 8 * TILE + 1]
    )


def long(draw: random.Random, slow: bool) -> int:
    """Past a thousand keys, and past those that the lab weighs, where there is time."""
    return draw.randint(513, 528) if slow else draw.randint(1041, 1056)


def further(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the lab, from small ones up."""
    ragged = draw.randint(TILE + 1, 2 * TILE - 2)
    few, full, causal = draw.randint(2, 9), ",causal=False", ",causal=True"
    return [
        *(Further(size(1, 1, N, flag)) for N in lengths(draw, slow) for flag in (full, causal)),
        # Who keeps the flag of the last call has it here.
        Further(size(2, 1, few, causal)),
        Further(size(2, 1, few, full), without=("causal",)),
        Further(size(1, draw.randint(9, 12), draw.randint(2, 6), causal)),
        Further(size(draw.randint(9, 12), 1, draw.randint(2, 6), full)),
        Further(size(2, 2, draw.randint(34, 50), draw.choice((full, causal)))),
        Further(
            size(1, KINDS, ragged, full),
            "each head of another kind, one infinite",
            change=heads_of_every_kind,
        ),
        Further(size(1, KINDS, ragged, causal), "each head of another kind", change=without_infinity),
        *twins(size(1, 2, draw.randint(5, 9), full), draw, "qkv"),
        *every_size(
            "dtype=float32,B={},H={},N=2,D=128,causal=True".format, 2, draw, slow, most=20, longest=80
        ),
        Further(size(3, 23 if slow else 87, 1, full)),
        # Scores of some ten thousands, in rows whose largest lies anywhere.
        Further(size(1, 1, draw.randint(40, 60), full), times=256),
        # NumPy has a long one that is causal: where the lab weighs what a file holds.
        Further(size(1, 1, long(draw, slow), causal if door == "cuda" else full)),
        # D is 128 where a kernel has it in its text.
        *(
            Further(f"dtype=float32,B=1,H=2,N=20,D={D}{full}")
            for D in (draw.sample((8, 16, 32, 64), 2) if door == "numpy" else ())
        ),
    ]


def further_alone(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the last task."""

    def gentle(q, k, v, slope):
        slope *= 2.0**-8

    def steep(q, k, v, slope):
        slope *= 2.0**6

    def own_key_only(q, k, v, slope):
        q[:, 0] *= 2.0**16
        slope[0] *= 2.0**24

    return [
        *(Further(size(1, 1, N)) for N in lengths(draw, slow)),
        Further(size(1, draw.randint(9, 12), draw.randint(2, 6))),
        Further(size(draw.randint(9, 12), 2, draw.randint(2, 6))),
        Further(size(2, 2, draw.randint(34, 50))),
        Further(
            size(1, KINDS, draw.randint(TILE + 1, 2 * TILE - 2)),
            "each head of another kind, one infinite",
            change=heads_of_every_kind,
        ),
        *twins(size(1, 2, draw.randint(5, 9)), draw, ("q", "k", "v", "slope")),
        *every_size("dtype=float32,B={},H={},N=2,D=128".format, 2, draw, slow, most=20, longest=80),
        Further(size(2, 35 if slow else 131, 1)),
        Further(size(1, 2, draw.randint(40, 60)), "slopes 64 times as large", change=steep),
        # The largest score of a row is another key's, until the distance is taken from it.
        Further(
            size(1, 2, draw.randint(TILE + 1, 2 * TILE - 2)),
            "in one head q times 2^16 and its slope times 2^24",
            change=own_key_only,
        ),
        # So gentle a slope that the furthest key still counts.
        Further(
            size(1, 1, draw.randint(257, 272) if slow else long(draw, slow)),
            "slopes 256 times as small",
            change=gentle,
        ),
    ]
