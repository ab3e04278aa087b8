"""Cases beside the announced sizes: heads and batches, d, the flag left out, long rows, large scores."""

import random

from course_labs.further_cases import Further


def further(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the lab, from small ones up; long ones are shorter where an interpreter takes each row by itself."""
    return drawn(door, draw, slow, ("B=2,H=3", "B=3,H=1", "B=1,H=4"), "B=1,H=1", "B=1,H=2")


def further_alone(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the last task: groups of other sizes."""
    return drawn(door, draw, slow, ("H=5,KV=1", "H=4,KV=4", "H=8,KV=2"), "H=1,KV=1", "H=2,KV=1")


def drawn(
    door: str, draw: random.Random, slow: bool, heads: tuple[str, ...], one: str, two: str
) -> list[Further]:
    """Cases with these heads.

    Args:
        heads: one after the other, each with a d of its own.
        one, two: heads for a long row, and for a shorter one whose scores are large.
    """
    # Past any power of two that a block may have, as far as there is time for.
    if slow:
        long = draw.randint(257, 270) if one.startswith("B") else draw.randint(129, 140)
    else:
        long = draw.randint(1025, 1090) if door == "numpy" else draw.randint(513, 600)
    past_64 = draw.randint(84, 96)  # by so many that some row has its largest score there
    dims = draw.sample((4, 16, 32), len(heads))
    return [
        *(
            Further(f"dtype=float32,{which},N={draw.randint(3, 6)},D={D},causal={draw.random() < 0.5}")
            for which, D in zip(heads, dims, strict=True)
        ),
        Further(f"dtype=float32,{two},N={draw.randint(4, 9)},D=8,causal=False", without=("causal",)),
        # Scores of some ten thousands, in rows whose largest lies anywhere.
        Further(f"dtype=float32,{one},N={past_64},D={draw.choice((4, 8))},causal=False", times=256),
        Further(f"dtype=float32,{one},N={long},D=4,causal=True"),
    ]
