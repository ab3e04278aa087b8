"""A linear layer of a step of decoding, kernel 1: the launcher of k01_stream.cu. Read that file first.

Contract  problem.py, M <= 32; `qkv_into_cache` has the contract of qkv_rope, but for where positions and angles lie
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import NamedTuple

import torch

from course_kernels.arguments import check_tensor
from course_kernels.cuda.alignment import check_address
from course_kernels.cuda.hopper_card import is_hopper
from course_kernels.cuda.prepared import Prepared, prepare
from course_kernels.decode_linear.arguments import PIECE, TILE_N, sizes_of
from course_kernels.decode_linear.arguments import supports as supports
from course_kernels.decode_linear.problem import EPSILON

SOURCE = Path(__file__).with_suffix(".cu")
NOTHING, ADD, GATE, ROPE = range(4)  # what stands behind
HEAD_SIZES = (64, 128)
STAGE_BYTES = 2048  # of a warp: 16 rows of 64 numbers
PART = 4 * 32 + 8  # numbers that a block leaves of 8 rows of x


class Room(NamedTuple):
    """What a block has room for.

    Attributes:
        held: pieces of 64 columns whose x a warp keeps in registers: 8 of them for 8 rows and a piece.
        warps: of a block, at most.
        ring: bytes of weights under way; what memory delivers in the time of one latency is some 45 to 64 KB for each
            multiprocessor of this card.
        resident: blocks of a multiprocessor. Where it is two, the next grid's blocks begin while this one's run.
    """

    held: int
    warps: int
    ring: int
    resident: int


# By the rows of x, in eights.
ROOM = {1: Room(8, 8, 96 * 1024, 2), 2: Room(4, 16, 160 * 1024, 1), 4: Room(2, 16, 128 * 1024, 1)}


class Turned(NamedTuple):
    """Where queries and keys find their angles, and where keys and values go; see `qkv_into_cache`."""

    cos: torch.Tensor
    sin: torch.Tensor
    position: torch.Tensor
    k_cache: torch.Tensor
    v_cache: torch.Tensor


class Cut(NamedTuple):
    """How the work is shared out: blocks along N and along K, warps of each, pieces a warp copies ahead; see `Room`."""

    blocks: int
    splits: int
    warps: int
    stages: int
    held: int
    resident: int


def cut_of(tiles: int, K: int, room: Room, multiprocessors: int) -> Cut:
    """What keeps most of the card busy: a block for each multiprocessor, and K cut where a block cannot hold it all."""
    shares = -(-K // (PIECE * room.held))  # of K, one for each warp
    least = -(-shares // room.warps)
    best, found = 0.0, None
    for splits in range(least, max(min(2 * least, shares, multiprocessors), least) + 1):
        warps = -(-shares // splits)
        if -(-shares // warps) != splits:
            continue  # one of them would have nothing to do
        blocks = max(min(multiprocessors // splits, tiles), 1)
        rounds = -(-tiles // blocks)
        busy = tiles * shares / (rounds * multiprocessors * warps)
        if busy > 1.02 * best:  # a further part must pay for being added
            best, found = busy, (blocks, splits, warps)
    assert found is not None
    blocks, splits, warps = found
    stages = max(min(room.ring // (STAGE_BYTES * warps), 16), 1)
    return Cut(blocks, splits, warps, stages, room.held, room.resident)


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
    cut: Cut | None = None,
) -> torch.Tensor:
    """A few rows times the transpose of a matrix, and what stands around it.

    Args:
        x: (M, K) bfloat16 or float16, contiguous, M <= 32, K a multiple of 64.
        w: (N, K), gated (2 N, K), the same type, contiguous, N a multiple of 16.
        rest: with norm g (K,); with add r (M, N).
        norm, add, gated: see problem.py; add and gated exclude each other.
        eps, tickets, early, cut: see `start`.
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
    how = {"eps": eps, "tickets": tickets, "early": early, "cut": cut}
    g, r = rest[0] if norm else None, rest[-1] if add else None
    return start(x, weights, GATE if gated else ADD if add else NOTHING, g=g, r=r, **how)  # type: ignore[arg-type]


def gate_up(
    x: torch.Tensor,
    g: torch.Tensor,
    gate: torch.Tensor,
    up: torch.Tensor,
    *,
    eps: float = EPSILON,
    **how: object,
) -> torch.Tensor:
    """`decode_linear` with norm and gated, the two matrices apart: (N, K) each."""
    return start(x, (gate, up), GATE, g=g, eps=eps, **how)  # type: ignore[arg-type]


def add_to(x: torch.Tensor, w: torch.Tensor, r: torch.Tensor, **how: object) -> torch.Tensor:
    """`decode_linear` with add; the sum takes the place of r (M, N), which is returned."""
    return start(x, (w,), ADD, r=r, y=r, **how)  # type: ignore[arg-type]


