"""Sizes at the edges of what is announced, on a machine without a card: the smallest ones, and some past the largest.

One dimension at a time. Where it is small, or one of a few sizes, the others are drawn around a tile; where it is
past the largest announced, the others are as small as the contract allows, so that the question stays cheap.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import pairwise

from course_judge.contract import FLAGS, TYPES, bounds_of, counts, joined, kind_of, sizes_of
from course_judge.cpu_sizes import Pace
from course_judge.hidden_sizes import SMALL_BYTES, SMALL_FLOPS
from course_judge.whole_numbers import WHOLE
from course_kernels.problem import Problem, Workload

SMALLEST = 8  # how many of the smallest sizes of a dimension are asked
ALL = 33  # and of one that counts, where there is little else
ABOUT_A_TILE = (15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 192, 255, 256, 257, 320)
AROUND = (8, 48)  # the others beside them
LONG_WALK = 2**20  # numbers, from where on a walk has a stride of its own
GAP = 1.3  # times a size, from where on the next announced one leaves a gap
LARGEST_SHARE = 64  # query heads of a head of keys, by the contracts
FEW = 4  # of a dimension that counts: heads, batches, steps
# How far past the largest announced size, the farthest that can be afforded.
TIMES = (16.0, 8.0, 4.0, 2.0, 1.25, 1.05)
# Problems each of whose answers hangs on a few numbers, however many there are.
ONE_BY_ONE = ("bias_gelu", "grey", "swiglu", "vector_add")
# As far as a tolerance laid out for the announced sizes reaches, where answers are not exact.
TIMES_ROUNDED = (2.0, 1.25, 1.05)
# What a size past the announced ones may cost; where nothing else has a size it may fill more, and where the work
# grows like the square of it, it may work more.
PAST_BYTES, PAST_BYTES_ALONE, PAST_FLOPS, PAST_FLOPS_OF_SQUARES = 2**24, 2**28, 2**28, 6_400_000_000
# What an interpreter has for all of the smallest sizes, and for all past the largest.
SMALLEST_SECONDS, PAST_SECONDS = 4.0, 8.0
# Sizes of one dimension alone that double, in an interpreter: the first, and how many.
FIRST_LONG, DOUBLED = 64, 11
MARGIN = 1.5  # of what a size is guessed to take more than a smaller one
# A sort, and random words of 64 bits, as torch makes them; eight weights in a word. Rounds without a byte of memory.
# Whole blocks: a multiple of whatever size a block may have. Squares of it, and products of three, take less.
BLOCK, BLOCK_OF_SQUARES, SIDE, SIDE_OF_PRODUCTS, DEPTH = 4096, 1024, 1024, 1536, 64
MOST_BLOCKS = 6  # of a dimension: types, and sets of flags
DEAR = {"sampling": 16, "skinny_gemm_w4": 4, "bank_conflicts": 1 / 16, "divergence": 1 / 16}


def smallest(problem: Problem, rng: random.Random) -> tuple[Workload, ...]:
    """Return of each dimension its smallest sizes, those about a tile, and one an octave between the announced ones.

    Counts are asked with every set of flags; and so are types that only the contract names, and many query heads of a
    head of keys.
    """
    found = []
    kinds = dict.fromkeys(map(kind_of, problem.check_on))
    alone = sum(1 for _ in sizes_of(problem)) == 2  # a count, and one size beside it
    for name in sizes_of(problem):
        of = [w for w in problem.check_on if name in w.dims]
        few = counts(problem, name)
        sizes = bounds_of(problem, name).first(ALL if few and alone else SMALLEST)
        for size in sizes:
            found += [_beside(problem, rng.choice(of), {name: size}, rng) for _ in range(1 if few else 2)]
            for kind in kinds if few or name == "M" else ():
                if like := [w for w in of if kind_of(w) == kind]:
                    found.append(_beside(problem, rng.choice(like), {name: size}, rng))
        if not few and not bounds_of(problem, name).only:
            for size in ABOUT_A_TILE:
                size = bounds_of(problem, name).fit(max(size, bounds_of(problem, name).from_))
                # What is padded to a tile shows without a mask alone.
                for each in kinds if ("causal",) in kinds else (None,):
                    like = [w for w in of if each is None or kind_of(w) == each]
                    found += [_beside(problem, rng.choice(like), {name: size}, rng)] if like else []
    found += of_other_types(problem, rng) + of_other_flags(problem, rng)
    rng.shuffle(found)
    # Before there is no time left.
    first = [*of_large_shares(problem, rng), *between(problem, rng)]
    kept = (w for w in dict.fromkeys([*first, *found]) if w not in problem.check_on)
    small = [w for w in kept if _bytes(problem, w) <= SMALL_BYTES and problem.flops(w) <= 4 * SMALL_FLOPS]
    return tuple(dict.fromkeys([*of_whole_blocks(problem, rng), *small]))


def of_whole_blocks(problem: Problem, rng: random.Random) -> list[Workload]:
    """Return sizes that leave no rest, whatever the block: kernels have ways of their own for those.

    Of each dimension one, of each type and each set of flags, the others small; then all that are large at once.
    """
    found = []
    names = [n for n in sizes_of(problem) if not counts(problem, n) and not bounds_of(problem, n).only]
    for name in names:
        kinds: dict[object, list[Workload]] = {}
        for w in problem.check_on:
            if name in w.dims:
                kinds.setdefault((w.dtype, kind_of(w)), []).append(w)
        of = list(map(rng.choice, kinds.values()))
        for like in rng.sample(of, min(len(of), MOST_BLOCKS)):
            block = BLOCK_OF_SQUARES if name == "N" and "causal" in _flags_of(problem) else BLOCK
            found.append(_least_beside(problem, like, name, bounds_of(problem, name).fit(block), rng))
    if len(names) > 1:
        side = SIDE_OF_PRODUCTS if "K" in names else SIDE
        for dtype in dict.fromkeys(w.dtype for w in problem.check_on):
            like = rng.choice([w for w in problem.check_on if w.dtype == dtype])
            dims = {name: bounds_of(problem, name).fit(side) for name in names if name in like.dims}
            if "K" in dims:
                dims["K"] = bounds_of(problem, "K").fit(DEPTH)
            few = _beside(problem, like, {}, rng).dims | dims
            found.append(joined(problem, Workload.of(dtype, **few)))
    return [
        w
        for w in dict.fromkeys(found)
        if w not in problem.check_on
        and _bytes(problem, w) * max(1, DEAR.get(problem.name, 1)) <= PAST_BYTES
        and problem.flops(w) * DEAR.get(problem.name, 1) <= 2 * PAST_FLOPS
    ]


def _flags_of(problem: Problem) -> set[str]:
    return {name for w in problem.check_on for name, _ in w.items if name[0].islower()}


def of_other_types(problem: Problem, rng: random.Random) -> list[Workload]:
    """Return a size of each type that the contract names, and no announced size has."""
    return [
        _beside(problem, Workload.of(dtype, **rng.choice(problem.check_on).dims), {}, rng)
        for dtype in TYPES.get(problem.name, ())
    ]


def of_other_flags(problem: Problem, rng: random.Random) -> list[Workload]:
    """Return a size of each set of flags that the contract allows, and no announced size has."""
    found = []
    for flags in FLAGS.get(problem.name, ()):
        like = rng.choice(problem.check_on)
        dims = {name: size for name, size in like.items if size is not True}
        found.append(_beside(problem, Workload.of(like.dtype, **dims, **dict.fromkeys(flags, True)), {}, rng))
    return found


def between(problem: Problem, rng: random.Random) -> list[Workload]:
    """Return of each dimension sizes in the gaps that its announced ones leave, one an octave, the others small."""
    found = []
    for name in sizes_of(problem):
        bounds = bounds_of(problem, name)
        of = [w for w in problem.check_on if name in w.dims]
        announced = sorted({w.dims[name] for w in of})
        for low, high in pairwise(announced):
            if bounds.only or high <= GAP * low:
                continue
            least = max(low, ABOUT_A_TILE[-1])
            while least + 1 < high:
                size = max(bounds.fit(rng.randint(least + 1, min(2 * least, high - 1))), bounds.from_)
                found.append(_least_beside(problem, rng.choice(of), name, size, rng))
                least *= 2
    return found


def of_large_shares(problem: Problem, rng: random.Random) -> list[Workload]:
    """Return sizes with more query heads of a head of keys than a usual tile has rows."""
    if not any("KV" in w.dims for w in problem.check_on):
        return []
    found = []
    for share in (rng.randint(17, 32), rng.randint(33, 63), LARGEST_SHARE):
        few = _beside(problem, rng.choice(problem.check_on), {}, rng)
        heads = rng.randint(1, 2)
        short = {name: rng.randint(1, 4) for name in ("B", "N") if name in few.dims}
        found.append(Workload.of(few.dtype, **few.dims | short | {"H": share * heads, "KV": heads}))
    return found


def past(
    problem: Problem, rng: random.Random
) -> Iterator[tuple[str, Workload, list[Workload], list[Workload]]]:
    """Yield of each dimension that goes on past its largest announced size a short one, sizes past it, and others.

    The sizes are of one set of flags, the largest first; the others have the other sets, and are as near as can be.
    """
    for name in sizes_of(problem):
        bounds = bounds_of(problem, name)
        # A window hides how long a sequence is from what a size is said to cost.
        windowed = problem.name == "attention_general" and name != "W"
        of = [w for w in problem.check_on if name in w.dims and not (windowed and "W" in w.dims)]
        largest = max(w.dims[name] for w in of)
        if bounds.only or (bounds.most is not None and bounds.most <= largest):
            continue
        further = 1 + rng.uniform(1 / 64, 1 / 32)
        found: dict[tuple[str, ...], list[Workload]] = {}
        for like in rng.sample(of, len(of)):
            if kind_of(like) not in found:
                factors = TIMES if is_exact(problem, like) else TIMES_ROUNDED
                sizes = (bounds.fit(int(largest * times * further) | 1) for times in factors)
                made = dict.fromkeys(_least_beside(problem, like, name, size, rng) for size in sizes)
                fit = [w for w in made if largest < w.dims[name] and _is_affordable(problem, w, name)]
                if fit:
                    found[kind_of(like)] = fit
        # One set of flags as far as it goes, the others just past the announced.
        of_kinds = list(found.values())
        far = of_kinds[0] if of_kinds else []
        short = _least_beside(problem, (far or of)[-1], name, bounds.fit(FIRST_LONG), rng)
        yield name, short, far, [sizes[-1] for sizes in of_kinds[1:]]


class Edges:
    """The questions at the edges of what is announced.

    Attributes:
        past: by dimension, the largest size that was asked of those past the largest announced.
        not_asked: dimensions that go on, and were not asked past the largest announced size.
        late: some of the smallest sizes were left out for the time that they would take.
    """

    def __init__(self, problem: Problem, rng: random.Random) -> None:
        self._problem, self._rng = problem, rng
        self.past: dict[str, int] = {}
        self.not_asked: list[str] = []
        self.late = False

    def ask_smallest(self, ask: Callable[[Workload], None], pace: Pace | None) -> list[Workload]:
        """Ask the smallest sizes, and return those that were asked.

        Args:
            ask: checks one size.
            pace: of a file that an interpreter runs.
        """
        asked: list[Workload] = []
        until = pace.now() + SMALLEST_SECONDS if pace else 0.0
        for w in smallest(self._problem, self._rng):
            if pace and (pace.guess(w) > SMALLEST_SECONDS / 4 or pace.now() > until):
                self.late = True
                continue
            ask(w)
            asked.append(w)
        return asked

    def ask_past(self, ask: Callable[[Workload], None], pace: Pace | None) -> list[Workload]:
        """Ask of each dimension a size past its largest announced, the farthest that there is time for.

        Args:
            ask: checks one size.
            pace: of a file that an interpreter runs.
        """
        asked: list[Workload] = []
        every = list(past(self._problem, self._rng))
        for name, short, sizes, others in every:
            if pace:
                asked += self._longer(name, short, ask, pace, PAST_SECONDS / len(every))
                far = self._far(name, sizes, ask, pace, PAST_SECONDS / len(every))
            else:
                far = [*sizes[:1], *(w for w in others if self._problem.flops(w) <= PAST_FLOPS)]
                for w in far:
                    ask(w)
            asked += far
            if far:
                self.past[name] = max(w.dims[name] for w in far)
            else:
                self.not_asked.append(name)
        return asked

    def _longer(
        self, name: str, like: Workload, ask: Callable[[Workload], None], pace: Pace, seconds: float
    ) -> list[Workload]:
        """Ask sizes that double, for as long as each is quick.

        From what one took the next is guessed: nobody knows beforehand how many programs a long row has.
        """
        asked: list[Workload] = []
        for times in range(DOUBLED):
            long = FIRST_LONG * 2**times + self._rng.randint(1, FIRST_LONG // 16)
            size = bounds_of(self._problem, name).fit(long)
            w = joined(self._problem, Workload.of(like.dtype, **like.dims | {name: size}), name)
            known = asked and w.dims[name] <= asked[-1].dims[name]
            if known or not _is_affordable(self._problem, w, name) or pace.guess(w) > seconds / 2:
                break
            ask(w)
            asked.append(w)
        return asked

    def _far(
        self, name: str, sizes: list[Workload], ask: Callable[[Workload], None], pace: Pace, seconds: float
    ) -> list[Workload]:
        """Ask the nearest, the next, and by the time that they took the farthest that there is time for."""
        if not sizes or pace.guess(sizes[-1]) > 2 * seconds:
            return []
        until, took = pace.now() + seconds, dict[int, float]()
        asked: list[Workload] = []
        rest = sizes[::-1]  # the nearest first
        while rest:
            w = rest[0]
            if len(took) > 1:  # the farthest that there is time for, if it goes on as between the last two
                (a, of_a), (b, of_b) = list(took.items())[-2:]
                more = max(0.0, of_b - of_a) / (b - a)
                fits = [w for w in rest if of_b + MARGIN * more * (w.dims[name] - b) <= seconds]
                if not fits:
                    break
                w = fits[-1]
            elif took and pace.guess(w) > until - pace.now():
                break
            began = pace.now()
            ask(w)
            took[w.dims[name]] = pace.now() - began
            asked.append(w)
            rest = rest[rest.index(w) + 1 :]
        return asked


def is_exact(problem: Problem, w: Workload) -> bool:
    """Return whether no error grows with a size: answers are exact, or one by one, or can be asked in whole numbers."""
    return problem.max_error(w) == 0 or problem.name in WHOLE or problem.name in ONE_BY_ONE


def _beside(problem: Problem, like: Workload, fixed: dict[str, int], rng: random.Random) -> Workload:
    """Return a size with some dimensions fixed, and the others small."""
    dims = like.dims
    for name in dims:
        if not name[0].isupper():
            continue
        bounds = bounds_of(problem, name)
        if bounds.only:
            dims[name] = rng.choice(bounds.only)
        elif counts(problem, name):
            dims[name] = bounds.fit(rng.randint(1, FEW))
        else:
            some = rng.choice((rng.randint(*AROUND), rng.randint(*AROUND), rng.choice(ABOUT_A_TILE)))
            dims[name] = bounds.fit(max(bounds.from_, max(1, some // bounds.step) * bounds.step))
    dims |= fixed
    if "KV" in dims and ("H" in fixed or "KV" in fixed):
        # Heads are few, their shares all there are.
        dims["KV"], share = (
            (rng.randint(1, 3), fixed["H"]) if "H" in fixed else (fixed["KV"], rng.randint(1, 3))
        )
        dims["H"] = dims["KV"] * share
    return joined(problem, Workload.of(like.dtype, **dims), next(iter(fixed), ""))


def _least_beside(problem: Problem, like: Workload, long: str, size: int, rng: random.Random) -> Workload:
    """Return a size with one dimension long, and the others as small as the contract has them."""
    dims = like.dims
    squared = long == "N" and "causal" in dims
    for name in dims:
        if name[0].isupper():
            bounds = bounds_of(problem, name)
            few = 1 if squared and counts(problem, name) else rng.randint(2, 3)
            dims[name] = bounds.fit(max(bounds.from_, few * bounds.step))
    dims[long] = size
    if problem.name == "fused_multiply_add" and long == "K":
        dims["N"] = rng.randint(300, 400)  # of a few, none may show what a long chain loses
    if problem.name == "strided_read" and long == "N" and size > LONG_WALK:
        dims["S"] = rng.randint(1000, 4000)  # most of its laps end where float32 has no odd numbers
        dims[long] = size // dims["S"] * dims["S"]  # or a divisor of it would be all that is left of S
    if "KV" in dims:
        half = size // 2
        dims |= {"H": {"H": 2 * half, "KV": half}, "KV": {"H": size, "KV": size}}.get(long, {"H": 2, "KV": 1})
    if long == "W" and "N" in dims:
        dims["N"] = size + size // 4
    return joined(problem, Workload.of(like.dtype, **dims), long)


def _is_affordable(problem: Problem, w: Workload, long: str) -> bool:
    dear = DEAR.get(problem.name, 1)
    sizes = [name for name in w.dims if name[0].isupper() and name != long]
    alone = long != "S" and all(bounds_of(problem, name).only or name in ("R", "S") for name in sizes)
    flops = PAST_FLOPS_OF_SQUARES if long == "N" and "causal" in w.dims else PAST_FLOPS
    most = PAST_BYTES_ALONE if alone else PAST_BYTES
    return max(1, dear) * _bytes(problem, w) <= most and dear * problem.flops(w) <= flops


def _bytes(problem: Problem, w: Workload) -> int:
    return problem.reads_bytes(w) + problem.writes_bytes(w)
