"""Attention, kernel 6: the launcher of k06_wgmma.cu. Read that file first.

Contract  problem.py; `attend` takes what models ask for besides
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, repeat
from math import e, log2, sqrt
from pathlib import Path
from typing import NamedTuple

import torch

from course_kernels.attention.arguments import HEAD_SIZES, MAX_N
from course_kernels.cuda.hopper_card import is_hopper
from course_kernels.cuda.prepared import Prepared, prepare, tensor_map
from course_kernels.problem import Workload

SOURCE = Path(__file__).with_suffix(".cu")
DTYPES = (torch.bfloat16, torch.float16)
SIZES = (64, 96, 128, 256)  # of a head; 96 lies in shared memory as 128, a quarter of it zeros
PANEL = 64  # numbers of a row that lie together in shared memory: 128 bytes
ROWS = 64  # of a warpgroup
CALLS_KEPT = 4096  # layouts: a program that never asks twice for the same must not fill the memory
COUNTERS = 1024  # of a device: no two calls that run at once share one
MOST_BYTES_TOGETHER = (
    2**25
)  # of K and V of the heads that run together, where the order is ours: well within L2


@dataclass(frozen=True)
class Tile:
    """Tile shape, and which ideas are in.

    Attributes:
        consumers: warpgroups that compute, of 64 query rows each: two, three or four.
        block_n: keys of one step, a multiple of 16.
        stages: tiles of K, and of V, in shared memory at once.
        overlap: whether the product with V of one step runs beside the softmax of the next.
        turns: whether the consumers hand the tensor cores to each other.
        slack: the power of two by which a maximum may grow before the answer is repaired; 0 to repair always.
        by_hand: of 16 exponentials, how many are made by multiplications.
        order: whether causal blocks run the longest first, or as they are numbered.
        asks: whether a block that is done asks for its next work, where works are of unequal length (causal, packed).
            Else each has its own from the beginning. Clusters never ask.
        cluster: blocks of neighbouring rows that bring tiles of K and V to each other.
        own_place: whether the answer has a place of its own in shared memory, else that of Q.
    """

    consumers: int
    block_n: int
    stages: int
    overlap: bool = True
    turns: bool = True
    slack: int = 8
    by_hand: int = 0
    order: bool = True
    asks: bool = True
    cluster: int = 1
    own_place: bool = True

    def shared_bytes(self, head: int) -> int:
        """Return the shared memory of a block; `head` is the row in it, a multiple of 64."""
        rows, keys = self.consumers * ROWS * head * 2, self.block_n * head * 2
        place_of_answer = rows if self.own_place else 1024
        barriers = 8 * (2 * self.consumers + 4 * self.stages)
        numbers = 8 * ((self.consumers + 1) // 2)
        rest = barriers + numbers + 1024  # to begin where the swizzle does
        return rows + place_of_answer + 2 * self.stages * keys + rest


SHORT_ROWS = Tile(consumers=3, block_n=128, stages=4)
SOME_KEYS = Tile(consumers=2, block_n=128, stages=2)
MANY_KEYS = Tile(consumers=2, block_n=176, stages=2, own_place=False)
LONG_ROWS = Tile(consumers=2, block_n=80, stages=2, overlap=False, own_place=False)
LONG = 8192  # keys: from here on a step takes more of them, and the answer has no place of its own


def tile_for(head: int, keys: int) -> Tile:
    """Return the tile that `attend` takes where none is given, as `tune_attention` found it on an H200 and an H100.

    Args:
        head: of a row in shared memory: 64, 128 or 256.
        keys: of one sequence, the longest.
    """
    if head == 64:
        return SHORT_ROWS
    if head == 128:
        return MANY_KEYS if keys >= LONG else SOME_KEYS
    return LONG_ROWS


def supports(w: Workload) -> bool:
    """Return whether this kernel takes a workload: bfloat16 or float16, D = 64 or 128."""
    return w.dtype in ("bfloat16", "float16") and w.D in HEAD_SIZES


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False) -> torch.Tensor:
    """Attention: the first of the two results of `attend`, which says what it takes and refuses."""
    return attend(q, k, v, causal=causal)[0]


def attention_with_lse(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False, tile: Tile | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention, and the log-sum-exp of every row of scores; see `attend`."""
    return attend(q, k, v, causal=causal, tile=tile)


def attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    causal: bool = False,
    window: tuple[int, int] | None = None,
    begins: tuple[torch.Tensor, torch.Tensor, int, int] | None = None,
    tile: Tile | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of rows over keys that may be others than their own, in number, heads and place.

    Row m of Nq sees keys up to its own place m + Nk - Nq, counted from the end, if causal; with a window those from
    `left` before its own place to `right` behind it. A row that sees no key is zeros, its log-sum-exp -inf.

    Args:
        q: (B, H, Nq, D) bfloat16 or float16, D = 64, 96, 128 or 256; the last stride 1, others multiples of 8.
        k, v: (B, KV, Nk, D), the same type; H is a multiple of KV, and neighbouring heads of q share one of k and v.
        causal: see above.
        window: left and right, at least 0; with `causal`, right is 0.
        begins: for sequences of different lengths, one behind the other, B = 1: where each begins in q, where each
            begins in k and v, both int32 with one more number for the end, and the most rows and keys of one.
        tile: how to cut the work; without it, that of `tile_for`.
    Returns:
        q's shape and type: every row a weighted mean of rows of v.
        (B, H, Nq) float32: the natural logarithm of the sum of exp(score) over the keys a row sees.
    Raises:
        TypeError: another type, or three different ones.
        ValueError: shapes that do not fit, a size out of range, strides that the copy engine does not take.
        RuntimeError: a GPU that is no Hopper.
    """
    layout: tuple[object, ...]
    try:
        layout = (
            *(q.shape, q.stride(), q.dtype, q.get_device(), k.shape, k.stride(), k.dtype, k.get_device()),
            *(v.shape, v.stride(), v.dtype, v.get_device(), causal, window and tuple(window), tile),
        )
    except AttributeError:  # not a tensor: told below
        layout = ()
    # Of packed sequences the lengths change from call to call.
    call = _CALLS.get(layout) if begins is None else None
    if call is None:
        _check(q, k, v, causal, window, begins, tile)
    o = torch.empty_like(q)
    lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    if call is None:
        call = _call(q, k, o, lse, causal, window, begins, tile)
        if begins is None:
            if len(_CALLS) >= CALLS_KEPT:
                _CALLS.clear()
            _CALLS[layout] = call
    if call.kernel is None:
        return o.zero_(), lse.fill_(-torch.inf)
    call.kernel(
        call.grid,
        tensor_map(q, (1, 1, ROWS, PANEL)),
        tensor_map(k, call.box_of_keys),
        tensor_map(v, call.box_of_keys),
        tensor_map(o, (1, 1, 16, PANEL)),
        o,
        lse,
        begins[0] if begins else None,
        begins[1] if begins else None,
        next(call.counters),
        *call.numbers,
    )
    return o, lse


class _Call(NamedTuple):
    """Parts of a call that stay the same while layouts and arguments do."""

    kernel: Prepared | None  # None: no rows, or no keys
    grid: int
    box_of_keys: tuple[int, ...]
    counters: Iterator[torch.Tensor | None]
    numbers: tuple[int | float, ...]


_CALLS: dict[tuple[object, ...], _Call] = {}


def _call(
    q: torch.Tensor,
    k: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    causal: bool,
    window: tuple[int, int] | None,
    begins: tuple[torch.Tensor, torch.Tensor, int, int] | None,
    tile: Tile | None,
) -> _Call:
    """Prepare a call that `_check` has let through."""
    (sequences, H, rows, D), (KV, keys) = q.shape, k.shape[1:3]
    if q.numel() == 0 or keys == 0:
        return _Call(None, 0, (), repeat(None), ())
    if begins is not None:
        sequences, rows, keys = len(begins[0]) - 1, *begins[2:]
    head, packed, device = -(-D // PANEL) * PANEL, begins is not None, q.get_device()
    tile = tile or tile_for(head, keys)
    clusters = -(-rows // (tile.cluster * tile.consumers * ROWS)) * H * sequences
    asks = _asks(tile, causal, packed)
    # Where nobody asks, only one falling line from the longest to the shortest makes all have equal shares.
    together = max(1, MOST_BYTES_TOGETHER // (keys * D * 4)) * (H // KV) if asks else H * sequences
    left, right = window or (0, 0)
    return _Call(
        _kernel(tile, head, D, q.dtype is torch.float16, causal, window is not None, packed, device),
        tile.cluster * min(clusters, _multiprocessors(device) // tile.cluster),
        (1, 1, tile.block_n // tile.cluster, PANEL),
        _counters(device) if asks else repeat(None),
        (
            sequences,
            H,
            H // KV,
            rows,
            keys,
            left,
            0 if causal else right,
            min(together, H * sequences),
            log2(e) / sqrt(D),
            o.stride(2),
            o.stride(1),
            0 if packed else o.stride(0),
            lse.stride(1),
            0 if packed else lse.stride(0),
        ),
    )


@functools.cache
def _kernel(
    tile: Tile, head: int, D: int, float16: bool, causal: bool, window: bool, packed: bool, device: int
) -> Prepared:
    defines = defines_of(tile, head, D, float16, causal, window, packed)
    threads = (tile.consumers + 1) * 128
    return prepare(
        SOURCE,
        "attention_wgmma",
        block=threads,
        shared_bytes=tile.shared_bytes(head),
        cluster=tile.cluster,
        defines=defines,
    )


def defines_of(
    tile: Tile, head: int, D: int, float16: bool, causal: bool, window: bool, packed: bool
) -> dict[str, int]:
    """Return the macros of the kernel."""
    return {
        "HEAD": head,
        "HEAD_SIZE": D,
        "BLOCK_N": tile.block_n,
        "STAGES": tile.stages,
        "CONSUMERS": tile.consumers,
        "FLOAT16": int(float16),
        "CAUSAL": int(causal),
        "WINDOW": int(window),
        "PACKED": int(packed),
        "OVERLAP": int(tile.overlap),
        "TURNS": int(tile.turns),
        "SLACK": tile.slack,
        "BY_HAND": tile.by_hand,
        "ORDER": int(tile.order),
        "ASKS": int(_asks(tile, causal, packed)),
        "CLUSTER": tile.cluster,
        "OWN_PLACE": int(tile.own_place),
    }


def _asks(tile: Tile, causal: bool, packed: bool) -> bool:
    return tile.asks and tile.cluster == 1 and (causal or packed)


@functools.cache
def _counters(device: int) -> Iterator[torch.Tensor | None]:
    """Zeros, one after the other and then from the beginning: of calls on several streams each has its own."""
    zeros = torch.zeros(COUNTERS, dtype=torch.int32, device=device if device >= 0 else "cpu")
    if zeros.is_cuda:
        torch.cuda.current_stream(device).synchronize()  # whatever stream the next call is on
    return cycle(zeros.unbind())


@functools.cache
def _multiprocessors(device: int) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


def _check(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool,
    window: tuple[int, int] | None,
    begins: tuple[torch.Tensor, torch.Tensor, int, int] | None,
    tile: Tile | None,
) -> None:
    """Refuse what `attend` does not take, but for what `tensor_map` refuses itself."""
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if not isinstance(tensor, torch.Tensor) or tensor.dtype not in DTYPES or tensor.dtype is not q.dtype:
            wanted = "bfloat16 or float16, one type for q, k and v"
            raise TypeError(f"{name}: expected {wanted}, got {getattr(tensor, 'dtype', tensor)!r}")
        if tensor.dim() != 4:
            raise ValueError(f"{name}: expected four dimensions, got shape {tuple(tensor.shape)}")
        if tensor.device != q.device:
            raise ValueError(f"{name}: expected a tensor on {q.device}, got {tensor.device}")
    if q.is_cuda and q.device.index != (here := torch.cuda.current_device()):
        raise ValueError(
            f"q: expected a tensor on cuda:{here}, the current GPU, got one on {q.device}: "
            f"call torch.cuda.set_device({q.device.index}) first"
        )
    B, H, Nq, D = q.shape
    KV, Nk = k.shape[1], k.shape[2]
    if k.shape != v.shape or k.shape[0] != B or k.shape[3] != D:
        raise ValueError(
            f"k, v: expected ({B}, KV, Nk, {D}) for both, got {tuple(k.shape)} and {tuple(v.shape)}"
        )
    if D not in SIZES:
        raise ValueError(f"q: expected D = 64, 96, 128 or 256, got D={D}")
    if KV == 0 or H % KV:
        raise ValueError(f"q, k: expected heads of q in groups of those of k, got {H} and {KV}")
    if max(Nq, Nk) > MAX_N:
        raise ValueError(f"q, k: expected at most {MAX_N} rows and keys, got {Nq} and {Nk}")
    if window is not None and (min(window) < 0 or (causal and window[1] != 0)):
        raise ValueError(
            f"window: expected left and right from 0 on, right 0 with causal, got {window}, causal={causal}"
        )
    if begins is not None and B != 1:
        raise ValueError(f"begins: expected packed sequences in q, k and v of B = 1, got B={B}")
    if begins is not None:
        for name, places in zip(("q", "k"), begins[:2], strict=True):
            if places.dtype is not torch.int32 or places.dim() != 1 or len(places) != len(begins[0]):
                raise ValueError(
                    f"begins: expected one int32 for each sequence of {name} and one for the end, "
                    f"got {places.dtype} of shape {tuple(places.shape)}"
                )
    if tile is not None and tile.cluster > 1 and begins is not None:
        raise ValueError("tile: expected cluster=1 with packed sequences")
    if not is_hopper(q.device):
        raise RuntimeError(f"q: expected a Hopper GPU (compute capability 9.0), got {q.device}")
