"""A linear layer of a step of decoding, kernel 2: the launcher of k02_even.cu. Read that file first.

Contract  problem.py, M <= 32; with `ROPE` that of `k01_stream.qkv_into_cache`
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import NamedTuple

import torch

from course_kernels.arguments import check_tensor
from course_kernels.cuda.alignment import check_address
from course_kernels.cuda.hopper_card import is_hopper
from course_kernels.cuda.prepared import Prepared, prepare, tensor_map
from course_kernels.decode_linear.arguments import PIECE, sizes_of
from course_kernels.decode_linear.arguments import supports as supports
from course_kernels.decode_linear.k01_stream import ADD, GATE, HEAD_SIZES, NOTHING, ROPE, Turned
from course_kernels.decode_linear.problem import EPSILON

SOURCE = Path(__file__).with_suffix(".cu")
HALF = 64  # rows of weights of each of the two warpgroups
ROW_BYTES = 128
THREADS = 384
MOST_STAGES = 12
LEAST_BOXES = 4  # of a block: fewer, and what stands around them costs more than they do


class Plan(NamedTuple):
    """How the work is shared out.

    Attributes:
        blocks: all of them run at once; each takes the same number of boxes, to within one.
        stages: boxes of 128 rows under way in a block, each with its columns of x.
        resident: blocks that a multiprocessor has room for. Where it is two, the next grid's blocks begin while this
            one's run.
    """

    blocks: int
    stages: int
    resident: int


def rows_of_x(M: int) -> int:
    """Rows of x that one product takes."""
    return 16 if M <= 16 else 32


def shared_bytes_of(at_once: int, stages: int) -> int:
    """Shared memory of a block: the ring, the sums of a tile, squares and barriers."""
    stage = 2 * HALF * ROW_BYTES + at_once * ROW_BYTES
    return stages * (stage + 3 * 8) + 2 * HALF * (at_once + 1) * 4 + 2 * at_once * 4 + 2 * 8


def plan_of(tiles: int, pieces: int, at_once: int, multiprocessors: int, resident: int = 1) -> Plan:
    """A block for each multiprocessor, or somewhat fewer where the cuts then fall on the tiles' own edges."""
    boxes = tiles * pieces
    most = max(min(multiprocessors, boxes // LEAST_BOXES), 1)
    blocks = most
    for fewer in range(most, most - most // 32 - 1, -1):
        each, left = divmod(boxes, fewer)
        if not left and not (pieces % each and each % pieces):
            blocks = fewer
            break
    room = (226 if resident == 1 else 112) * 1024
    stages = next(s for s in range(MOST_STAGES, 0, -1) if shared_bytes_of(at_once, s) <= room)
    return Plan(blocks, stages, resident)


def decode_linear(
    x: torch.Tensor,
    w: torch.Tensor,
    *rest: torch.Tensor,
    norm: bool = False,
    add: bool = False,
    gated: bool = False,
    eps: float = EPSILON,
    tickets: torch.Tensor | None = None,
    early: bool = False,
    plan: Plan | None = None,
) -> torch.Tensor:
    """A few rows times the transpose of a matrix, and what stands around it.

    Args:
        x: (M, K) bfloat16 or float16, contiguous, M <= 32, K a multiple of 64.
        w: (N, K), gated (2 N, K), the same type, contiguous, N a multiple of 16.
        rest: with norm g (K,); with add r (M, N).
        norm, add, gated: see problem.py; add and gated exclude each other.
        eps, tickets, early, plan: see `start`.
    Returns:
        (M, N), the same type. The same bits every time on one kind of card.
    Raises:
        TypeError, ValueError: see `sizes_of` and `start`.
    """
    if add and gated:
        raise ValueError("add, gated: expected at most one of them")
    if len(rest) != norm + add:
        raise ValueError(f"rest: expected {norm + add} tensors, got {len(rest)}")
    of_gate = isinstance(w, torch.Tensor) and w.dim() == 2 and gated
    if of_gate and w.shape[0] % 2:
        raise ValueError(f"w: expected (2 N, K), gate and up, got {tuple(w.shape)}")
    weights = (w[: len(w) // 2], w[len(w) // 2 :]) if of_gate else (w,)
    how = {"eps": eps, "tickets": tickets, "early": early, "plan": plan}
    g, r = rest[0] if norm else None, rest[-1] if add else None
    return start(x, weights, GATE if gated else ADD if add else NOTHING, g=g, r=r, **how)  # type: ignore[arg-type]


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
    plan: Plan | None = None,
) -> torch.Tensor:
    """Start the kernel.

    Args:
        x, weights, behind, g, r, y, turned, eps, early: as `k01_stream.start`.
        tickets: int32, at least `tickets_for(N)` of all rows of weights, all zero, and zero again after the call.
            Without them each call fills some of its own, by a kernel before it.
        plan: how to share out the work; without it, what suits the card and the sizes.
    Raises:
        TypeError, ValueError: see `sizes_of`; g, r or tickets of another shape, type or device.
        RuntimeError: a GPU that is no Hopper.
    """
    M, _, K = sizes_of(x, weights[:1] if behind == ROPE else weights)
    for w in weights[1:] if behind == ROPE else ():
        sizes_of(x, (w,))
    device = x.get_device()
    if device >= 0 and not is_hopper(x.device):
        raise RuntimeError(f"decode_linear: expected a GPU of compute capability 9.0, got {x.device}")
    rows, N = sum(len(w) for w in weights), len(weights[0])
    tiles, pieces = -(-N // HALF) if behind == GATE else -(-rows // (2 * HALF)), K // PIECE
    for name, tensor, shape in (("g", g, (K,)), ("r", r, (M, N))):
        if tensor is not None:
            letters = ("K",) if name == "g" else ("M", "N")
            bound = dict(zip(letters, shape, strict=True))
            check_tensor(name, tensor, letters, bound, dtypes=(x.dtype,), device=x.device)  # type: ignore[arg-type]
            check_address(name, tensor)
    if tickets is None:
        tickets = torch.zeros(tiles, dtype=torch.int32, device=x.device)
    else:
        check_tensor("tickets", tickets, "T", {}, dtypes=(torch.int32,), device=x.device)
        if tickets.numel() < tiles:
            raise ValueError(f"tickets: expected (T,) with T >= {tiles}, got {tuple(tickets.shape)}")
    head = turned.k_cache.shape[3] if turned else HEAD_SIZES[-1]
    if y is None:
        y = torch.empty((M, N // head, head) if turned else (M, N), dtype=x.dtype, device=x.device)

    at_once = rows_of_x(M)
    plan = plan or _plan(tiles, pieces, at_once, device)
    parts = torch.empty(2 * plan.blocks * (2 * HALF + 1) * at_once, dtype=torch.float32, device=x.device)
    kernel = _prepared(
        device,
        x.dtype is torch.float16,
        at_once,
        plan.stages,
        plan.resident,
        g is not None,
        behind,
        head,
        early,
    )
    heads, kv_heads, room = (N // head, *turned.k_cache.shape[1:3]) if turned else (0, 0, 0)
    box = (head // 2 if turned else HALF, PIECE)
    maps = [tensor_map(w, box) for w in weights]
    kernel(
        plan.blocks,
        tensor_map(x, (at_once, PIECE)),
        *(*maps, *maps[:1] * (3 - len(maps))),
        *(g, r),
        *(turned[:3] if turned else (None, None, None)),
        y,
        *(turned[3:] if turned else (None, None)),
        *(parts, tickets),
        *(M, N, tiles, pieces, eps, heads, kv_heads, room),
    )
    return y


def tickets_for(rows: int) -> int:
    """How many tickets serve any call with so many rows of weights."""
    return -(-rows // HALF)


@functools.cache
def _plan(tiles: int, pieces: int, at_once: int, device: int) -> Plan:
    return plan_of(tiles, pieces, at_once, torch.cuda.get_device_properties(device).multi_processor_count)


def defines_of(
    float16: bool, at_once: int, stages: int, resident: int, norm: bool, behind: int, head: int
) -> dict[str, int]:
    """The macros of the kernel."""
    return {
        "FLOAT16": int(float16),
        "ROWS": at_once,
        "STAGES": stages,
        "RESIDENT": resident,
        "NORM": int(norm),
        "BEHIND": behind,
        "HEAD": head,
    }


@functools.cache
def _prepared(
    device: int,
    float16: bool,
    at_once: int,
    stages: int,
    resident: int,
    norm: bool,
    behind: int,
    head: int,
    early: bool,
) -> Prepared:
    """The kernel, ready for the current GPU, which is `device`."""
    return prepare(
        SOURCE,
        "decode_linear_even",
        block=THREADS,
        shared_bytes=shared_bytes_of(at_once, stages),
        defines=defines_of(float16, at_once, stages, resident, norm, behind, head),
        before_the_last_grid_ended=early,
    )
