"""Bandwidth of the levels of memory, in bytes per cycle of the multiprocessors' own clock and in bytes per second.

Contract  each function adds up everything it reads, compares the sum with the truth, and refuses a wrong one
Idea      read bandwidth.cu first
Limits    shared and L1: bytes of one multiprocessor over its own cycles, the mean of all of them, while all of them
          read. L2, and memory behind it: bytes of the whole card over the time from the first block's start to the
          last one's end, all blocks warm before the first starts. So this counts a little too much time rather than
          too little. Cycles and nanoseconds are read in the same launch: their quotient is the clock it ran at
Source    Luo et al. 2024, arXiv:2402.13499; Luo et al. 2025, arXiv:2501.12084
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.microbenchmarks.checked import (
    WrongAnswer,
    expect,
    require_gpu,
    require_room,
    warm_up_and_empty_l2,
)

SOURCE = Path(__file__).with_suffix(".cu")
THREADS, UNROLL, VECTOR_BYTES = 512, 4, 16  # as in bandwidth.cu
BLOCK_BYTES = THREADS * UNROLL * VECTOR_BYTES  # what a block reads in one pass
LEVELS = ("shared", "l1", "l2")
# At least: some hundred steps of the card's timer, so that its coarseness disappears.
PASSES = {"shared": 2048, "l1": 2048, "l2": 128}
LAPS = 2  # at least, over the whole of what is read: less would not be round and round

# From so many L2 caches on, what the cache keeps from one lap to the next is no part worth a word.
FAR = 64

# Well inside the L2 cache, and inside one half of a divided one. Much less reads a little faster: the same lines are
# wanted by many at once.
L2_FOOTPRINT_BYTES = 16 * 2**20
L2_BLOCKS = 4  # a multiprocessor: 2048 threads, all that a big one holds; fewer do not keep the cache busy


@dataclass(frozen=True)
class Reading:
    """One launch: what every block took and found.

    Attributes:
        times: (blocks, 3) int64: cycles of each block, and the card's nanoseconds at its start and its end.
        places: (blocks,) int32, the multiprocessor each block ran on.
        total: the sum of all words read, modulo 2**32.
        bytes_of_block: bytes one block read while the clocks ran.
    """

    times: torch.Tensor
    places: torch.Tensor
    total: int
    bytes_of_block: int

    @property
    def nanoseconds(self) -> int:
        """Time from the first block's start to the last one's end."""
        return int(self.times[:, 2].max() - self.times[:, 1].min())

    @property
    def sm_mhz(self) -> float:
        """The clock of the multiprocessors: cycles over nanoseconds of a block, the median of all."""
        cycles, began, ended = self.times.double().unbind(1)
        return float((cycles / (ended - began)).median()) * 1e3


@dataclass(frozen=True)
class Rates:
    """Rates of one level of memory, one number of each for every launch.

    Attributes:
        bytes_per_clock: of one multiprocessor for "shared" and "l1", of the whole card for "l2".
        gb_per_s: of the whole card.
        sm_mhz: the clock of the multiprocessors in that launch.
    """

    bytes_per_clock: list[float]
    gb_per_s: list[float]
    sm_mhz: list[float]


def rates(
    level: str,
    n: int = 20,
    *,
    footprint_bytes: int = L2_FOOTPRINT_BYTES,
    blocks: int = L2_BLOCKS,
    passes: int | None = None,
) -> Rates:
    """Return how much one level of memory hands out.

    Args:
        level: "shared" or "l1", or "l2": past L1, from L2 and, for more than it holds, from memory.
        n: samples, one launch each.
        footprint_bytes, blocks: of "l2" only: what is read round and round, at least twice as a whole; and blocks a
            multiprocessor.
        passes: how often a block reads its 32 KiB; enough to make the start and the end disappear.
    Returns:
        n numbers of each kind.
    Raises:
        ValueError: an unknown level, n or passes below 1, a footprint that is no multiple of 16, more blocks than fit
            on the card at once.
        WrongAnswer: the sum of what was read is wrong, a multiprocessor had more than its share of blocks, or the
            card's timer stood still.
    """
    if level not in LEVELS:
        raise ValueError(f"level: expected one of {', '.join(LEVELS)}, got {level!r}")
    if n < 1 or blocks < 1 or (passes is not None and passes < 1):
        raise ValueError(f"n, passes, blocks: expected at least 1, got {n}, {passes}, {blocks}")
    if footprint_bytes < VECTOR_BYTES or footprint_bytes % VECTOR_BYTES:
        raise ValueError(f"footprint_bytes: expected a multiple of {VECTOR_BYTES}, got {footprint_bytes}")
    require_gpu()
    multiprocessors = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
    grid = multiprocessors * (blocks if level == "l2" else 1)
    passes = passes_of(level, footprint_bytes, grid) if passes is None else passes
    vectors = {
        "shared": THREADS * UNROLL,
        "l1": THREADS * UNROLL * grid,
        "l2": footprint_bytes // VECTOR_BYTES,
    }[level]
    words = torch.randint(-(2**31), 2**31, (4 * vectors,), dtype=torch.int32, device="cuda")
    truth = expected_total(level, words, grid, passes)
    warm_up_and_empty_l2()
    found = Rates([], [], [])
    for number in range(n + 1):
        reading = read(level, words, grid, passes)
        expect(f"bandwidth of {level}: sum of all words read", reading.total, truth)
        check_places(level, reading.places, multiprocessors)
        check_timer(level, reading.times)
        if number == 0:
            continue  # the first launch loads the code
        all_bytes = reading.bytes_of_block * grid
        each_clock = all_bytes / reading.nanoseconds / reading.sm_mhz * 1e3
        if level != "l2":
            each_clock = float((reading.bytes_of_block / reading.times[:, 0].double()).mean())
        found.bytes_per_clock.append(each_clock)
        found.gb_per_s.append(all_bytes / reading.nanoseconds)
        found.sm_mhz.append(reading.sm_mhz)
    return found


def limited_by(footprint_bytes: int) -> str:
    """Return what limits reading so much round and round on this card, in the words of `measure/gate.py`.

    Args:
        footprint_bytes: as for `rates`.
    Returns:
        "l2" for what the L2 cache holds; "hbm" for so much that the cache is no part of it; between them "hbm:" and
        the MiB: in every lap the cache may still hold some of it.
    """
    l2_bytes = torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
    if footprint_bytes <= l2_bytes:
        return "l2"
    return "hbm" if footprint_bytes >= FAR * l2_bytes else f"hbm:{footprint_bytes // 2**20}"


def passes_of(level: str, footprint_bytes: int, grid: int) -> int:
    """Count the passes of `grid` blocks: enough for the timer, and of "l2" for `LAPS` laps over the whole footprint."""
    if level != "l2":
        return PASSES[level]
    return max(PASSES[level], -(-LAPS * footprint_bytes // (grid * BLOCK_BYTES)))


def read(level: str, words: torch.Tensor, grid: int, passes: int) -> Reading:
    """Return one launch of `grid` blocks over `words`; see `rates`."""
    times = torch.zeros((grid, 3), dtype=torch.int64, device="cuda")
    sums = torch.zeros(grid * THREADS, dtype=torch.int32, device="cuda")
    places = torch.full((grid,), -1, dtype=torch.int32, device="cuda")
    arrived = torch.zeros(1, dtype=torch.int32, device="cuda")
    # The vectors, or the nudge.
    how: Any = np.uint32(words.numel() // 4) if level == "l2" else np.int32(0)
    kernel = load_kernel(SOURCE, f"read_{level}")
    require_room(kernel, grid, THREADS)
    launch(kernel, grid, THREADS, words, how, np.int32(passes), times, sums, places, arrived)
    return Reading(times, places, int(sums.sum(dtype=torch.int64)) % 2**32, BLOCK_BYTES * passes)


def expected_total(level: str, words: torch.Tensor, grid: int, passes: int) -> int:
    """Return the sum of all words that `grid` blocks read in `passes` passes, modulo 2**32.

    Shared: every block reads all words in each pass. L1: the grid does. L2: load number k of all threads together
    reads vector k modulo their number, so whole laps count all words, and the last one some.
    """
    whole = int(words.sum(dtype=torch.int64))
    if level == "shared":
        return grid * passes * whole % 2**32
    if level == "l1":
        return passes * whole % 2**32
    laps, rest = divmod(grid * THREADS * UNROLL * passes, words.numel() // 4)
    return (laps * whole + int(words[: 4 * rest].sum(dtype=torch.int64))) % 2**32


def check_places(level: str, places: torch.Tensor, multiprocessors: int) -> None:
    """Refuse a launch in which a multiprocessor ran more than its share of the blocks.

    Raises:
        WrongAnswer: one line with the place that had too many.
    """
    ids, counts = places.unique(return_counts=True)
    share = -(-places.numel() // multiprocessors)
    if int(counts.max()) > share:
        crowded = int(ids[counts.argmax()])
        raise WrongAnswer(
            f"bandwidth of {level}: multiprocessor {crowded} ran {int(counts.max())} blocks, expected {share}: "
            "is something else running on this card?"
        )


def check_timer(level: str, times: torch.Tensor) -> None:
    """Refuse a launch in which the card's timer did not move while a block read.

    Raises:
        WrongAnswer: one line with the block.
    """
    took = times[:, 2] - times[:, 1]
    if int(took.min()) <= 0:
        raise WrongAnswer(
            f"bandwidth of {level}: block {int(took.argmin())} took {int(took.min())} ns by the card's timer: "
            "it stands still, or steps too far for so short a reading; take more passes"
        )
