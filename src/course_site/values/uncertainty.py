"""Uncertainty of a number: what the blocks of one run tell, and what no run can see of itself.

A stated interval answers one question: where would the same measurement, made again, put its median?

One run is taken in blocks: for each, memory is allocated anew. How far the blocks lie apart says part of it.
Another card, or another day, differs by more than that, and no run can see it; so the same pages measured twice
leave a record of how far they lay apart (`run_history.py`), and that is added as a term of its own: a part that moves
all numbers of a page together, and a part that every number has to itself.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

RESAMPLES = 1000

Leaf = dict[str, Any]

# A timing below this is mostly a launch and a first trip to memory: it differs more from card to card.
SHORT_US = 30.0

# Until three cards were compared: what five pages taught that were measured again on a second one.
UNSEEN_COMMON, UNSEEN_OWN = 0.02, 0.01
CARDS_ENOUGH = 3
# Two runs can agree by luck, never by more than a clock's own steps.
LEAST = 0.002

# Single numbers that differ from run to run. Others that were counted or asked of the card do not: registers, bytes.
FOUND = ("counted", "device", "timed")
VARYING = (
    "s",
    "ms",
    "µs",
    "ns",
    "cycles",
    "J",
    "W",
    "MHz",
    "GB/s",
    "TB/s",
    "B/clk",
    "TFLOP/s",
    "GFLOP/s",
    "FLOP/clk",
)


@dataclass(frozen=True)
class BetweenRuns:
    """Distance of two runs made apart: standard deviations of the difference of logarithms, by kind.

    Attributes:
        common: what moves all numbers of a page together; where fewer than `CARDS_ENOUGH` cards are known to be
            among the runs of a kind, `UNSEEN_COMMON` at least.
        own: what every number has to itself.
        runs: how many runs of a page this was learnt from; 0 where nothing was.
        cards: how many different cards are known to be among them.
    """

    common: Mapping[str, float] = field(default_factory=dict)
    own: Mapping[str, float] = field(default_factory=dict)
    runs: int = 0
    cards: int = 0

    def of(self, kind: str) -> tuple[float, float]:
        """Return the two parts for a kind; what an unseen card may bring where nothing was learnt of it."""
        common, own = self.common.get(kind), self.own.get(kind)
        if common is None or own is None:
            return UNSEEN_COMMON, UNSEEN_OWN
        return max(common, LEAST), max(own, LEAST)


def kind_of(leaf: Leaf) -> str | None:
    """Return which between-runs term a recorded leaf has; None for what does not differ from run to run."""
    if leaf["kind"] == "measurement":
        if 2 * leaf.get("host_bound", 0) > leaf["n"]:
            return "host"
        return "timing" if leaf["quantiles_us"]["0.5"] >= SHORT_US else "short timing"
    if leaf["kind"] == "samples":
        return f"samples {leaf['how']}"
    if leaf["kind"] == "counted":
        return "traffic"
    if leaf["kind"] == "quantity" and leaf["how"] in FOUND and leaf["unit"] in VARYING:
        return f"quantity {leaf['how']} in {leaf['unit']}"  # a wait of seconds says nothing of a clock
    return None


def factors(
    leaf: Leaf, *, name: str, run: str, terms: BetweenRuns | None, kind: str | None = None
) -> np.ndarray | None:
    """Return what to multiply a leaf's median by to get `RESAMPLES` medians of another run; None where nothing varies.

    Competitors of one group are drawn together, block by block, so that what slowed all of them in one block
    cancels in their ratio. What moves a whole run together cancels likewise between names of one run.

    Args:
        leaf: a recorded leaf, as plain data.
        name: its name; the part that is its own is drawn by it.
        run: what tells the run from others, such as the page and its date.
        terms: what is known of runs made apart; None leaves that out.
        kind: instead of `kind_of(leaf)`.
    """
    blocks = leaf.get("blocks_us") or leaf.get("blocks") or ()
    logs = _within(str(leaf.get("group", name)), tuple(blocks)) if len(blocks) > 1 else None
    kind = kind or kind_of(leaf)
    if terms is not None and kind is not None:
        common, own = terms.of(kind)
        apart = common * _normal(f"{run}|{_family(kind)}") + own * _normal(f"{run}|{kind}|{name}")
        logs = apart if logs is None else logs + apart
    if logs is None:
        return None
    with np.errstate(over="ignore"):  # two blocks say little: the tail of what they leave open knows no end
        return np.exp(logs)


def _family(kind: str) -> str:
    """Return the family of a kind: timings of any length follow the same clocks."""
    return "timing" if kind.endswith("timing") else kind


@functools.lru_cache(maxsize=4096)
def _within(group: str, blocks: tuple[float, ...]) -> np.ndarray:
    """Logarithms around 0: how far another run's mean over as many blocks lies from this one's, by Student's t.

    Weights belong to the group and the number of blocks, so that they are the same for all competitors of it.
    """
    values = np.log(np.asarray(blocks, dtype=float))
    weights = _weights(group, len(values))
    return weights @ (values - values.mean())


@functools.lru_cache(maxsize=1024)
def _weights(group: str, n: int) -> np.ndarray:
    random = np.random.default_rng(_seed(group))
    normal = random.standard_normal((RESAMPLES, n))
    normal *= np.sqrt(2 / (n * (n - 1)))  # two means of n blocks: ours, and the other run's
    tail = np.sqrt((n - 1) / random.chisquare(n - 1, (RESAMPLES, 1)))
    return np.asarray(normal * tail)


@functools.lru_cache(maxsize=8192)
def _normal(key: str) -> np.ndarray:
    return np.random.default_rng(_seed(key)).standard_normal(RESAMPLES)


def _seed(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)


def interval(resamples: np.ndarray) -> tuple[float, float]:
    """Return the central 95 of 100 resamples: the interval that a page states."""
    low, high = np.quantile(resamples, [0.025, 0.975])
    return float(low), float(high)
