"""Coordinates of a launch: the block, thread, warp, lane and multiprocessor of every thread of a launch.

Contract  every thread of the grid answers once, and its lane is its number in the block modulo 32
Idea      read coordinates.cu first
Source    PTX ISA, chapter on special registers
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
import torch

from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.microbenchmarks.checked import WrongAnswer, require_gpu

SOURCE = Path(__file__).with_suffix(".cu")
WARP = 32
MOST_THREADS = 2**24
LARGEST_GRID = (2**31 - 1, 65535, 65535)
LARGEST_BLOCK = (1024, 1024, 64)

Size = int | tuple[int, ...]


@dataclass(frozen=True)
class Coordinates:
    """One row for every thread: blocks in order (x fastest, then y, then z), in each its threads in the same order.

    Attributes:
        block: (threads, 3) int32, blockIdx as x, y, z.
        thread: (threads, 3) int32, threadIdx as x, y, z.
        warp: (threads,) int32, the number of the warp in its block.
        lane: (threads,) int32, the place in the warp, as the card reports it.
        sm: (threads,) int32, the multiprocessor the thread ran on, as the card reports it.
    """

    block: np.ndarray
    thread: np.ndarray
    warp: np.ndarray
    lane: np.ndarray
    sm: np.ndarray


def coordinates(grid: Size, block: Size) -> Coordinates:
    """Launch `grid` blocks of `block` threads and let every thread say who it is.

    Args:
        grid, block: one to three sizes, x first: 6, (3, 2), (2, 2, 2).
    Returns:
        a row for every thread.
    Raises:
        TypeError: a size that is no whole number.
        ValueError: not one to three sizes, one out of range, or more than 2**24 threads.
        WrongAnswer: a thread did not answer, or not as itself.
    """
    grid3, block3 = three("grid", grid, LARGEST_GRID), three("block", block, LARGEST_BLOCK)
    if prod(block3) > 1024:
        raise ValueError(f"block: expected at most 1024 threads, got {prod(block3)}")
    threads = prod(grid3) * prod(block3)
    if threads > MOST_THREADS:
        raise ValueError(f"grid: expected at most {MOST_THREADS} threads in all, got {threads}")
    require_gpu()
    rows = torch.full((threads, 9), -1, dtype=torch.int32, device="cuda")
    launch(load_kernel(SOURCE, "coordinates"), grid3, block3, rows)
    return checked(rows.cpu().numpy(), grid3, block3)


def checked(rows: np.ndarray, grid: tuple[int, int, int], block: tuple[int, int, int]) -> Coordinates:
    """Return the answers of all threads as `Coordinates`, if every thread answered as itself.

    Raises:
        WrongAnswer: the first row that is not what its place says.
    """
    index = np.arange(len(rows))
    in_block = index % prod(block)
    who = np.stack(
        [*_split(index // prod(block), grid), *_split(in_block, block), in_block // WARP, in_block % WARP], 1
    )
    wrong = np.flatnonzero((rows[:, :8] != who).any(axis=1) | (rows[:, 8] < 0))
    if wrong.size:
        at = int(wrong[0])
        raise WrongAnswer(
            f"coordinates: row {at}: expected {who[at].tolist()} and a multiprocessor, got {rows[at].tolist()}"
        )
    return Coordinates(rows[:, :3], rows[:, 3:6], rows[:, 6], rows[:, 7], rows[:, 8])


def three(name: str, size: Size, largest: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return a size in three dimensions; TypeError or ValueError says what is wrong with it."""
    sizes = size if isinstance(size, tuple) else (size,)
    if not all(isinstance(s, int) and not isinstance(s, bool) for s in sizes):
        raise TypeError(f"{name}: expected whole numbers, got {size!r}")
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"{name}: expected one to three sizes, got {size!r}")
    x, y, z = (*sizes, 1, 1)[:3]
    if not all(1 <= s <= most for s, most in zip((x, y, z), largest, strict=True)):
        raise ValueError(f"{name}: expected sizes from 1 to {largest}, got {size!r}")
    return x, y, z


def _split(index: np.ndarray, sizes: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x, y, _ = sizes
    return index % x, index // x % y, index // (x * y)
