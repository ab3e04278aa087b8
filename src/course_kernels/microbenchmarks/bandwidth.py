"""Bandwidth of the levels close to the arithmetic, in bytes per cycle of the multiprocessor's own clock.

Contract  each function adds up everything it reads, compares the sum with the truth, and refuses a wrong one
Idea      read bandwidth.cu first
Limits    shared and L1: bytes of one multiprocessor over its own cycles, the mean of all of them, while all of them
          read. L2: bytes of the whole card over the cycles of the block that took longest; all do the same work and
          begin together, so this counts a little too many cycles rather than too few
Source    Luo et al. 2024, arXiv:2402.13499; Luo et al. 2025, arXiv:2501.12084
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.microbenchmarks.checked import WrongAnswer, expect, require_gpu, warm_up_and_empty_l2

SOURCE = Path(__file__).with_suffix(".cu")
THREADS, UNROLL, VECTOR_BYTES = 512, 4, 16  # as in bandwidth.cu
BLOCK_BYTES = THREADS * UNROLL * VECTOR_BYTES  # what a block reads in one pass
LEVELS = ("shared", "l1", "l2")
PASSES = {"shared": 512, "l1": 512, "l2": 64}

# Well inside the L2 cache, and inside one half of a divided one. Much less reads a little faster: the same lines are
# wanted by many at once.
L2_FOOTPRINT_BYTES = 16 * 2**20
L2_BLOCKS = 4  # a multiprocessor: 2048 threads, all that a big one holds; fewer do not keep the cache busy


@dataclass(frozen=True)
class Reading:
    """One launch: what every block took and found.

    Attributes:
        cycles: (blocks,) int64, cycles of each block.
        places: (blocks,) int32, the multiprocessor each block ran on.
        total: the sum of all words read, modulo 2**32.
        bytes_of_block: bytes one block read while the clock ran.
    """

    cycles: torch.Tensor
    places: torch.Tensor
    total: int
    bytes_of_block: int


def bytes_per_clock(
    level: str,
    n: int = 20,
    *,
    footprint_bytes: int = L2_FOOTPRINT_BYTES,
    blocks: int = L2_BLOCKS,
    passes: int | None = None,
) -> list[float]:
    """Bytes per cycle that one level of memory hands out.

    Args:
        level: "shared" or "l1", for one multiprocessor; "l2", for the whole card.
        n: samples, one launch each.
        footprint_bytes, blocks: of "l2" only: what is read round and round, and blocks a multiprocessor.
        passes: how often a block reads its 32 KiB; enough to make the start and the end disappear.
    Returns:
        n numbers of bytes per cycle.
    Raises:
        ValueError: an unknown level, n or passes below 1, a footprint that is no multiple of 16.
        WrongAnswer: the sum of what was read is wrong, or a multiprocessor had more than its share of blocks.
    """
    if level not in LEVELS:
        raise ValueError(f"level: expected one of {', '.join(LEVELS)}, got {level!r}")
    passes = PASSES[level] if passes is None else passes
    if n < 1 or passes < 1 or blocks < 1:
        raise ValueError(f"n, passes, blocks: expected at least 1, got {n}, {passes}, {blocks}")
    if footprint_bytes < VECTOR_BYTES or footprint_bytes % VECTOR_BYTES:
        raise ValueError(f"footprint_bytes: expected a multiple of {VECTOR_BYTES}, got {footprint_bytes}")
    require_gpu()
    multiprocessors = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
    grid = multiprocessors * (blocks if level == "l2" else 1)
    vectors = {
        "shared": THREADS * UNROLL,
        "l1": THREADS * UNROLL * grid,
        "l2": footprint_bytes // VECTOR_BYTES,
    }[level]
    words = torch.randint(-(2**31), 2**31, (4 * vectors,), dtype=torch.int32, device="cuda")
    truth = expected_total(level, words, grid, passes)
    warm_up_and_empty_l2()
    samples = []
    for number in range(n + 1):
        reading = read(level, words, grid, passes)
        expect(f"bandwidth of {level}: sum of all words read", reading.total, truth)
        check_places(level, reading.places, multiprocessors)
        if number == 0:
            continue  # the first launch warms the caches
        if level == "l2":
            samples.append(reading.bytes_of_block * grid / int(reading.cycles.max()))
        else:
            samples.append(float((reading.bytes_of_block / reading.cycles.double()).mean()))
    return samples


def read(level: str, words: torch.Tensor, grid: int, passes: int) -> Reading:
    """One launch of `grid` blocks over `words`; see `bytes_per_clock`."""
    cycles = torch.zeros(grid, dtype=torch.int64, device="cuda")
    sums = torch.zeros(grid * THREADS, dtype=torch.int32, device="cuda")
    places = torch.full((grid,), -1, dtype=torch.int32, device="cuda")
    how = np.uint32(words.numel() // 4) if level == "l2" else np.int32(0)  # the vectors, or the nudge
    launch(
        load_kernel(SOURCE, f"read_{level}"),
        grid,
        THREADS,
        words,
        how,
        np.int32(passes),
        cycles,
        sums,
        places,
    )
    return Reading(cycles, places, int(sums.sum(dtype=torch.int64)) % 2**32, BLOCK_BYTES * passes)


def expected_total(level: str, words: torch.Tensor, grid: int, passes: int) -> int:
    """The sum of all words that `grid` blocks read in `passes` passes, modulo 2**32.

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
