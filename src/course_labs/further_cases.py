"""Further cases of a lab with a problem: what its announced sizes leave as it is, drawn anew for every file.

A lab's `further.py` has `further(door, draw, slow)`, which gives them, and `further_alone` for its last task. A file
sees them once it is right so far, and each is asked once. Standard library only.
"""

from __future__ import annotations

import copy
import dataclasses
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import log2
from pathlib import Path
from typing import Any

from course_labs.lab import FURTHER, Lab, load_file

MOST_ERROR = 2.0**-4  # of an answer whose inputs are large: past that it is not the rounding of a score


@dataclass(frozen=True)
class Further:
    """One case.

    Attributes:
        size: a workload as text.
        told: what is special about it, as a complaint names it.
        times: inputs are so many times as large.
        change: changes the inputs in place; they are tensors, or arrays of NumPy.
        without: options that are not given, so that their default counts.
        exact: no rounding is allowed, and the sign of a zero counts.
        slack: so many times the usual error is allowed.
        reference: the truth, where the problem's own formula has none for such inputs.
    """

    size: str
    told: str = ""
    times: int = 1
    change: Callable[..., None] | None = None
    without: tuple[str, ...] = ()
    exact: bool = False
    slack: int = 1
    reference: Callable[..., Any] | None = None

    def of(self, problem: Any) -> Any:
        """Return a problem, or its truth in NumPy, with the inputs and options of this case."""

        def make_inputs(*arguments: Any) -> Any:
            inputs = problem.make_inputs(*arguments)
            if self.times > 1:
                inputs = tuple(x * self.times for x in inputs)
            if self.change:
                self.change(*inputs)
            return inputs

        def options(workload: Any) -> dict[str, Any]:
            given = problem.options(workload).items()
            return {name: value for name, value in given if name not in self.without}

        def max_error(workload: Any) -> float:
            if self.exact:
                return 0.0
            allowed = self.slack * float(problem.max_error(workload))
            return max(allowed, min(allowed * self.times**2, MOST_ERROR))

        return dataclasses.replace(
            problem,
            make_inputs=make_inputs,
            options=options,
            max_error=max_error,
            reference=self.reference or problem.reference,
        )

    @property
    def said(self) -> str:
        """The words after the size in a complaint."""
        parts = [
            self.told,
            *(f"{name} not given" for name in self.without),
            f"inputs times {self.times}" if self.times > 1 else "",
        ]
        return "".join(f", {part}" for part in parts if part)


def further_of(lab: Lab, door: str, slow: bool) -> Callable[[random.Random], Sequence[Further]]:
    """Return what draws the further cases of a lab, or of its last task; nothing for a lab without them.

    Args:
        slow: an interpreter works on each program by itself.
    """
    path: Path = lab.folder / FURTHER
    if not path.is_file():
        return lambda draw: ()
    found = getattr(load_file(path, "lab_further"), "further_alone" if lab.is_alone else "further")

    def drawn(draw: random.Random) -> Sequence[Further]:
        return found(door, draw, slow)  # type: ignore[no-any-return]

    return drawn


# --- cases that several labs have ------------------------------------------------------------------


def every_size(
    size: Callable[..., str],
    dims: int,
    draw: random.Random,
    slow: bool,
    *,
    most: int = 130,
    longest: int = 4200,
    beside: tuple[int, int] = (1, 3),
) -> list[Further]:
    """Return cases of all sizes that tiles up to 64 can tell apart: each dimension alone, and two that are equal.

    Past these some are drawn, as likely between 130 and 260 as between 2000 and 4000.

    Args:
        size: a workload as text, by its dimensions.
        dims: how many there are; of three, equal ones are drawn.
        slow: some of all are drawn, for a door that takes each program by itself.
        most: up to where every size is asked.
        longest: the largest that is drawn for one dimension alone.
        beside: bounds of the other dimensions. Of a product of few numbers one may come out near 0, and its rounding
            is large beside it.
    """
    sizes = sorted(draw.sample(range(1, most + 1), 8)) if slow else list(range(1, most + 1))
    further = [int(2 ** draw.uniform(log2(most), log2(longest))) for _ in range(1 if slow else 4)]
    found = []
    for at in range(dims):
        for one in (*sizes, *further):
            asked = [draw.randint(*beside) for _ in range(dims)]
            asked[at] = one
            found.append(size(*asked))
    # As small as the others may be, and no smaller.
    equal = [one for one in sizes if one >= beside[0]]
    equal = equal if dims == 2 and not slow else draw.sample(equal, min(4, len(equal)))
    for at, other in combinations(range(dims), 2):
        for one in equal:
            asked = [draw.randint(*beside) for _ in range(dims)]
            asked[at] = asked[other] = one
            found.append(size(*asked))
    return [Further(one) for one in dict.fromkeys(found)]


def whole_and_ragged(size: Callable[..., str], tiles: Sequence[int], beside: int) -> list[Further]:
    """Return cases of a product in which some sides are whole tiles and the others are not.

    Code for whole tiles that does not look at every side is wrong for one of them.

    Args:
        beside: how many numbers more than a tile the other sides have.
    """
    return [
        Further(size(*sides))
        for tile in tiles
        for sides in product((tile, tile + beside), repeat=3)
        if len(set(sides)) > 1
    ]


