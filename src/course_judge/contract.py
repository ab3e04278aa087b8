"""Bounds of a problem's dimensions: what its contract, or its kernels, say in words.

A dimension that is announced with an odd size may have any. One that is not takes the announced sizes alone, unless
it stands here.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from course_judge.hidden_sizes import MULTIPLES, equal, free_dims
from course_kernels.problem import Problem, Workload


@dataclass(frozen=True)
class Bounds:
    """Bounds of one dimension.

    Attributes:
        least, most: the smallest and the largest size; without `most` there is no end.
        step: sizes are multiples of it.
        only: all sizes there are, where they are few.
        from_: the smallest size that is asked with usual values: below it what is subtracted may leave nothing.
        each: so many of the smallest sizes are asked, where a dimension is no length but an option.
    """

    least: int = 1
    most: int | None = None
    step: int = 1
    only: tuple[int, ...] = ()
    from_: int = 1
    each: int = 0

    def fit(self, size: int) -> int:
        """Return the largest allowed size up to this one, or the smallest there is."""
        if self.only:
            return max((one for one in self.only if one <= size), default=self.only[0])
        size = size if self.most is None else min(size, self.most)
        return max(self.least, size // self.step * self.step)

    def first(self, count: int) -> list[int]:
        """Return the smallest sizes that are asked, so many of them."""
        if self.only:
            return list(self.only)
        begin = self.fit(max(self.from_, self.least))
        sizes = range(begin, begin + max(count, self.each) * self.step, self.step)
        return [size for size in sizes if self.most is None or size <= self.most]


ANY = Bounds()
HEADS = {"B": ANY, "H": ANY, "KV": ANY}
BOUNDS: dict[str, Mapping[str, Bounds]] = {
    "add_norm": {"N": Bounds(most=16384, from_=8)},
    "attention": {"B": ANY, "H": ANY},
    "attention_backward": {"B": ANY, "H": ANY, "N": Bounds(from_=8)},
    "attention_general": {**HEADS, "W": ANY},
    "bank_conflicts": {"S": Bounds(each=33)},
    "bias_gelu": {"N": Bounds(least=8, step=8)},
    "bytes_in_flight": {"R": Bounds(most=8)},
    # Any filter that is announced must find a place.
    "conv2d": {"B": ANY, "H": Bounds(least=8), "W": Bounds(least=8)},
    "decode_attention": HEADS,
    "decode_linear": {"M": Bounds(most=32), "N": Bounds(least=16, step=16), "K": Bounds(least=64, step=64)},
    "divergence": {"N": Bounds(most=2**24), "W": Bounds(most=32)},
    # Its tolerance is that of chains which are not much longer.
    "fused_multiply_add": {"C": ANY, "K": Bounds(most=12288)},
    "grey": {"X": Bounds(most=32), "Y": Bounds(most=32)},
    # A row of very few columns may come out near 0 as a whole.
    "grouped_gemm": {"G": Bounds(most=32), "N": Bounds(from_=8), "K": Bounds(least=128, step=128)},
    "mla_decode": {"B": ANY, "H": Bounds(most=128)},
    # Of two numbers the variance may be far below their rounding.
    "layer_norm": {"N": Bounds(from_=8)},
    # Of a mean over tokens little may be left; with one number there is none beside it to hold its rounding against.
    "latent_attention": {"B": ANY, "H": ANY, "D": Bounds(from_=4), "R": ANY, "C": Bounds(from_=4)},
    "paged_attention": HEADS,
    "qkv_rope": {"B": Bounds(most=32), "H": ANY, "KV": ANY, "P": ANY},
    "rms_norm": {"N": Bounds(most=16384)},
    "sampling": {"B": ANY},
    "sparse_attention": {"B": ANY, "H": ANY, "H_I": Bounds(most=64)},
    "skinny_gemm": {"M": Bounds(most=128)},
    "skinny_gemm_fp8": {"M": Bounds(most=128)},
    "skinny_gemm_w4": {
        "M": Bounds(most=128),
        "N": Bounds(least=16, step=16),
        "K": Bounds(least=128, step=128),
    },
    "speculative_sampling": {"B": ANY, "K": ANY},
    "strided_read": {"S": ANY},
}
# A dimension that is a multiple of another, and that other: a vector and its stride, heads of queries and of keys.
PAIRS = {
    **{problem: pair for problem, pairs in MULTIPLES.items() for pair in pairs.items()},
    **dict.fromkeys(("attention_general", "decode_attention", "paged_attention", "qkv_rope"), ("H", "KV")),
}
# Names of what may be a count of few, and how many those are at most.
COUNTS, LARGEST_COUNT = ("B", "C", "H", "KV", "X", "Y"), 63
MOST_SHARE = 16  # query heads of a head of keys
# Types that a contract names and no announced size has.
TYPES = {"copy": ("float64", "float8_e5m2")}
# Flags that a contract has side by side, in sets that no announced size has.
FLAGS = {"decode_linear": (("gated",), ("norm", "add"), ("gated", "add"), ("norm", "gated", "add"))}
# Problems all of whose answers have the type of the inputs; elsewhere a by-product may be kept more exactly.
ONE_TYPE = ("attention_backward", "qkv_rope", "rms_norm")


def bounds_of(problem: Problem, name: str) -> Bounds:
    """Return the bounds of a dimension."""
    if (found := BOUNDS.get(problem.name, {}).get(name)) is not None:
        return found
    if name in free_dims(problem, problem.check_on):
        return ANY
    sizes = {w.dims[name] for w in problem.check_on if name in w.dims}
    return Bounds(only=tuple(sorted(sizes)))


def sizes_of(problem: Problem) -> Iterator[str]:
    """Yield the names of a problem's dimensions, flags left out."""
    names = dict.fromkeys(name for w in problem.check_on for name, _ in w.items)
    return (name for name in names if name[0].isupper())


