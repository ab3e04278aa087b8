"""A linear layer of a step of decoding, kernel 2: the launcher of k02_even.cu. Read that file first.

Contract  problem.py, M <= 32; with ROPE that of qkv_rope, but for where positions and angles lie
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, NamedTuple

import torch

from course_kernels.cuda.prepared import Prepared, prepare
from course_kernels.decode_linear import by_tma
from course_kernels.decode_linear.arguments import PIECE, Turned, looked_at, operands, tickets_of
from course_kernels.decode_linear.arguments import supports as supports
from course_kernels.decode_linear.by_tma import HALF, THREADS, Kind
from course_kernels.decode_linear.problem import EPSILON

SOURCE = Path(__file__).with_suffix(".cu")
LEAST_BOXES = 4  # of a block: fewer, and what stands around them costs more than they do


class Plan(NamedTuple):
    """Partition of the work: blocks, each with the same number of boxes to within one, and boxes under way."""

    blocks: int
    stages: int


def shared_bytes_of(rows: int, stages: int) -> int:
    """Shared memory of a block: the ring, the sums of a tile, two sides of squares, and their barriers."""
    return by_tma.ring_bytes(rows, stages) + 2 * HALF * (rows + 1) * 4 + 2 * rows * 4 + 2 * 8


def plan_of(tiles: int, pieces: int, rows: int, multiprocessors: int, stages: int | None = None) -> Plan:
    """Return a block for each multiprocessor, or somewhat fewer where the cuts then fall on the tiles' own edges."""
    boxes = tiles * pieces
    most = max(min(multiprocessors, boxes // LEAST_BOXES), 1)
    blocks = most
    for fewer in range(most, most - most // 32 - 1, -1):
        each, left = divmod(boxes, fewer)
        if not left and not (pieces % each and each % pieces):
            blocks = fewer
            break
    return Plan(blocks, stages or by_tma.stages_of(rows, shared_bytes_of))


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
        how: eps, tickets, early, stages, plan: see `start`.
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
    stages: int | None = None,
    plan: Plan | None = None,
) -> torch.Tensor:
    """Start the kernel.

    Args:
        x, weights, behind, g, r, y, turned: see `looked_at` of arguments.py.
        eps, early: as `k01_stream.start`.
        tickets: int32, at least `tickets_for` of all rows of weights, all zero, and zero again after the call.
            Without them each call fills some of its own, by a kernel before it.
        stages: boxes under way; without it, as many as there is room for.
        plan: how to share out the work; without it, what suits the card and the sizes.
    Raises:
        TypeError, ValueError, RuntimeError: see `looked_at` and `tickets_of` of arguments.py; more stages than there is
            room for.
    """
    call = looked_at(x, weights, behind, g, r, y, turned)
    kind, tiles = by_tma.kind_of(call), by_tma.tiles_of(call)
    tickets = tickets_of(tickets, tiles, x.device)
    plan = plan or _plan(tiles, call.K // PIECE, kind.rows, call.device, stages)
    parts = torch.empty(2 * plan.blocks * (2 * HALF + 1) * kind.rows, dtype=torch.float32, device=x.device)
    arguments = by_tma.arguments_of(call, x, weights, eps)
    _prepared(call.device, kind, plan.stages, early)(plan.blocks, *arguments, parts, tickets)
    return call.y


def tickets_for(rows: int) -> int:
    """Return how many tickets serve any call with so many rows of weights."""
    return -(-rows // HALF)


@functools.cache
def _plan(tiles: int, pieces: int, rows: int, device: int, stages: int | None) -> Plan:
    multiprocessors = torch.cuda.get_device_properties(device).multi_processor_count
    return plan_of(tiles, pieces, rows, multiprocessors, stages)


@functools.cache
def _prepared(device: int, kind: Kind, stages: int, early: bool) -> Prepared:
    """Return the kernel, ready for the current GPU, which is `device`."""
    return prepare(
        SOURCE,
        "decode_linear_even",
        block=THREADS,
        shared_bytes=shared_bytes_of(kind.rows, stages),
        defines=kind.defines(stages),
        before_the_last_grid_ended=early,
    )
