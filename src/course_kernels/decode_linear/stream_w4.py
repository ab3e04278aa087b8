"""A linear layer of a step of decoding with 4-bit weights: the launcher of stream_w4.cu. Read that file first.

Contract  that of k01_stream, M <= 32, K a multiple of 128; the weights are those that four bits make of them
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import NamedTuple

import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.cuda import four_bits
from course_kernels.cuda.four_bits import GROUP, TILE_N
from course_kernels.cuda.prepared import Prepared, prepare
from course_kernels.decode_linear.arguments import (
    DTYPES,
    GATE,
    HEAD_SIZES,
    MATRICES,
    MOST_ROWS,
    ROPE,
    Turned,
    call_of,
    rows_of,
    tickets_of,
)
from course_kernels.decode_linear.partition import shared_out
from course_kernels.decode_linear.problem import EPSILON

SOURCE = Path(__file__).with_suffix(".cu")
HALF = TILE_N // 2  # of a tile: its rows r and r + HALF meet
GROUP_BYTES = 1024 + 128  # of 16 rows, and their scales for each lane
MOST_STAGES = 16
PART = 4 * 32 + 8  # numbers that a block leaves of 8 rows of x


class Packed(NamedTuple):
    """The weights of a call as the kernel reads them, N rows of all matrices together.

    Attributes:
        words: (N/16, K/64, 32, 4) int32.
        scales: (N/16, K/128, 16), the type of x.
    """

    words: torch.Tensor
    scales: torch.Tensor


class Room(NamedTuple):
    """Budget of a block.

    Attributes:
        held: groups of 128 columns whose x a warp keeps in registers: 16 of them for 8 rows and a group.
        warps: of a block, at most.
        ring: bytes of weights under way, at most.
        resident: blocks of a multiprocessor: see k01_stream.Room.
    """

    held: int
    warps: int
    ring: int
    resident: int


# By the rows of x, in eights. One block is on a multiprocessor, and its lanes share 65536 registers: 128 for each of 16
# warps, of which 64 at most hold x; with 32 rows the sums take more, and fewer warps find a place. In the time of one
# latency memory delivers some 45 to 64 KB, so that much must be under way, or as much as there is room for. With few
# rows it is little more on purpose: half of shared memory is then left, the next grid's block moves in beside this one,
# and asks for its own first weights. Tried on an H100: a ring that takes all the room makes the whole step longer.
ROOM = {
    1: Room(4, 14, 76 * 1024, 1),
    2: Room(2, 16, 184 * 1024, 1),
    4: Room(2, 8, 160 * 1024, 1),
}


class Cut(NamedTuple):
    """Partition of the work: blocks along N and along K, warps of each, tiles a warp copies ahead; see `Room`."""

    blocks: int
    splits: int
    warps: int
    stages: int
    held: int
    resident: int


def cut_of(tiles: int, K: int, room: Room, multiprocessors: int) -> Cut:
    """Return what suits a card with so many multiprocessors: see `shared_out` of partition.py."""
    shares = -(-K // (GROUP * room.held))  # of K, one for each warp
    blocks, splits, warps = shared_out(tiles, shares, room.warps, multiprocessors)
    stages = max(min(room.ring // (GROUP_BYTES * room.held * warps), MOST_STAGES), 1)
    return Cut(blocks, splits, warps, stages, room.held, room.resident)


def in_order(weights: tuple[torch.Tensor, ...], behind: int, head: int = HEAD_SIZES[-1]) -> torch.Tensor:
    """Return the rows of all weights of a call in the order in which they meet: rows r and r + 8 of a tile.

    Args:
        weights: what stands behind wants: one, GATE gate and up, ROPE those of queries, keys and values; (N, K) each,
            or whatever else belongs to a row.
        behind: NOTHING or ADD: the rows stay as they are. GATE: 8 rows of the gate, then the same ones of up. ROPE:
            numbers i to i + 7 of a head, then their partners i + head/2.
        head: numbers of a head.
    Returns:
        (N of all, K), the same type; NOTHING and ADD: the very tensor.
    Raises:
        ValueError: more or fewer matrices, gate and up of two sizes, or rows that make no whole tiles or heads.
    """
    if len(weights) != MATRICES[behind]:
        raise ValueError(f"weights: expected {MATRICES[behind]} of them, got {len(weights)}")
    of_each = {GATE: HALF, ROPE: head}.get(behind, TILE_N)
    for w in weights:
        if len(w) % of_each or (behind == GATE and len(w) != len(weights[0])):
            expected = f"a multiple of {of_each}{', the same for both' if behind == GATE else ''}"
            raise ValueError(f"weights: expected (N, K) with N {expected}, got {tuple(w.shape)}")
    if behind == GATE:
        return torch.stack([w.unflatten(0, (-1, HALF)) for w in weights], dim=1).flatten(0, 2)
    if behind == ROPE:
        in_heads = torch.cat(weights).unflatten(0, (-1, 2, head // TILE_N, HALF))
        return in_heads.transpose(1, 2).flatten(0, 3)
    return weights[0]


def packed_for(weights: tuple[torch.Tensor, ...], behind: int, head: int = HEAD_SIZES[-1]) -> Packed:
    """Weights rounded to four bits, in groups of 128 columns, and packed in the order in which they meet.

    Args:
        weights, behind, head: see `in_order`; bfloat16 or float16, which is the type of the scales, N of all a multiple
            of 16, K of 128.
    Raises:
        ValueError: see `in_order`, and `quantised` and `packed` of cuda/four_bits.py.
    """
    rows = in_order(weights, behind, head)
    return Packed(*four_bits.packed(*four_bits.quantised(rows.float(), rows.dtype)))


def start(
    x: torch.Tensor,
    packed: Packed,
    behind: int,
    *,
    g: torch.Tensor | None = None,
    r: torch.Tensor | None = None,
    y: torch.Tensor | None = None,
    turned: Turned | None = None,
    eps: float = EPSILON,
    tickets: torch.Tensor | None = None,
    early: bool = False,
    cut: Cut | None = None,
) -> torch.Tensor:
    """Start the kernel.

    Args:
        x: (M, K) bfloat16 or float16, contiguous, M <= 32, K a multiple of 128.
        packed: the weights, as `packed_for` makes them for what stands behind.
        behind, g, r, y, turned: see `looked_at` of arguments.py. With ROPE the heads of queries are those rows of the
            weights that are not of keys and values, whose number the caches tell.
        eps, tickets, early: see `start` of k01_stream.py.
        cut: how to share out the work; without it, what suits the card and the sizes.
    Returns:
        (M, N), the type of x; ROPE (M, H, D). The same bits every time on one kind of card.
    Raises:
        TypeError, ValueError, RuntimeError: see `check_packed` of cuda/four_bits.py, `looked_at` and `tickets_of` of
            arguments.py; a cut that does not hold K.
    """
    check_tensor("x", x, "MK", {}, dtypes=DTYPES)
    check_size("x", "M", len(x), MOST_ROWS)
    columns = four_bits.check_packed(x, *packed)
    call = call_of(x, rows_of(columns, behind, turned), behind, g, r, y, turned)
    tiles, eights = columns // TILE_N, 1 if call.M <= 8 else 2 if call.M <= 16 else 4
    cut = cut or _cut(tiles, call.K, eights, call.device)
    if cut.splits * cut.warps * cut.held * GROUP < call.K:
        raise ValueError(f"cut: expected one whose warps hold K={call.K} together, got {cut}")
    parts = None
    if cut.splits > 1:
        parts = torch.empty(tiles * cut.splits * eights * PART, dtype=torch.float32, device=x.device)
        tickets = tickets_of(tickets, tiles * eights, x.device)
    kernel = _prepared(call.device, call.float16, eights, cut[2:], g is not None, behind, call.head, early)
    kernel((cut.blocks, cut.splits, 1), x, *packed, *call.around(tiles, eps), parts, tickets)
    return call.y


def tickets_for(columns: int) -> int:
    """Return how many tickets serve any call with so many rows of weights."""
    return columns // TILE_N * max(ROOM)


@functools.cache
def _cut(tiles: int, K: int, eights: int, device: int) -> Cut:
    return cut_of(tiles, K, ROOM[eights], torch.cuda.get_device_properties(device).multi_processor_count)


def defines_of(
    float16: bool, eights: int, block: tuple[int, ...], norm: bool, behind: int, head: int
) -> dict[str, int]:
    """Return the macros of the kernel; `block`: what a Cut says from its warps on."""
    warps, stages, held, resident = block
    return {
        "FLOAT16": int(float16),
        "EIGHTS": eights,
        "WARPS": warps,
        "STAGES": stages,
        "HELD": held,
        "RESIDENT": resident,
        "NORM": int(norm),
        "BEHIND": behind,
        "HEAD": head,
    }


def shared_bytes(eights: int, warps: int, stages: int, held: int) -> int:
    """Dynamic shared memory of a block: its ring, and two sides of its warps' sums."""
    return warps * (stages * held * GROUP_BYTES + 2 * eights * 512)


@functools.cache
def _prepared(
    device: int,
    float16: bool,
    eights: int,
    block: tuple[int, ...],
    norm: bool,
    behind: int,
    head: int,
    early: bool,
) -> Prepared:
    """Return the kernel, ready for the current GPU, which is `device`."""
    warps, stages, held, _ = block
    return prepare(
        SOURCE,
        "decode_linear_w4",
        block=32 * warps,
        shared_bytes=shared_bytes(eights, warps, stages, held),
        defines=defines_of(float16, eights, block, norm, behind, head),
        before_the_last_grid_ended=early,
    )
