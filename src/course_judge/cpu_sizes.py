"""Sizes asked on a machine without a card, beyond the small ones: as announced, or cut down with their structure kept.

NumPy and torch bear nearly every size that a problem announces. What is too large even for them is asked twice: once
as long as announced and of few heads, once with all its heads and shorter. Triton's interpreter bears less: there the
larger sizes are asked in turn, the cheap ones first, for as long as a limit lasts, and the verdict says how far.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable, Sequence
from math import inf, prod
from pathlib import Path

from course_judge.contract import bounds_of, sizes_of, square
from course_judge.hidden_sizes import (
    LEAST,
    MULTIPLES,
    SMALL_BYTES,
    SMALL_FLOPS,
    equal,
    free_dims,
    in_steps,
    small,
    step_of,
)
from course_kernels.problem import Problem, Workload

# One size, asked as it is announced.
WHOLE_BYTES, WHOLE_FLOPS = 2**27, 2**31
# All of them together; past it a size is asked only if it has a type, a flag or a dimension that no other has.
MOST_BYTES, MOST_FLOPS = 2**27, 2**31
# A size that is cut: with all its heads, and at its full length.
WIDE_FLOPS, DEEP_FLOPS = 2**27, 6_000_000_000
# Dimensions of a size at its full length.
DEEP: dict[str, dict[str, int]] = {
    "attention": {"B": 1, "H": 1},
    "attention_backward": {"B": 1, "H": 1},
    "attention_general": {"B": 2, "H": 2, "KV": 1},
    "fused_multiply_add": {"C": 1},
}
SQUARE = (65, 200)  # past a tile of 64
# Products of whole tiles alone: their sides, in tiles of 64.
TILES, TILE = (4, 6), 64
OF_TILES = ("gemm", "sgemm", "skinny_gemm")
# Programs that go down eight rows of tiles before they move on leave what is past them to a group that is not full.
GROUP, GROUPED_TILES = 8, (128, 256)
GROUPED = (*OF_TILES, "gemm_fp8", "skinny_gemm_fp8", "skinny_gemm_w4", "transpose")
# Products that are long two ways, and not the third: special values are asked on them, too.
TWO_LONG, THIRD = (530, 720), (17, 32)
# Sums so long that float16 loses what is added to them, even where a tile takes 64 products in one step.
LONG_SUM = 5120
OF_LONG_SUMS = ("decode_linear", "gemm", "skinny_gemm")
# Of the usual error, in float32 on a size that is not small: torch adds long rows up one after the other on a CPU.
SLACK = 4.0
# Past 2**24 float32 has no odd whole numbers: an index that is worked out in it loses its place.
MANY, MOST_MANY_BYTES = 2**24, 2**29
SHORT_ROWS = (200, 1000)  # so that few programs have many ends of them
OF_MANY = (
    *("add_norm", "bias_gelu", "bytes_in_flight", "copy", "divergence", "grey", "rms_norm", "softmax"),
    *("swiglu", "transpose", "vector_add"),
)
# What can be cut where no odd size is announced: in steps, as the announced ones are multiples of one.
IN_STEPS = {"bias_gelu": ("N",), "decode_linear": ("N", "K"), "skinny_gemm_w4": ("N", "K")}
INTERPRETER_SECONDS = 18.0  # for all larger sizes of a file with Triton's kernels


class TooSmall(ValueError):
    """Error: a size cannot be cut any further."""


def cost(problem: Problem, w: Workload) -> float:
    """Return the cost of a question, in units of the largest that is asked of an interpreter without a thought."""
    return max(_bytes(problem, w) / SMALL_BYTES, problem.flops(w) / SMALL_FLOPS)


def larger(problem: Problem, rng: random.Random) -> tuple[Workload, ...]:
    """Return the sizes that are announced and not small, the cheap ones first; what is too large is cut."""
    asked = list(small(problem))
    rest = [w for w in problem.check_on if w not in asked]
    whole = [w for w in rest if is_affordable(problem, w)]
    rng.shuffle(whole)
    found: list[Workload] = []
    facts = {fact for w in asked for fact in _facts(w)}
    for w in whole:
        if not facts.issuperset(_facts(w)):
            found.append(w)
            facts.update(_facts(w))
    for w in whole:
        together = [*found, w]
        within = sum(_bytes(problem, one) for one in together) <= MOST_BYTES
        if w not in found and within and sum(map(problem.flops, together)) <= MOST_FLOPS:
            found.append(w)
    found += _cut(problem, [w for w in rest if not is_affordable(problem, w)], rng)
    return tuple(sorted(dict.fromkeys(found), key=lambda w: cost(problem, w)))


def drawn(problem: Problem, rng: random.Random) -> tuple[Workload, ...]:
    """Return sizes that nobody announced: one of about the largest, and a square one past a tile."""
    found = []
    names = free_dims(problem, problem.check_on)
    large = [w for w in larger(problem, rng) if any(name in w.dims for name in names)]
    if large and problem.name not in MULTIPLES:
        like = rng.choice(large[-3:])
        dims = {
            name: in_steps(max(LEAST, int(size * rng.uniform(0.55, 1.0))), step_of(problem.check_on, name))
            for name, size in like.dims.items()
            if name in names and size > LEAST
        }
        found.append(equal(problem, Workload.of(like.dtype, **like.dims | dims)))
    if problem.name not in MULTIPLES and (sides := square(problem, rng.randint(*SQUARE), rng)):
        found.append(sides)
    return tuple(w for w in found if w not in problem.check_on and is_affordable(problem, w))


def of_whole_tiles(problem: Problem, rng: random.Random) -> list[Workload]:
    """Return a size of a product all whose sides are whole tiles, where code for such may lie beside the rest."""
    if problem.name not in OF_TILES:
        return []
    like = rng.choice(problem.check_on)
    dims = {name: bounds_of(problem, name).fit(TILE * rng.randint(*TILES)) for name in ("M", "N", "K")}
    return [Workload.of(like.dtype, **like.dims | dims)]


def past_a_group(problem: Problem, rng: random.Random) -> list[Workload]:
    """Return sizes with one tile more than a group of them along one side, and one more than a tile along the other.

    A number past eight tiles of 128 is one past sixteen of 64 as well, and one past 32 of 32.
    """
    if problem.name not in GROUPED:
        return []
    found = []
    for tile in GROUPED_TILES:
        many, few = GROUP * tile + rng.randint(1, 16), tile + rng.randint(1, 16)
        for sides in ({"M": many, "N": few}, {"M": few, "N": many}):
            like = rng.choice(problem.check_on)
            asked = sides | ({"K": rng.randint(17, 32)} if "K" in like.dims else {})
            dims = {name: bounds_of(problem, name).fit(size) for name, size in asked.items()}
            found.append(Workload.of(like.dtype, **like.dims | dims))
    return found


def of_two_long(problem: Problem, rng: random.Random) -> list[Workload]:
    """Return products of which two dimensions are long, and the third is short."""
    if problem.name not in GROUPED or problem.name == "transpose":
        return []
    found = []
    for short in ("M", "N", "K"):
        like = rng.choice(problem.check_on)
        sides = {name: rng.randint(*(THIRD if name == short else TWO_LONG)) for name in ("M", "N", "K")}
        dims = {name: bounds_of(problem, name).fit(size) for name, size in sides.items()}
        found.append(Workload.of(like.dtype, **like.dims | dims))
    return found


def of_many_numbers(problem: Problem, rng: random.Random) -> list[Workload]:
    """Return a size of more numbers than float32 can count, in many short rows where it has any."""
    if problem.name not in OF_MANY:
        return []
    least = min(w.element_bytes for w in problem.check_on)
    like = rng.choice([w for w in problem.check_on if w.element_bytes == least])
    free = {*free_dims(problem, problem.check_on), *IN_STEPS.get(problem.name, ())}
    names = [name for name in sizes_of(problem) if name in free and name in like.dims]  # rows before columns
    dims, left = like.dims, MANY + rng.randint(1, MANY // 16)
    for name in names[1:]:
        dims[name] = bounds_of(problem, name).fit(rng.randint(*SHORT_ROWS))
        left = -(-left // dims[name])
    for size in (left, left // 4):
        dims[names[0]] = bounds_of(problem, names[0]).fit(size)
        found = Workload.of(like.dtype, **dims)
        if problem.flops(found) <= WHOLE_FLOPS:
            break
    return [found] if _bytes(problem, found) <= MOST_MANY_BYTES else []


def of_long_sums(problem: Problem, rng: random.Random) -> list[Workload]:
    """Return a size of float16 whose sums are longer than those of any announced size."""
    if problem.name not in OF_LONG_SUMS:
        return []
    dims: dict[str, int] = {"M": rng.randint(1, 16), "N": 16 * rng.randint(1, 3), "K": LONG_SUM}
    flags = {name: False for w in problem.check_on for name, size in w.items if size is True}
    return [Workload.of("float16", **dims, **flags)]


def reached(problem: Problem, asked: Iterable[Workload], interpreted: bool, late: bool) -> str:
    """Return which of the announced sizes were asked, and how large, in words.

    Args:
        interpreted: the file names Triton, whose kernels an interpreter runs.
        late: sizes were left out for the time that they would take.
    """
    asked = tuple(asked)
    announced = sum(w in asked for w in problem.check_on)
    names = dict.fromkeys(name for w in problem.check_on for name, size in w.items if size is not True)
    far = []
    for name in names:
        of = [max((w.dims.get(name) or 0) for w in some) for some in (asked, problem.check_on)]
        if of[1] > 1:
            far.append(f"{name} = {of[0]}" + (f" of {of[1]}" if of[0] < of[1] else ""))
    every = len(problem.check_on)
    of_all = f"all {every} sizes" if announced == every else f"{announced} of {every} sizes"
    left = "; of larger ones, which would take too long, few programs of each launch were run" if late else ""
    return f"{ran(interpreted)}: {of_all} announced, as far as {', '.join(far)}{left}"


def ran(interpreted: bool) -> str:
    """Return how a file was run on a machine without a card."""
    return "without a card, Triton's kernels in its interpreter" if interpreted else "without a card"


def names_triton(file: Path) -> bool:
    """Return whether a file, or one beside it that it imports, may have kernels that Triton's interpreter runs."""
    try:
        text = file.read_bytes().decode(errors="replace")
        names = re.findall(r"^\s*(?:from|import)\s+(\w+)", text, re.MULTILINE)
        beside = [file.parent / f"{name}.py" for name in names if len(name) < 100]
        return "triton" in text or any(
            "triton" in one.read_text(errors="replace") for one in beside if one.is_file()
        )
    except OSError:
        return False


