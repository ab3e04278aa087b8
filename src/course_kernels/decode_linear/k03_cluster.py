"""A linear layer of a step of decoding, kernel 3: the launcher of k03_cluster.cu. Read that file first.

Contract  problem.py, M <= 32; with ROPE that of qkv_rope, but for where positions and angles lie
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from course_kernels.cuda.occupancy import clusters_at_once
from course_kernels.cuda.prepared import Prepared, prepare
from course_kernels.decode_linear import by_boxes
from course_kernels.decode_linear.arguments import HEAD_SIZES, NOTHING, PIECE, Turned, looked_at, operands
from course_kernels.decode_linear.arguments import supports as supports
from course_kernels.decode_linear.by_boxes import HALF, THREADS, Kind
from course_kernels.decode_linear.problem import EPSILON

SOURCE = Path(__file__).with_suffix(".cu")
CLUSTERS = (1, 2, 4, 8)  # blocks of a cluster that every card of this kind has room for
GAIN = 1.03  # a larger cluster must be so much faster: its blocks wait for each other


class Plan(NamedTuple):
    """How the work is shared out: clusters, blocks of each, and boxes of 128 rows under way in a block."""

    clusters: int
    blocks: int
    stages: int


def shared_bytes_of(rows: int, stages: int) -> int:
    """Shared memory of a block: the ring, two sides of sums and of squares, and their barriers."""
    return by_boxes.ring_bytes(rows, stages) + 2 * ((2 * HALF + 1) * (rows + 1) + rows) * 4 + 6 * 8


def plan_of(tiles: int, pieces: int, rows: int, at_once: Mapping[int, int]) -> Plan:
    """What lets every block read about the same, all at once.

    Args:
        tiles: of 128 rows of weights.
        pieces: of 64 columns.
        rows: of x that a product takes.
        at_once: for the blocks of a cluster, how many such clusters the card runs at once.
    """
    best, found = 0.0, None
    for blocks, most in at_once.items():
        if blocks > pieces or not most:
            continue
        clusters = min(most, tiles)
        speed = 1 / (-(-tiles // clusters) * -(-pieces // blocks))  # boxes of the block that has most
        if speed > GAIN * best:
            best, found = speed, Plan(clusters, blocks, by_boxes.stages_of(rows, shared_bytes_of))
    assert found is not None
    return found


def decode_linear(
    x: torch.Tensor,
    w: torch.Tensor,
    *rest: torch.Tensor,
    norm: bool = False,
    add: bool = False,
    gated: bool = False,
    **how: Any,
) -> torch.Tensor:
    """As `k02_even.decode_linear`; how: eps, early, plan, see `start`."""
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
    early: bool = False,
    plan: Plan | None = None,
) -> torch.Tensor:
    """Start the kernel.

    Args:
        x, weights, behind, g, r, y, turned: see `looked_at` of arguments.py.
        eps, early: as `k01_stream.start`.
        plan: how to share out the work; without it, what suits the card and the sizes.
    Raises:
        TypeError, ValueError, RuntimeError: see `looked_at`.
    """
    call = looked_at(x, weights, behind, g, r, y, turned)
    kind, tiles = by_boxes.kind_of(call), by_boxes.tiles_of(call)
    plan = plan or plan_of(tiles, call.K // PIECE, kind.rows, _at_once(call.device, kind.rows))
    arguments = by_boxes.arguments_of(call, x, weights, eps)
    _prepared(call.device, kind, plan.blocks, plan.stages, early)(plan.clusters * plan.blocks, *arguments)
    return call.y


@functools.cache
def _at_once(device: int, rows: int) -> dict[int, int]:
    """For the blocks of a cluster, how many clusters run at once: it is their shared memory that counts."""
    kind, stages = (
        Kind(False, rows, False, NOTHING, HEAD_SIZES[-1]),
        by_boxes.stages_of(rows, shared_bytes_of),
    )
    return {
        blocks: clusters_at_once(_prepared(device, kind, blocks, stages, False), blocks)
        for blocks in CLUSTERS
    }


@functools.cache
def _prepared(device: int, kind: Kind, blocks: int, stages: int, early: bool) -> Prepared:
    """The kernel, ready for the current GPU, which is `device`."""
    return prepare(
        SOURCE,
        "decode_linear_cluster",
        block=THREADS,
        shared_bytes=shared_bytes_of(kind.rows, stages),
        cluster=blocks,
        defines=kind.defines(stages, BLOCKS=blocks),
        before_the_last_grid_ended=early,
    )
