"""A linear layer of a step of decoding, kernel 2: the launcher of k02_cluster.cu. Read that file first.

Contract  problem.py, M <= 32; with `ROPE` that of `k01_stream.qkv_into_cache`
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch

from course_kernels.arguments import check_tensor
from course_kernels.cuda.alignment import check_address
from course_kernels.cuda.hopper_card import is_hopper
from course_kernels.cuda.occupancy import clusters_at_once
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
ROOM = 226 * 1024  # bytes of shared memory
CLUSTERS = (1, 2, 4, 8)  # blocks of a cluster that every card of this kind has room for
GAIN = 1.03  # a larger cluster must be so much faster: its blocks wait for each other


class Plan(NamedTuple):
    """How work is shared out: clusters, blocks of each, and boxes of 128 rows under way in a block; see `plan_of`."""

    clusters: int
    blocks: int
    stages: int


def rows_at_once(M: int) -> int:
    """Rows of x that one product takes."""
    return 16 if M <= 16 else 32


def shared_bytes_of(rows: int, stages: int) -> int:
    """Shared memory of a block: the ring, two sides of sums and of squares, and barriers."""
    stage = 2 * HALF * ROW_BYTES + rows * ROW_BYTES
    return stages * (stage + 3 * 8) + 2 * ((2 * HALF + 1) * (rows + 1) + rows) * 4 + 6 * 8


def stages_of(rows: int) -> int:
    """Boxes that there is room for."""
    return next(s for s in range(MOST_STAGES, 0, -1) if shared_bytes_of(rows, s) <= ROOM)


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
            best, found = speed, Plan(clusters, blocks, stages_of(rows))
    assert found is not None
    return found


def decode_linear(
    x: torch.Tensor,
    w: torch.Tensor,
    *rest: torch.Tensor,
    norm: bool = False,
    add: bool = False,
    gated: bool = False,
    eps: float = EPSILON,
    early: bool = False,
    plan: Plan | None = None,
) -> torch.Tensor:
    """A few rows times the transpose of a matrix, and what stands around it.

    Args:
        x: (M, K) bfloat16 or float16, contiguous, M <= 32, K a multiple of 64.
        w: (N, K), gated (2 N, K), the same type, contiguous, N a multiple of 16.
        rest: with norm g (K,); with add r (M, N).
        norm, add, gated: see problem.py; add and gated exclude each other.
        eps, early, plan: see `start`.
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
    how = {"eps": eps, "early": early, "plan": plan}
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
    early: bool = False,
    plan: Plan | None = None,
) -> torch.Tensor:
    """Start the kernel.

    Args:
        x, weights, behind, g, r, y, turned, eps, early: as `k01_stream.start`.
        plan: how to share out the work; without it, what suits the card and the sizes.
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
    N, pieces = len(weights[0]), K // PIECE
    tiles = -(-N // HALF) if behind == GATE else -(-sum(len(w) for w in weights) // (2 * HALF))
    for name, tensor, shape in (("g", g, (K,)), ("r", r, (M, N))):
        if tensor is not None:
            letters = ("K",) if name == "g" else ("M", "N")
            bound = dict(zip(letters, shape, strict=True))
            check_tensor(name, tensor, letters, bound, dtypes=(x.dtype,), device=x.device)  # type: ignore[arg-type]
            check_address(name, tensor)
    head = turned.k_cache.shape[3] if turned else HEAD_SIZES[-1]
    if y is None:
        y = torch.empty((M, N // head, head) if turned else (M, N), dtype=x.dtype, device=x.device)

    rows = rows_at_once(M)
    ready = functools.partial(
        _prepared, device, x.dtype is torch.float16, rows, g is not None, behind, head, early
    )
    plan = plan or plan_of(tiles, pieces, rows, _at_once(device, rows))
    heads, kv_heads, room = (N // head, *turned.k_cache.shape[1:3]) if turned else (0, 0, 0)
    box = (head // 2 if turned else HALF, PIECE)
    maps = [tensor_map(w, box) for w in weights]
    ready(plan.blocks, plan.stages)(
        plan.clusters * plan.blocks,
        tensor_map(x, (rows, PIECE)),
        *(*maps, *maps[:1] * (3 - len(maps))),
        *(g, r),
        *(turned[:3] if turned else (None, None, None)),
        y,
        *(turned[3:] if turned else (None, None)),
        *(M, N, tiles, pieces, eps, heads, kv_heads, room),
    )
    return y


@functools.cache
def _at_once(device: int, rows: int) -> dict[int, int]:
    """For the blocks of a cluster, how many clusters run at once: it is their shared memory that counts."""
    one = functools.partial(_prepared, device, False, rows, False, NOTHING, HEAD_SIZES[-1], False)
    return {blocks: clusters_at_once(one(blocks, stages_of(rows)), blocks) for blocks in CLUSTERS}


def defines_of(
    float16: bool, rows: int, blocks: int, stages: int, norm: bool, behind: int, head: int
) -> dict[str, int]:
    """The macros of the kernel."""
    return {
        "FLOAT16": int(float16),
        "ROWS": rows,
        "BLOCKS": blocks,
        "STAGES": stages,
        "NORM": int(norm),
        "BEHIND": behind,
        "HEAD": head,
    }


@functools.cache
def _prepared(
    device: int,
    float16: bool,
    rows: int,
    norm: bool,
    behind: int,
    head: int,
    early: bool,
    blocks: int,
    stages: int,
) -> Prepared:
    """The kernel, ready for the current GPU, which is `device`."""
    return prepare(
        SOURCE,
        "decode_linear_cluster",
        block=THREADS,
        shared_bytes=shared_bytes_of(rows, stages),
        cluster=blocks,
        defines=defines_of(float16, rows, blocks, stages, norm, behind, head),
        before_the_last_grid_ended=early,
    )
