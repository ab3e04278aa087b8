"""NVFP4 weights, kernel 2: the launcher of k02_fragments.cu. Read that file first.

Contract  problem.py, M <= 32
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import NamedTuple

import torch

from course_kernels.arguments import check_tensor
from course_kernels.cuda.prepared import Prepared, prepare
from course_kernels.problem import Workload
from course_kernels.skinny_gemm_fp4.arguments import sizes_of
from course_kernels.skinny_gemm_fp4.layout import GROUP, TILE_N

SOURCE = Path(__file__).with_suffix(".cu")
MOST_ROWS = 32
GROUP_BYTES = 1024 + 128  # of 16 rows, and their scales
# Under way for each multiprocessor, at most: what memory delivers in the time of one latency. Rings of 48 to 192 KB
# were timed on an H200 with 1, 8 and 16 rows of x; every larger one was slower.
RING_BYTES = 64 * 1024
MOST_STAGES = 16


class Room(NamedTuple):
    """Budget of a block.

    Attributes:
        held: groups of K whose x a warp keeps in registers.
        warps: of a block, at most.
        resident: blocks of a multiprocessor.
        batch: tiles after which the warps meet: so many that each thread has one sum to add.
    """

    held: int
    warps: int
    resident: int
    batch: int

    def defines(self, eights: int, warps: int, stages: int) -> dict[str, int]:
        """Return the macros of a block with so many warps: a large one, which only a caller asks for, is alone."""
        resident = max(min(self.resident, self.warps * self.resident // warps), 1)
        return {
            "EIGHTS": eights,
            "WARPS": warps,
            "STAGES": stages,
            "HELD": self.held,
            "BATCH": self.batch,
            "RESIDENT": resident,
        }

    def shared_bytes(self, eights: int, warps: int, stages: int) -> int:
        """Return what a block has of shared memory: its ring, and the sums of two batches."""
        return warps * (stages * self.held * GROUP_BYTES + 2 * self.batch * eights * 4 * 128)


# By the rows of x, in eights. The lanes of a multiprocessor share 65536 registers: 128 for each of 16 warps, of which
# 64 at most hold x. With 8 rows two blocks of eight warps could be side by side, each with all of 4096 columns; one of
# sixteen, each with fewer of them, was never the slower way. With 32 rows the sums take more, and fewer warps find a
# place.
ROOM = {1: Room(2, 16, 1, 2), 2: Room(2, 16, 1, 2), 4: Room(1, 12, 1, 1)}


class Cut(NamedTuple):
    """Partition of the work: blocks along N and along K, warps of each, tiles that a warp copies ahead."""

    blocks: int
    splits: int
    warps: int
    stages: int


def supports(w: Workload) -> bool:
    """Return whether x has few enough rows to stay in registers."""
    return w.M <= MOST_ROWS


def cut_of(N: int, K: int, eights: int, multiprocessors: int) -> Cut:
    """Return what suits a card with so many multiprocessors.

    As many blocks as there is room for, and K cut where a block cannot hold it all.

    Where there are fewer tiles of 16 rows than blocks, K is cut further, down to four warps a block.
    """
    room = ROOM[eights]
    places = multiprocessors * room.resident
    tiles, shares = N // TILE_N, -(-K // (GROUP * room.held))
    splits = max(-(-shares // room.warps), min(places // tiles, shares // 4), 1)
    warps = -(-shares // splits)
    splits = -(-shares // warps)  # none of them without work
    stages = min(RING_BYTES // (1024 * room.held * warps * room.resident), MOST_STAGES)
    return Cut(max(min(places // splits, tiles), 1), splits, warps, stages)


def skinny_gemm_fp4(
    x: torch.Tensor,
    words: torch.Tensor,
    scales: torch.Tensor,
    second: torch.Tensor,
    *,
    tickets: torch.Tensor | None = None,
    early: bool = False,
    cut: Cut | None = None,
) -> torch.Tensor:
    """Return a few rows times the transpose of NVFP4 weights.

    Args:
        x: (M, K) bfloat16, contiguous, M <= 32, K a multiple of 128.
        words: (N/16, K/64, 32, 4) int32, as `packed` makes them.
        scales: (N/16, K/128, 32, 4) uint8.
        second: (1,) float32.
        tickets: (N/16,) int32, all zero, and zero again when the call is done: calls that come one after the other may
            share them. Used where K is cut; without them each call then fills some of its own, by a kernel before it.
        early: begin while the last kernel of the stream still runs, if that one says when: the weights and their scales
            are then asked for before it has ended, x and everything else after. That one must not be what writes the
            weights or a scale.
        cut: how to share out the work; without it, what suits the card and the sizes.
    Returns:
        (M, N) bfloat16; sums in float32, rounded once. The same bits every time on one kind of card.
    Raises:
        TypeError, ValueError: see `sizes_of`; or tickets of another shape, type or device.
    """
    M, N, K = sizes_of(x, words, scales, second, MOST_ROWS)
    if tickets is not None:
        check_tensor("tickets", tickets, "T", {"T": N // TILE_N}, dtypes=(torch.int32,), device=x.device)
    eights = 1 if M <= 8 else 2 if M <= 16 else 4
    cut = cut or _cut(N, K, eights, x.get_device())
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    parts = None
    if cut.splits > 1:
        size = N // TILE_N * cut.splits * eights * 128
        parts = torch.empty(size, dtype=torch.float32, device=x.device)
        if tickets is None:
            tickets = torch.zeros(N // TILE_N, dtype=torch.int32, device=x.device)
    kernel = _prepared(x.get_device(), eights, cut.warps, cut.stages, early)
    kernel(
        (cut.blocks, cut.splits, 1), x, words, scales, second, y, parts, tickets, M, N // TILE_N, K // GROUP
    )
    return y


@functools.cache
def _cut(N: int, K: int, eights: int, device: int) -> Cut:
    return cut_of(N, K, eights, torch.cuda.get_device_properties(device).multi_processor_count)


@functools.cache
def _prepared(device: int, eights: int, warps: int, stages: int, early: bool) -> Prepared:
    """Return the kernel, ready for the current GPU, which is `device`."""
    room = ROOM[eights]
    return prepare(
        SOURCE,
        "skinny_gemm_fp4_fragments",
        block=32 * warps,
        shared_bytes=room.shared_bytes(eights, warps, stages),
        defines=room.defines(eights, warps, stages),
        before_the_last_grid_ended=early,
    )