class Pace:
    """Seconds of a question, of a file that an interpreter runs: guessed from those that were asked.

    They hang on how many programs a launch has, which nobody but the file knows. So nothing is taken to be quicker
    than another because it is shorter in one dimension, and longer in another.

    Attributes:
        now: reads the clock.
    """

    def __init__(self, problem: Problem, now: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            now: reads the clock by which all are asked, in seconds.
        """
        self._problem, self._seen, self.now = problem, dict[Workload, float](), now

    def note(self, workload: Workload, seconds: float) -> None:
        """Note how long a call took."""
        self._seen[workload] = seconds

    def guess(self, workload: Workload) -> float:
        """Return what a call takes at most, as far as can be told; infinity where nothing was asked yet."""
        if workload in self._seen:
            return self._seen[workload]
        return min((s * self._times(workload, w) for w, s in self._seen.items()), default=inf)

    def _times(self, workload: Workload, known: Workload) -> float:
        """Return how many times another size is more work, at most."""
        longer = prod(
            max(1.0, size / known.dims.get(name, 1)) for name, size in workload.items if name[0].isupper()
        )
        return max(longer, cost(self._problem, workload) / cost(self._problem, known))

    def fit(self, workload: Workload, seconds: float) -> Workload | None:
        """Return a size, cut until a call takes no longer than this; None where it is not to be had by that."""
        try:
            return cut_until(self._problem, workload, lambda w: self.guess(w) <= seconds)
        except TooSmall:
            return None


class InTurn:
    """The larger sizes of a file that an interpreter runs, for as long as the limit lasts.

    Attributes:
        late: sizes were left out, or cut down.
    """

    def __init__(self, problem: Problem, ask: Callable[[Workload], None], pace: Pace) -> None:
        """
        Args:
            ask: checks one size, and notes how long a call took.
            pace: what is known of sizes that were asked before.
        """
        self._problem, self._ask, self._pace, self.late = problem, ask, pace, False
        self._left = INTERPRETER_SECONDS

    def ask(self, workload: Workload) -> tuple[Workload, ...]:
        """Ask a size, or what the time allows of it: return what was asked."""
        asked = []
        if not self._is_in_time(workload):
            self.late = True
            less = self._pace.fit(workload, self._left / 6)
            if less is None or less == workload:
                return ()
            self._time(less)
            asked.append(less)
        if self._is_in_time(workload):
            self._time(workload)
            asked.append(workload)
        return tuple(asked)

    def _is_in_time(self, workload: Workload) -> bool:
        return self._pace.guess(workload) <= self._left / 2

    def _time(self, workload: Workload) -> None:
        began = self._pace.now()
        self._ask(workload)
        self._left -= self._pace.now() - began


def cut_to(problem: Problem, w: Workload, most: float) -> Workload:
    """Return a size with its largest free dimensions made smaller, until it costs at most so much.

    Raises:
        TooSmall: it is not to be had by that.
    """
    return cut_until(problem, w, lambda w: cost(problem, w) <= most)


def cut_until(problem: Problem, w: Workload, fits: Callable[[Workload], bool]) -> Workload:
    """Return a size with its largest free dimensions made smaller, until it fits.

    Raises:
        TooSmall: it is not to be had by that.
    """
    names = [*free_dims(problem, problem.check_on), *IN_STEPS.get(problem.name, ())]
    names = [name for name in names if name in w.dims]
    while not fits(w):
        if problem.name in MULTIPLES:
            raise TooSmall(w.label)
        name = max(names, key=lambda name: w.dims[name], default="")
        if not name or w.dims[name] <= 2 * LEAST:
            raise TooSmall(w.label)
        less = in_steps(w.dims[name] * 3 // 4 | 1, step_of(problem.check_on, name))
        if less >= w.dims[name]:
            raise TooSmall(w.label)
        w = equal(problem, Workload.of(w.dtype, **w.dims | {name: less}))
    return w


def _cut(problem: Problem, workloads: Sequence[Workload], rng: random.Random) -> list[Workload]:
    """Return what is too large, with all its heads and shorter; and of each set of flags one at its full length."""
    found = []
    for w in workloads:
        try:
            found.append(cut_to(problem, w, WIDE_FLOPS / SMALL_FLOPS * rng.uniform(0.4, 1.0)))
        except TooSmall:
            continue
    less = DEEP.get(problem.name, {})
    deep = [
        Workload.of(w.dtype, **w.dims | {k: v for k, v in less.items() if k in w.dims}) for w in workloads
    ]
    for flags in dict.fromkeys(_flags(w) for w in deep):
        of = [w for w in deep if _flags(w) == flags and problem.flops(w) <= DEEP_FLOPS]
        if of:
            found.append(rng.choice(of))
    return found


def _flags(w: Workload) -> tuple[str, ...]:
    return tuple(name for name, value in w.items if value is True)


def _facts(w: Workload) -> set[object]:
    return {w.dtype, *_flags(w), *((name, value) for name, value in w.items)}


def is_affordable(problem: Problem, w: Workload) -> bool:
    """Return whether NumPy and torch bear a size as it is announced."""
    return _bytes(problem, w) <= WHOLE_BYTES and problem.flops(w) <= WHOLE_FLOPS


def _bytes(problem: Problem, w: Workload) -> int:
    return problem.reads_bytes(w) + problem.writes_bytes(w)
