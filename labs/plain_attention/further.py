"""Cases beside the announced sizes: heads and batches, d, the flag left out, long rows, heads of every kind."""

import random
from dataclasses import dataclass
from typing import Any

from course_labs.attention_inputs import KINDS, heads_of_every_kind, without_infinity
from course_labs.further_cases import Further, twins


@dataclass(frozen=True)
class Heads:
    """Heads of a case, as its size names them.

    Attributes:
        several: one after the other, each with a d of its own.
        one, two: for a long row, and for a shorter one whose scores are large.
        kinds: with a head of keys of every kind.
        many: more than a grid of 64 has, for one token.
        every: all numbers of them up to some, for two tokens.
    """

    several: tuple[str, ...]
    one: str
    two: str
    kinds: str
    many: str
    every: tuple[str, ...]


def of_one_sign(q: Any, k: Any, v: Any, slope: Any = None) -> None:
    """Give all values the sign of the first.

    A row of one number has no other beside it, so its error is held against that number alone. Values of both signs may
    cancel in it, and then every rounding is too much: a right answer would be refused now and then.
    """
    v[...] = abs(v) * (1 if v.reshape(-1)[0] > 0 else -1)


def further(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the lab, from small ones up; long ones are shorter where an interpreter takes each row by itself."""
    several = "B=2,H=3", f"B={draw.randint(5, 7)},H=1", f"B=1,H={draw.randint(9, 11)}"
    many = "B=3,H=23" if slow else "B=5,H=206"
    every = tuple(f"B={one},H={other}" for n in range(1, 20) for one, other in ((n, 2), (2, n)))
    every = tuple(draw.sample(every, 3)) if slow else every
    return drawn(door, draw, slow, Heads(several, "B=1,H=1", "B=1,H=2", f"B=1,H={KINDS}", many, every))


def further_alone(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the last task: groups of other sizes."""
    each = draw.randint(9, 11)
    several = "H=18,KV=2", f"H={each},KV={each}", "H=12,KV=6"
    many = "H=69,KV=23" if slow else "H=1030,KV=206"
    every = tuple(f"H={KV * group},KV={KV}" for KV in range(1, 9) for group in range(1, 9))
    every = tuple(draw.sample(every, 3)) if slow else every
    kinds = f"H={2 * KINDS},KV={KINDS}"
    return drawn(door, draw, slow, Heads(several, "H=1,KV=1", "H=2,KV=1", kinds, many, every))


def drawn(door: str, draw: random.Random, slow: bool, heads: Heads) -> list[Further]:
    """Cases with these heads."""

    def size(which: str, N: int, D: int, causal: bool) -> str:
        return f"dtype=float32,{which},N={N},D={D},causal={causal}"

    # Past any power of two that a block may have, as far as there is time for.
    if slow:
        long = draw.randint(1041, 1048) if heads.one.startswith("B") else draw.randint(257, 264)
    else:
        long = draw.randint(1041, 1100)
    few = draw.randint(4, 9)
    past_64 = draw.randint(74, 80)  # by so many that some row has its largest score there
    dims = draw.sample((4, 16, 32), len(heads.several))
    first = draw.random() < 0.5
    # A whole block, and one more; NumPy has time for all, and takes any d.
    lengths = [16] if slow else [*range(1, 67), 127, 128, 129, 256]
    others = [draw.choice((1, 2)), draw.choice((64, 128))] if slow else [1, 2, 64, 128, 256]
    others += [3, 7, 50, 100] if door == "numpy" else []
    return [
        *(
            Further(size(which, draw.randint(2, 4), D, draw.random() < 0.5))
            for which, D in zip(heads.several, dims, strict=True)
        ),
        *(Further(size(heads.one, N, 8, causal)) for N in lengths for causal in (False, True)),
        Further(size(heads.two, draw.randint(17, 24), 8, not first)),
        *(Further(size(heads.one, 3, D, first)) for D in others if D > 1),
        *(
            [Further(size(heads.one, 3, 1, first), "values of one sign", change=of_one_sign)]
            if 1 in others
            else []
        ),
        # Who keeps the flag of the last call has it here.
        Further(size(heads.two, few, 8, True)),
        Further(size(heads.two, few, 8, False), without=("causal",)),
        Further(
            size(heads.kinds, 3, 8, False),
            "each head of another kind, one infinite",
            change=heads_of_every_kind,
        ),
        Further(size(heads.kinds, 3, 8, True), "each head of another kind", change=without_infinity),
        # In Triton nobody but the kernel sees the numbers by which to keep an answer.
        *twins(size(heads.two, draw.randint(4, 6), 8, False), draw, "q" if slow else "qkv"),
        *(Further(size(which, 2, 4, not first)) for which in heads.every),
        Further(size(heads.many, 1, 4, first)),
        # Scores of some ten thousands, in rows whose largest lies anywhere.
        Further(size(heads.one, past_64, draw.choice((4, 8)), False), times=256),
        Further(size(heads.one, long, 4, True)),
        *([] if slow else [Further(size(heads.one, long, 4, False))]),
    ]
