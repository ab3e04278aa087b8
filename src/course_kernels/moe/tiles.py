"""Tiles of a multiply over all experts: how they are cut, and how many there are at most."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton


@dataclass(frozen=True)
class Tile:
    """Tile shape.

    Attributes:
        block_m: rows of a tile: choices of one expert.
        block_n: rows of the weights that a tile is multiplied with; where they are gate and up, half of them each.
        block_k: numbers of a row in one step.
        warps: warps of a program.
        stages: steps whose tiles are on their way or in use.
    """

    block_m: int
    block_n: int
    block_k: int
    warps: int
    stages: int


# By rows. Few: bytes under way are what counts. 16 KB of weights a step, as in skinny_gemm, three steps in shared
# memory and three programs on a multiprocessor. From 64 on a warpgroup multiplies; 128 x 256 sums are half of the
# registers of 256 threads, and four steps of 48 KB fit into 227 KB.
HOPPER = {
    16: Tile(16, 64, 128, warps=4, stages=4),
    32: Tile(32, 64, 128, warps=4, stages=4),
    64: Tile(64, 128, 64, warps=4, stages=4),
    128: Tile(128, 256, 64, warps=8, stages=4),
}

# Everything else, and rows that the copy engine does not take: sized for 99 KB of shared memory.
GENERIC = {
    16: Tile(16, 64, 128, warps=4, stages=3),
    32: Tile(32, 64, 128, warps=4, stages=3),
    64: Tile(64, 128, 32, warps=4, stages=3),
    128: Tile(128, 128, 32, warps=8, stages=3),
}


def tile_for(choices: int, experts: int, by_copy_engine: bool) -> Tile:
    """Return the tile for so many choices.

    Twice the mean of an expert, made up to a power of two: so most experts are one tile high, and their weights come
    once. The host knows no more than the mean.
    """
    rows = min(max(triton.next_power_of_2(triton.cdiv(2 * choices, experts)), 16), 128)
    return (HOPPER if by_copy_engine else GENERIC)[rows]


def most_tiles(choices: int, experts: int, block_m: int) -> int:
    """Return how many tiles high all experts together are at most, however the choices fall.

    Each expert that has any may leave its last tile unfilled but for one row.
    """
    hit = min(choices, experts)
    return hit + (choices - hit) // block_m


def by_copy_engine(*tensors: torch.Tensor) -> bool:
    """Return whether tiles can come by TMA: a Hopper, and every row at a multiple of 16 bytes."""
    aligned = all(t.data_ptr() % 16 == 0 and t.shape[-1] * t.element_size() % 16 == 0 for t in tensors)
    return aligned and tensors[0].is_cuda and torch.cuda.get_device_capability(tensors[0].device) == (9, 0)
