"""Code shared by the launchers of kernels 2 and 3: room for boxes, and what tma_tiles.cuh is told."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from course_kernels.cuda.prepared import tensor_map
from course_kernels.decode_linear.arguments import PIECE, Call

HALF = 64  # rows of weights of each of the two warpgroups
ROW_BYTES = 128
THREADS = 384
MOST_STAGES = 12  # boxes under way
ROOM = 226 * 1024  # bytes of shared memory


class Kind(NamedTuple):
    """Compile-time constants of the kernels, besides how the work is shared out.

    Attributes:
        float16: or bfloat16.
        rows: of x that a product takes.
        norm: x is normalised before it is multiplied.
        behind: NOTHING, ADD, GATE or ROPE.
        head: numbers of a head, for ROPE.
    """

    float16: bool
    rows: int
    norm: bool
    behind: int
    head: int

    def defines(self, stages: int, **more: int) -> dict[str, int]:
        """Return the macros of tma_tiles.cuh, and `more`."""
        float16, rows, norm, behind, head = self
        own = {"FLOAT16": int(float16), "ROWS": rows, "NORM": int(norm), "BEHIND": behind, "HEAD": head}
        return own | {"STAGES": stages} | more


def stages_of(rows: int, shared_bytes: Any) -> int:
    """Boxes that there is room for; shared_bytes(rows, stages) is what a block takes."""
    return next(s for s in range(MOST_STAGES, 0, -1) if shared_bytes(rows, s) <= ROOM)


def ring_bytes(rows: int, stages: int) -> int:
    """Shared memory of the boxes and their barriers."""
    return stages * (2 * HALF * ROW_BYTES + rows * ROW_BYTES + 3 * 8)


def kind_of(call: Call) -> Kind:
    """Return what a call wants the kernels compiled for."""
    return Kind(call.float16, 16 if call.M <= 16 else 32, call.g is not None, call.behind, call.head)


def tiles_of(call: Call) -> int:
    """Tiles of 128 rows of weights."""
    return -(-call.columns // (2 * HALF))


def arguments_of(
    call: Call, x: torch.Tensor, weights: tuple[torch.Tensor, ...], eps: float
) -> tuple[Any, ...]:
    """Return what both kernels take, in their order: maps and tensors, then numbers."""
    box = (call.head // 2 if call.turned else HALF, PIECE)
    maps = [tensor_map(w, box) for w in weights]
    return call.arguments(tensor_map(x, (kind_of(call).rows, PIECE)), maps, tiles_of(call), eps)
