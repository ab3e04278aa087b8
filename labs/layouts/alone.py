"""The last task of the layouts: how wide a copy may be that goes from one layout to another."""

import math
import random
from collections.abc import Sequence
from typing import Any

from course_labs.interactive_cases import Asked, Play, Slip

NEXT_OF_BOTH = (
    "both must be without a gap: follow the source from address 0 on, and look where each element is going."
)
NEXT_OF_PLACES = "addresses are compared, not indices: which index of the source lies at address 1?"
NEXT_OF_THE_ORDER = (
    "the same places in another order are no run: element by element, the address must be the same."
)

Numbers = list[int]
Layout = list[Any]  # shape and stride


def cases() -> list[Play]:
    """From rows that are alike to layouts by chance."""
    fixed = {
        "two equal rows": ([[8], [1]], [[8], [1]]),
        "rows with padding on one side": ([[4, 8], [8, 1]], [[4, 8], [12, 1]]),
        "rows against columns": ([[4, 8], [8, 1]], [[4, 8], [1, 4]]),
        "columns on both sides, padded on one": ([[4, 8], [1, 4]], [[4, 8], [1, 6]]),
        "every second place on both sides": ([[8], [2]], [[8], [2]]),
        "a source that begins with a gap, a destination without one": ([[8], [2]], [[8], [1]]),
        "tiles of 2 by 2 into columns": ([[2, 2, 2, 4], [1, 4, 2, 8]], [[4, 8], [1, 4]]),
        "brackets on one side": ([[[2, 2], 4], [[1, 8], 2]], [[4, 4], [1, 4]]),
        "an order in which only the second numbers agree": ([[4, 8], [16, 1]], [[4, 8], [8, 1]]),
        "one element": ([[1], [1]], [[1], [7]]),
        "two halves exchanged behind the first four": ([[4, 2, 2], [1, 8, 4]], [[4, 2, 2], [1, 4, 8]]),
        "pairs in another order": ([[2, 4], [1, 2]], [[4, 2], [2, 1]]),
    }
    return [
        *(Play(job, lambda asked, _, pair=pair: look_at(asked, *pair)) for job, pair in fixed.items()),
        Play("twenty copies by chance", by_chance, again=4),
    ]  # fmt: skip


def flat(numbers: Any) -> Numbers:
    """All numbers of a shape or a stride, from the left."""
    return [numbers] if isinstance(numbers, int) else [one for part in numbers for one in flat(part)]


def table(shape: Any, stride: Any) -> Numbers:
    """The addresses of a layout in the order of its indices."""
    places = [0]
    for count, step in zip(flat(shape), flat(stride), strict=True):
        places = [place + digit * step for digit in range(count) for place in places]
    return places


def run_of(pairs: Sequence[tuple[int, int]]) -> int:
    """How many elements from 0 on have the same address on both sides."""
    goes = dict(pairs)
    return next((n for n in range(len(pairs)) if goes.get(n) != n), len(pairs))


def look_at(asked: Asked, source: Layout, destination: Layout) -> None:
    """The longest run that both have at the same addresses."""
    here, there = table(*source), table(*destination)
    pairs = list(zip(here, there, strict=True))
    due = run_of(pairs)
    got = asked.call("widest", source, destination).number("widest")
    if got == due:
        return
    by_index = next((n for n, (a, b) in enumerate(pairs) if not a == b == n), len(pairs))
    gaps = [next((n for n in range(len(side)) if n not in side), len(side)) for side in (here, there)]
    advice = (
        NEXT_OF_PLACES if got == by_index
        else NEXT_OF_THE_ORDER if got == min(gaps)
        else NEXT_OF_BOTH if got in gaps
        else ""
    )  # fmt: skip
    raise Slip("wrong", f"widest({source}, {destination}): expected {due}, got {got}", advice)


def by_chance(asked: Asked, draw: random.Random) -> None:
    """Two layouts of the same shape: their strides grow in two orders that begin alike."""
    for _ in range(20):
        counts = [draw.choice((2, 2, 3, 4, 8)) for _ in range(draw.randint(1, 4))]
        order = draw.sample(range(len(counts)), len(counts))
        alike = draw.randint(0, len(counts))
        other = order[:alike] + draw.sample(order[alike:], len(counts) - alike)
        source, destination = (
            laid(counts, way, draw.choice((0, 0, 1, 4)), draw.choice((1, 1, 1, 2))) for way in (order, other)
        )
        if draw.random() < 0.3 and len(counts) > 2:
            source = [[counts[:2], *counts[2:]], [source[1][:2], *source[1][2:]]]
        look_at(asked, source, destination)


def laid(counts: Numbers, order: Numbers, pad: int, first: int) -> Layout:
    """Numbers of a coordinate with strides in an order; `pad` places are left after the second of them."""
    steps, step = [0] * len(counts), first
    for nth, at in enumerate(order):
        steps[at] = step
        step = step * counts[at] + (pad if nth == 1 else 0)
    assert math.prod(counts) == len(set(table(counts, steps)))
    return [counts, steps]
