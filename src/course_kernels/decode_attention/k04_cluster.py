"""Decode attention, kernel 4: the launcher of k04_cluster.cu. Read that file first.

Contract  problem.py, bfloat16 or float16, at most 16 query heads for a head of the cache
"""

from __future__ import annotations

import functools
from pathlib import Path

import torch

from course_kernels.cuda.hopper_card import is_hopper
from course_kernels.cuda.prepared import Prepared, prepare
from course_kernels.decode_attention.arguments import sizes_of
from course_kernels.decode_attention.k01_one_program import scale_of
from course_kernels.problem import Workload

SOURCE = Path(__file__).with_suffix(".cu")
DTYPES = (torch.bfloat16, torch.float16)
MOST_SHARE = 16  # rows of a multiply on tensor cores
THREADS = 128
TOKENS = 16  # that a warp takes at a time
WARPS = 4
STAGES = 3  # tiles of a warp under way: 96 KB for a block of D = 128
RESIDENT = 2  # blocks of a multiprocessor
CLUSTERS = (1, 2, 4, 8)  # blocks of a cluster that every card of this kind has room for


def supports(w: Workload) -> bool:
    """Return whether this kernel takes a workload."""
    return w.dtype in ("bfloat16", "float16") and w.H <= MOST_SHARE * w.KV


def blocks_for(heads: int, N: int, multiprocessors: int) -> int:
    """Blocks that share a head: as few as keep most of the card busy. A matter of shapes, never of lengths."""
    places = RESIDENT * multiprocessors
    best, found = 0.0, 1
    for blocks in CLUSTERS:
        if blocks > 1 and blocks * WARPS * TOKENS // 2 > N:
            break  # half of the warps would have nothing to do
        all_blocks = heads * blocks
        busy = all_blocks / (-(-all_blocks // places) * places)
        if busy > 1.05 * best:  # a further block must pay for being added
            best, found = busy, blocks
    return found


def decode_attention(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    lengths: torch.Tensor,
    *,
    blocks: int | None = None,
    early: bool = False,
) -> torch.Tensor:
    """Attention of one query for each sequence and head over that sequence's cache.

    Args:
        q: (B, H, D) bfloat16 or float16, contiguous, D = 64 or 128.
        k_cache, v_cache: (B, KV, N, D), the same type, contiguous; H is a multiple of KV, at most 16 times it.
        lengths: (B,) int32, on the device: the tokens that are there, 0 to N. More count as N.
        blocks: that share a head: 1, 2, 4 or 8; without it, what suits the card and the shapes.
        early: begin while the last kernel of the stream still runs, if that one says when. It may write q, and of the
            caches each sequence's newest token, and nothing else that is read here.
    Returns:
        (B, H, D), the same type: every row a weighted mean of rows of v_cache, or zeros where the length is 0.
        The same bits every time on one kind of card.
    Raises:
        TypeError, ValueError: see `sizes_of`; float32; more than 16 query heads for a head of the cache; other blocks.
        RuntimeError: a GPU that is no Hopper.
    """
    B, H, KV, N, D = sizes_of(q, k_cache, v_cache, lengths)
    if q.dtype not in DTYPES:
        raise TypeError(f"q: expected bfloat16 or float16, got {str(q.dtype).removeprefix('torch.')}")
    if H > MOST_SHARE * KV:
        raise ValueError(f"q: expected H at most {MOST_SHARE} times KV={KV}, got H={H}")
    device = q.get_device()
    if device >= 0 and not is_hopper(q.device):
        raise RuntimeError(f"decode_attention: expected a GPU of compute capability 9.0, got {q.device}")
    if blocks is None:
        blocks = _blocks(B * KV, N, device)
    elif blocks not in CLUSTERS:
        raise ValueError(f"blocks: expected one of {CLUSTERS}, got {blocks}")
    o = torch.empty_like(q)
    kernel = _prepared(device, q.dtype is torch.float16, D, H // KV, blocks, early)
    kernel((blocks, KV, B), q, k_cache, v_cache, lengths, o, N, scale_of(D))
    return o


@functools.cache
def _blocks(heads: int, N: int, device: int) -> int:
    return blocks_for(heads, N, torch.cuda.get_device_properties(device).multi_processor_count)


def shared_bytes_of(D: int, share: int) -> int:
    """Shared memory of a block: the ring, which becomes sums."""
    ring = WARPS * STAGES * 2 * TOKENS * 2 * D
    return max(ring, (WARPS + 1) * share * (D + 2) * 4)


def defines_of(float16: bool, D: int, share: int, blocks: int, early: bool) -> dict[str, int]:
    """Return the macros of the kernel."""
    return {
        "FLOAT16": int(float16),
        "D": D,
        "SHARE": share,
        "BLOCKS": blocks,
        "STAGES": STAGES,
        "EARLY": int(early),
    }


@functools.cache
def _prepared(device: int, float16: bool, D: int, share: int, blocks: int, early: bool) -> Prepared:
    """Return the kernel, ready for the current GPU, which is `device`."""
    return prepare(
        SOURCE,
        "decode_attention_cluster",
        block=THREADS,
        shared_bytes=shared_bytes_of(D, share),
        cluster=blocks,
        defines=defines_of(float16, D, share, blocks, early),
        before_the_last_grid_ended=early,
    )
