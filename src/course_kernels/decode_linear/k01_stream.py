"""A linear layer of a step of decoding, kernel 1: the launcher of k01_stream.cu. Read that file first.

Contract  problem.py, M <= 32; with ROPE that of qkv_rope, but for where positions and angles lie
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, NamedTuple

import torch

from course_kernels.cuda.prepared import Prepared, prepare
from course_kernels.decode_linear.arguments import PIECE, TILE_N, Turned, looked_at, operands, tickets_of
from course_kernels.decode_linear.arguments import supports as supports
from course_kernels.decode_linear.partition import shared_out
from course_kernels.decode_linear.problem import EPSILON

SOURCE = Path(__file__).with_suffix(".cu")
STAGE_BYTES = 2048  # of a warp: 16 rows of 64 numbers
PART = 4 * 32 + 8  # numbers that a block leaves of 8 rows of x


class Room(NamedTuple):
    """Budget of a block.

    Attributes:
        held: pieces of 64 columns whose x a warp keeps in registers: 8 of them for 8 rows and a piece.
        warps: of a block, at most.
        ring: bytes of weights under way, at most.
        resident: blocks of a multiprocessor. Where it is two, the next grid's blocks begin while this one's run, with
            half as many bytes under way in each.
    """

    held: int
    warps: int
    ring: int
    resident: int


# By the rows of x, in eights: one block, and as many weights under way as there is shared memory beside its sums. Bytes
# under way count for more than a start while the grid before still runs.
ROOM = {1: Room(8, 8, 200 * 1024, 1), 2: Room(4, 16, 160 * 1024, 1), 4: Room(2, 16, 128 * 1024, 1)}


class Cut(NamedTuple):
    """Partition of the work: blocks along N and along K, warps of each, pieces a warp copies ahead; see `Room`."""

    blocks: int
    splits: int
    warps: int
    stages: int
    held: int
    resident: int


def cut_of(tiles: int, K: int, room: Room, multiprocessors: int) -> Cut:
    """Return what suits a card with so many multiprocessors: see `shared_out` of partition.py."""
    shares = -(-K // (PIECE * room.held))  # of K, one for each warp
    blocks, splits, warps = shared_out(tiles, shares, room.warps, multiprocessors)
    stages = max(min(room.ring // (STAGE_BYTES * warps), 16), 1)
    return Cut(blocks, splits, warps, stages, room.held, room.resident)


def decode_linear(
    x: torch.Tensor,
    w: torch.Tensor,
    *rest: torch.Tensor,
    norm: bool = False,
    add: bool = False,
    gated: bool = False,
    **how: Any,
) -> torch.Tensor:
    """Return a few rows times the transpose of a matrix, and what stands around it.

    Args:
        x: (M, K) bfloat16 or float16, contiguous, M <= 32, K a multiple of 64.
        w: (N, K), gated (2 N, K), the same type, contiguous, N a multiple of 16.
        rest: with norm g (K,); with add r (M, N).
        norm, add, gated: see problem.py; add and gated exclude each other.
        how: eps, tickets, early, cut: see `start`.
    Returns:
        (M, N), the same type. The same bits every time on one kind of card.
    Raises:
        TypeError, ValueError: see `operands` of arguments.py, and `start`.
    """
    return start(x, **operands(w, rest, norm=norm, add=add, gated=gated), **how)


def start(
    x: torch.Tensor,
    weights: tuple[torch.Tensor, ...],
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
        x, weights, behind, g, r, y, turned: see `looked_at` of arguments.py.
        eps: added to the mean of squares of the norm.
        tickets: int32, at least `tickets_for` of all rows of weights, all zero, and zero again when the call is done:
            calls that come one after the other may share them. Used where K is cut; without them each call then fills
            some of its own, by a kernel before it.
        early: begin while the last kernel of the stream still runs, if that one says when: the weights are asked for
            before it has ended, x and everything else after. That one must not be what writes the weights, or g.
        cut: how to share out the work; without it, what suits the card and the sizes.
    Raises:
        TypeError, ValueError, RuntimeError: see `looked_at` and `tickets_of` of arguments.py; a cut that does not
            hold K.
    """
    call = looked_at(x, weights, behind, g, r, y, turned)
    tiles, eights = call.columns // TILE_N, 1 if call.M <= 8 else 2 if call.M <= 16 else 4
    cut = cut or _cut(tiles, call.K, eights, call.device)
    if cut.splits * cut.warps * cut.held * PIECE < call.K:
        raise ValueError(f"cut: expected one whose warps hold K={call.K} together, got {cut}")
    parts = None
    if cut.splits > 1:
        parts = torch.empty(tiles * cut.splits * eights * PART, dtype=torch.float32, device=x.device)
        tickets = tickets_of(tickets, tiles * eights, x.device)
    kernel = _prepared(call.device, call.float16, eights, cut[2:], g is not None, behind, call.head, early)
    kernel((cut.blocks, cut.splits, 1), *call.arguments(x, weights, tiles, eps), parts, tickets)
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
    warps, stages = block[:2]
    return prepare(
        SOURCE,
        "decode_linear_stream",
        block=32 * warps,
        shared_bytes=warps * (stages * STAGE_BYTES + 2 * eights * 512),
        defines=defines_of(float16, eights, block, norm, behind, head),
        before_the_last_grid_ended=early,
    )
