"""What the launchers of kernels 2 and 3 share: a call's operands, its sizes, and what boxes.cuh is told."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from course_kernels.arguments import check_tensor
from course_kernels.cuda.alignment import check_address
from course_kernels.cuda.hopper_card import is_hopper
from course_kernels.cuda.prepared import tensor_map
from course_kernels.decode_linear.arguments import PIECE, sizes_of
from course_kernels.decode_linear.k01_stream import ADD, GATE, HEAD_SIZES, NOTHING, ROPE, Turned

HALF = 64  # rows of weights of each of the two warpgroups
ROW_BYTES = 128
THREADS = 384
MOST_STAGES = 12  # boxes under way
ROOM = 226 * 1024  # bytes of shared memory


class Kind(NamedTuple):
    """What the kernels are compiled for, besides how the work is shared out.

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
        """The macros of boxes.cuh, and `more`."""
        float16, rows, norm, behind, head = self
        own = {"FLOAT16": int(float16), "ROWS": rows, "NORM": int(norm), "BEHIND": behind, "HEAD": head}
        return own | {"STAGES": stages} | more


class Call(NamedTuple):
    """A call that was looked at: on which GPU, its kind, tiles of 128 rows, pieces of 64 columns, and the answer."""

    device: int
    kind: Kind
    tiles: int
    pieces: int
    y: torch.Tensor


def stages_of(rows: int, shared_bytes: Any) -> int:
    """Boxes that there is room for; shared_bytes(rows, stages) is what a block takes."""
    return next(s for s in range(MOST_STAGES, 0, -1) if shared_bytes(rows, s) <= ROOM)


def ring_bytes(rows: int, stages: int) -> int:
    """Shared memory of the boxes and their barriers."""
    return stages * (2 * HALF * ROW_BYTES + rows * ROW_BYTES + 3 * 8)


def operands(
    w: torch.Tensor, rest: tuple[torch.Tensor, ...], *, norm: bool, add: bool, gated: bool
) -> dict[str, Any]:
    """A call of `decode_linear` in the words of `start`: weights, behind, g and r.

    Raises:
        ValueError: add and gated at once, more or fewer tensors than those ask for, or an odd number of rows to gate.
    """
    if add and gated:
        raise ValueError("add, gated: expected at most one of them")
    if len(rest) != norm + add:
        raise ValueError(f"rest: expected {norm + add} tensors, got {len(rest)}")
    of_gate = isinstance(w, torch.Tensor) and w.dim() == 2 and gated
    if of_gate and w.shape[0] % 2:
        raise ValueError(f"w: expected (2 N, K), gate and up, got {tuple(w.shape)}")
    return {
        "weights": (w[: len(w) // 2], w[len(w) // 2 :]) if of_gate else (w,),
        "behind": GATE if gated else ADD if add else NOTHING,
        "g": rest[0] if norm else None,
        "r": rest[-1] if add else None,
    }


def looked_at(
    x: torch.Tensor,
    weights: tuple[torch.Tensor, ...],
    behind: int,
    g: torch.Tensor | None,
    r: torch.Tensor | None,
    y: torch.Tensor | None,
    turned: Turned | None,
) -> Call:
    """Refuse what no kernel takes.

    Args:
        x, weights, behind, g, r, y, turned: as `k01_stream.start`.
    Raises:
        TypeError, ValueError: see `sizes_of`; g or r of another shape, type or device.
        RuntimeError: a GPU that is no Hopper.
    """
    M, _, K = sizes_of(x, weights[:1] if behind == ROPE else weights)
    for w in weights[1:] if behind == ROPE else ():
        sizes_of(x, (w,))
    device = x.get_device()
    if device >= 0 and not is_hopper(x.device):
        raise RuntimeError(f"decode_linear: expected a GPU of compute capability 9.0, got {x.device}")
    N = len(weights[0])
    for name, tensor, letters in (("g", g, "K"), ("r", r, "MN")):
        if tensor is not None:
            sizes = {"M": M, "N": N, "K": K}
            check_tensor(name, tensor, letters, sizes, dtypes=(x.dtype,), device=x.device)
            check_address(name, tensor)
    head = turned.k_cache.shape[3] if turned else HEAD_SIZES[-1]
    if y is None:
        y = torch.empty((M, N // head, head) if turned else (M, N), dtype=x.dtype, device=x.device)
    kind = Kind(x.dtype is torch.float16, 16 if M <= 16 else 32, g is not None, behind, head)
    tiles = -(-N // HALF) if behind == GATE else -(-sum(map(len, weights)) // (2 * HALF))
    return Call(device, kind, tiles, K // PIECE, y)


def arguments_of(
    call: Call,
    x: torch.Tensor,
    weights: tuple[torch.Tensor, ...],
    g: torch.Tensor | None,
    r: torch.Tensor | None,
    turned: Turned | None,
    eps: float,
) -> tuple[Any, ...]:
    """What both kernels take, in their order: maps and tensors, then numbers."""
    N, head = len(weights[0]), call.kind.head
    heads, kv_heads, room = (N // head, *turned.k_cache.shape[1:3]) if turned else (0, 0, 0)
    box = (head // 2 if turned else HALF, PIECE)
    maps = [tensor_map(w, box) for w in weights]
    return (
        tensor_map(x, (call.kind.rows, PIECE)),
        *(*maps, *maps[:1] * (3 - len(maps))),
        *(g, r),
        *(turned[:3] if turned else (None, None, None)),
        call.y,
        *(turned[3:] if turned else (None, None)),
        *(len(x), N, call.tiles, call.pieces, eps, heads, kv_heads, room),
    )