def past_a_group(size: Callable[..., str], draw: random.Random) -> list[Further]:
    """Return cases with a tile more than eight, or sixteen, along one side, and a few along the other.

    Programs that go down eight rows of tiles before they move on leave the last rows to a group that is not full.
    """
    found = []
    for tile in (64, 128):
        many, few = 8 * tile + draw.randint(1, 31), tile + draw.randint(1, 31)
        found += [Further(size(many, few)), Further(size(few, many))]
    return found


def subnormal(size: str) -> Further:
    """Return a case of a product whose first matrix has numbers below the smallest normal one, the other large ones."""

    def change(a: Any, b: Any) -> None:
        a *= 2.0**-130
        b *= 2.0**100

    return Further(size, "A times 2^-130 and B times 2^100", change=change)


def scaled(size: str, by: float) -> Further:
    """Return a case whose inputs are all smaller or larger, where the error grows no more than the answer does."""

    def change(*inputs: Any) -> None:
        for x in inputs:
            x *= by

    return Further(size, f"inputs times {by:g}", change=change)


def opposites(size: str, *, exact: bool = True) -> Further:
    """Return a case of sums of two numbers, of two lists or of neighbours: infinities that cancel, NaN, zeros."""
    inf, nan = float("inf"), float("nan")
    pairs = (
        *((inf, -inf), (-inf, inf), (inf, inf), (-inf, -inf), (inf, 1.0), (-1.0, -inf)),
        *((nan, 1.0), (-1.0, nan), (nan, inf), (1.5, -1.5), (0.0, -0.0), (-0.0, 0.0)),
        *(() if not exact else ((-0.0, -0.0),)),
    )

    def change(x: Any, *others: Any) -> None:
        left, right = (x, others[0]) if others else (x[::2], x[1::2])
        for n in range(len(left)):
            left[n], right[n] = pairs[n % len(pairs)]

    return Further(size, "infinities, NaN and zeros", change=change, exact=exact)


def infinite(size: str, inputs: int) -> list[Further]:
    """Return a case for each input, of a size whose K is one past a tile: infinities before the last number.

    If the rest of the last tile is left as it was, and multiplied by 0, they make NaN; also where several tiles take
    turns, for each row of A, or column of B, has its own, 16 before the one above.

    Args:
        inputs: 1 for A alone, 2 for A and B.
    """

    def into(which: int) -> Callable[..., None]:
        def change(*matrices: Any) -> None:
            K = matrices[0].shape[1]
            for line, k in zip(range(matrices[which].shape[which]), range(K - 2, -1, -16), strict=False):
                matrices[which][(k, line) if which else (line, k)] = float("inf")

        return change

    return [Further(size, f"infinities in {'AB'[which]}", change=into(which)) for which in range(inputs)]


def zeros_and_infinities(size: str) -> Further:
    """Return a case of a product whose every factor meets a 0: what infinities make with it is NaN.

    A is 0 in the first half of K, and B in the second; whoever leaves out what is 0, a tile or a number, finds no NaN.
    Numbers of two parts have an infinity in one of them.
    """

    def change(a: Any, b: Any) -> None:
        K = a.shape[1]
        a[:, : K // 2] = 0.0
        b[K // 2 :] = 0.0
        for line, part in ((0, 0), (1, -1)):
            a.reshape(*a.shape[:2], -1)[line, K - 1, part] = float("inf")
            b.reshape(*b.shape[:2], -1)[0, line, part] = float("inf")

    return Further(size, "infinities that meet zeros", change=change)


def huge_and_tiny(size: str) -> Further:
    """Return a case of a product of usual size: where numbers of A are past 1e30, those of B are about 1e-30."""

    def change(a: Any, b: Any) -> None:
        half = a.shape[1] // 2
        for by, ks in ((2.0**100, slice(half)), (2.0**-100, slice(half, None))):
            a[:, ks] *= by
            b[ks] *= 1 / by

    return Further(size, "numbers past 1e30 times numbers about 1e-30", change=change)


def twins(size: str, draw: random.Random, names: Sequence[str] = ()) -> list[Further]:
    """Return cases of the same inputs but for two neighbours, which change places: in one input, then in the next.

    Shape, sum, largest, first and last number are the same, and so are the other inputs: an answer kept by some of
    these shows.

    Args:
        names: of the inputs, where each of them has its turn; otherwise one does, by chance.
    """
    kept: list[Any] = []
    place = draw.uniform(0.4, 0.6)

    def at(flat: Any) -> int:
        last = len(flat) - 1
        # Neither of the two is among every fourth number: an answer kept by these shows.
        return int(place * (last - 2)) // 4 * 4 + 1 if last > 2 else 0

    def begin(*inputs: Any) -> None:
        for x in inputs:
            x[...] = (16 * x).round() / 16  # so that their sum is the same in any order
            flat = x.reshape(-1)
            flat[0] = 1
            flat[at(flat)] = flat[at(flat) + 1] + 1
        kept[:] = copy.deepcopy(inputs)

    def again(exchanged: int | None) -> Callable[..., None]:
        def change(*inputs: Any) -> None:
            for x, old in zip(inputs, kept, strict=True):
                x[...] = old
            flat = (draw.choice(inputs) if exchanged is None else inputs[exchanged]).reshape(-1)
            one, other = float(flat[at(flat)]), float(flat[at(flat) + 1])
            flat[at(flat)], flat[at(flat) + 1] = other, one

        return change

    told = "the same numbers as before, but for two"
    turns = [
        Further(size, f"{told} of {name} that changed places", change=again(number))
        for number, name in enumerate(names)
    ]
    return [
        Further(size, change=begin),
        *(turns or [Further(size, f"{told} that changed places", change=again(None))]),
    ]