def qkv_into_cache(
    x: torch.Tensor,
    g: torch.Tensor,
    weights: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    cos: torch.Tensor,
    sin: torch.Tensor,
    position: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    *,
    eps: float = EPSILON,
    **how: object,
) -> torch.Tensor:
    """Norm, the three projections, and the rotation of queries and keys, which then go into the caches.

    Args:
        x: (M, K), as for `decode_linear`: one new token of each of M sequences.
        g: (K,), the same type.
        weights: of queries (H * D, K), of keys and of values (KV * D, K) each.
        cos, sin: (M, D/2) float32, of each sequence's own position.
        position: (M,) int64: the place in the cache. Where it is none of 0 to N - 1 nothing is written.
        k_cache, v_cache: (M, KV, N, D), the same type, contiguous; D = 64 or 128.
        eps, how: see `start`.
    Returns:
        (M, H, D), the same type: the queries, turned.
    Raises:
        TypeError, ValueError: see `sizes_of` and `start`; caches, angles or positions of another shape or type.
    """
    M = x.shape[0] if isinstance(x, torch.Tensor) and x.dim() else 0
    sizes: dict[str, int] = {"M": M}
    names = ("M", "KV", "N", "D")
    for name, cache in (("k_cache", k_cache), ("v_cache", v_cache)):
        check_tensor(name, cache, names, sizes, dtypes=(x.dtype,), device=x.device)  # type: ignore[arg-type]
    if sizes["D"] not in HEAD_SIZES:
        raise ValueError(f"k_cache: expected D = 64 or 128, got D={sizes['D']}")
    sizes["D/2"] = sizes["D"] // 2
    for name, table in (("cos", cos), ("sin", sin)):
        check_tensor(name, table, ("M", "D/2"), sizes, dtypes=(torch.float32,), device=x.device)  # type: ignore[arg-type]
    check_tensor("position", position, "M", sizes, dtypes=(torch.int64,), device=x.device)
    for name, w, heads in zip(("query", "key", "value"), weights, (None, "KV", "KV"), strict=True):
        rows = w.shape[0] if isinstance(w, torch.Tensor) and w.dim() == 2 else 0
        if not rows or rows % sizes["D"] or (heads and rows != sizes["KV"] * sizes["D"]):
            raise ValueError(
                f"{name}: expected whole heads of D={sizes['D']}, KV={sizes['KV']}, got {rows} rows"
            )
    turned = Turned(cos, sin, position, k_cache, v_cache)
    return start(x, weights, ROPE, g=g, turned=turned, eps=eps, **how)  # type: ignore[arg-type]


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
        x: (M, K) bfloat16 or float16, contiguous, M <= 32, K a multiple of 64.
        weights: of what stands behind; the same type, contiguous, rows of K numbers.
        behind: NOTHING, ADD, GATE or ROPE.
        g: (K,), the same type: x is normalised before it is multiplied, with `eps` added to the mean of squares.
        r: ADD: (M, N), the same type.
        y: where the answer goes; without it, a new tensor.
        turned: ROPE: see `qkv_into_cache`.
        tickets: int32, at least `tickets_for(N)`, all zero, and zero again when the call is done: calls that come one
            after the other may share them. Used where K is cut; without them each call then fills some of its own, by a
            kernel before it.
        early: begin while the last kernel of the stream still runs, if that one says when: the weights are asked for
            before it has ended, x and everything else after. That one must not be what writes the weights, or g.
        cut: how to share out the work; without it, what suits the card and the sizes.
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
    columns = sum(len(w) for w in weights)  # of all products
    tiles, N = columns // TILE_N, len(weights[0])
    for name, tensor, shape in (("g", g, (K,)), ("r", r, (M, N))):
        if tensor is not None:
            letters = ("K",) if name == "g" else ("M", "N")
            bound = dict(zip(letters, shape, strict=True))
            check_tensor(name, tensor, letters, bound, dtypes=(x.dtype,), device=x.device)  # type: ignore[arg-type]
            check_address(name, tensor)
    if tickets is not None:
        check_tensor("tickets", tickets, "T", {}, dtypes=(torch.int32,), device=x.device)
    head = turned.k_cache.shape[3] if turned else HEAD_SIZES[-1]
    if y is None:
        y = torch.empty((M, N // head, head) if turned else (M, N), dtype=x.dtype, device=x.device)

    eights = 1 if M <= 8 else 2 if M <= 16 else 4
    cut = cut or _cut(tiles, K, eights, device)
    if cut.splits * cut.warps * cut.held * PIECE < K:
        raise ValueError(f"cut: expected one whose warps hold K={K} together, got {cut}")
    parts = None
    if cut.splits > 1:
        parts = torch.empty(tiles * cut.splits * eights * PART, dtype=torch.float32, device=x.device)
        if tickets is None:
            tickets = torch.zeros(tickets_for(columns), dtype=torch.int32, device=x.device)
        elif tickets.numel() < tiles * eights:
            raise ValueError(f"tickets: expected (T,) with T >= {tiles * eights}, got {tuple(tickets.shape)}")
    kernel = _prepared(device, x.dtype is torch.float16, eights, cut[2:], g is not None, behind, head, early)
    heads, kv_heads, room = (N // head, *turned.k_cache.shape[1:3]) if turned else (0, 0, 0)
    kernel(
        (cut.blocks, cut.splits, 1),
        *(x, *weights, *[None] * (3 - len(weights)), g, r),
        *(turned[:3] if turned else (None, None, None)),
        y,
        *(turned[3:] if turned else (None, None)),
        *(parts, tickets if cut.splits > 1 else None),
        *(M, tiles, K // PIECE, eps, heads, kv_heads, room),
    )
    return y


def tickets_for(columns: int) -> int:
    """How many tickets serve any call with so many rows of weights."""
    return columns // TILE_N * max(ROOM)


@functools.cache
def _cut(tiles: int, K: int, eights: int, device: int) -> Cut:
    return cut_of(tiles, K, ROOM[eights], torch.cuda.get_device_properties(device).multi_processor_count)


def defines_of(
    float16: bool, eights: int, block: tuple[int, ...], norm: bool, behind: int, head: int
) -> dict[str, int]:
    """The macros of the kernel; `block`: what a Cut says from its warps on."""
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
    """The kernel, ready for the current GPU, which is `device`."""
    warps, stages = block[:2]
    return prepare(
        SOURCE,
        "decode_linear_stream",
        block=32 * warps,
        shared_bytes=warps * (stages * STAGE_BYTES + 2 * eights * 512),
        defines=defines_of(float16, eights, block, norm, behind, head),
        before_the_last_grid_ended=early,
    )