def kind_of(w: Workload) -> tuple[str, ...]:
    """Return the flags of a size, and whether it has a window."""
    return tuple(name for name, size in w.items if size is True or name == "W")


def joined(problem: Problem, w: Workload, name: str = "") -> Workload:
    """Return a size whose dimensions fit together: those that must be multiples of others are, or equal to them.

    Args:
        name: the dimension that keeps its size, as far as it can.
    """
    w = equal(problem, w, name)
    if problem.name not in PAIRS:
        return w
    (many, one), dims = PAIRS[problem.name], w.dims
    if name == many and dims[many] % dims[one]:
        # The largest divisor that is near.
        dims[one] = next(size for size in range(min(dims[one], dims[many]), 0, -1) if not dims[many] % size)
    times = max(1, dims[many] // dims[one])
    if one == "KV":
        times = min(times, MOST_SHARE)
        if name == many:
            dims[one] = next(
                size
                for size in range(max(1, -(-dims[many] // times)), dims[many] + 1)
                if not dims[many] % size
            )
            times = dims[many] // dims[one]
    dims[many] = dims[one] * times
    return Workload.of(w.dtype, **dims)


def counts(problem: Problem, name: str) -> bool:
    """Return whether a dimension is a count: no more than a few heads, batches or steps are announced."""
    largest = max(w.dims.get(name, 0) for w in problem.check_on)
    few = (bounds_of(problem, name).most or LARGEST_COUNT + 1) <= LARGEST_COUNT
    return few or (name in COUNTS and largest <= LARGEST_COUNT)


def square(problem: Problem, size: int, rng: random.Random) -> Workload | None:
    """Return a size all of whose large dimensions are equal, as far as their steps allow; None where one is alone."""
    like = rng.choice(problem.check_on)
    names = [name for name in sizes_of(problem) if name in like.dims and not counts(problem, name)]
    step = max((bounds_of(problem, name).step for name in names), default=1)
    sides: dict[str, int] = {
        name: bounds_of(problem, name).fit(max(size // step * step, step)) for name in names
    }
    return joined(problem, Workload.of(like.dtype, **like.dims | sides)) if len(names) > 1 else None
