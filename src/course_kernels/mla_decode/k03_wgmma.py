"""MLA decode, kernel 3: the launcher of k03_wgmma.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from math import e, log2
from pathlib import Path

import torch

from course_kernels.cuda.hopper_card import is_hopper
from course_kernels.cuda.prepared import Prepared, prepare, tensor_map
from course_kernels.mla_decode.arguments import MOST_HEADS, sizes_of
from course_kernels.mla_decode.problem import LATENT, PAGE, ROW, SCALE
from course_kernels.problem import Workload

SOURCE = Path(__file__).with_suffix(".cu")
ROWS = 64  # heads of a block: what one instruction multiplies
PANEL = 64  # numbers of a row that lie together in shared memory: 128 bytes
THREADS = 3 * 128
THREADS_THAT_ADD = 256
HEADS_THAT_ADD = 8  # of a block, one for each warp
LEAST_PAGES = 4  # of a group; half as many took longer for one sequence of 128 pages
FEW_HEADS = 16 * 128  # of all sequences: where four warps add up the parts of one, and not one

# 64 rows of Q and two pages of 64 rows; from thread to thread the weights of a page in 16 bits and two maxima; two sets
# of sums; 33 barriers, and 8 bytes that nobody has.
SHARED_BYTES = 3 * 64 * ROW * 2 + 128 * (64 + 8) + 2 * 2 * ROWS * 4 + 34 * 8


@dataclass(frozen=True)
class Ideas:
    """Ideas that are in.

    Attributes:
        cluster: whether the two blocks that have a page's 128 heads each bring 32 rows of it to both; else each asks
            for all of it.
        slack: the power of two by which a maximum may grow before the answer is repaired; 0 to repair whenever it grew.
        once: whether L2 is told that a page is read once.
        ahead: whether the page after next comes to L2 while a page comes to its block.
    """

    cluster: bool = False
    slack: int = 8
    once: bool = False
    ahead: bool = False


def supports(w: Workload) -> bool:
    """Return whether this kernel takes a workload."""
    return w.dtype in ("bfloat16", "float16") and w.H <= MOST_HEADS


def mla_decode(
    q: torch.Tensor,
    cache: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
    *,
    groups: int | None = None,
    ideas: Ideas | None = None,
) -> torch.Tensor:
    """Attention of one query for each sequence and head over that sequence's rows.

    Args:
        q: (B, H, 576) bfloat16 or float16, contiguous; B <= 8192, H <= 128.
        cache: (PAGES, 64, 576), the same type, contiguous.
        block_table: (B, MOST) int32, on the device: which pages a sequence has, in the order of its tokens.
        lengths: (B,) int32, on the device: the tokens that are there, 0 to MOST * 64. More count as so many.
        groups: of one block or two, which have all heads together: among how many the work is shared out, at least 1;
            without it, `groups_of`.
        ideas: which are in; without it, those of `Ideas()`.
    Returns:
        (B, H, 512), the same type: every row a weighted mean of the first 512 numbers of the cache's rows, or zeros
        where the length is 0. The same bits every time on one kind of card.
    Raises:
        TypeError, ValueError: see `sizes_of`; fewer groups than one.
        RuntimeError: a GPU that is no Hopper.
    """
    B, H, MOST = sizes_of(q, cache, block_table, lengths)
    device = q.get_device()
    if not is_hopper(q.device):
        raise RuntimeError(f"q: expected a Hopper GPU (compute capability 9.0), got {q.device}")
    blocks, ideas = -(-H // ROWS), ideas or Ideas()
    if groups is None:
        groups = groups_of(B, _multiprocessors(device) // blocks, pages=B * MOST)
    elif groups < 1:
        raise ValueError(f"groups: expected at least 1, got {groups}")
    o = torch.empty((B, H, LATENT), dtype=q.dtype, device=q.device)
    # For each group a part of a sequence that began before it, and of one that goes on; behind them their weights.
    parts = torch.empty(2 * groups * H * (LATENT + 1), dtype=torch.float32, device=q.device)
    part_lse = parts[2 * groups * H * LATENT :]
    first_and_last = torch.empty((B, 2), dtype=torch.int32, device=q.device)
    attend, add = _kernels(device, blocks, q.dtype is torch.float16, ideas)
    attend(
        groups * blocks,
        tensor_map(q, (1, ROWS, PANEL)),
        tensor_map(cache.view(-1, ROW), (PAGE // _cluster(blocks, ideas), PANEL)),
        block_table, lengths, o, parts, part_lse, first_and_last, B, H, MOST, SCALE * log2(e),
    )  # fmt: skip
    pieces = 4 if B * H <= FEW_HEADS else 1
    add((-(-H // HEADS_THAT_ADD), B, pieces), parts, part_lse, first_and_last, o, H)
    return o


def groups_of(B: int, places: int, *, pages: int) -> int:
    """Return among how many groups of blocks B sequences are shared out, on a card that holds `places` at once.

    All of them. Fewer, if they would get less than LEAST_PAGES each of the pages that there is room for: a part then
    costs more than it saves; but one for each sequence. And up to one in 32 less, if sequences of one length then come
    out even and no parts must be added.
    """
    places = min(places, max(B, pages // LEAST_PAGES))
    for groups in range(places, places - places // 32 - 1, -1):
        if groups and B % groups == 0:
            return groups
    return max(places, 1)


def _cluster(blocks: int, ideas: Ideas) -> int:
    return blocks if ideas.cluster else 1


def defines_of(blocks: int, float16: bool, ideas: Ideas) -> dict[str, int]:
    """Return the macros of the kernels."""
    return {
        "BLOCKS": blocks,
        "CLUSTER": _cluster(blocks, ideas),
        "FLOAT16": int(float16),
        "SLACK": ideas.slack,
        "ONCE": int(ideas.once),
        "AHEAD": int(ideas.ahead),
    }


@functools.cache
def _multiprocessors(device: int) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


@functools.cache
def _kernels(device: int, blocks: int, float16: bool, ideas: Ideas) -> tuple[Prepared, Prepared]:
    """Return both kernels, ready for the current GPU, which is `device`."""
    defines = defines_of(blocks, float16, ideas)
    attend = prepare(
        SOURCE,
        "mla_decode_wgmma",
        block=THREADS,
        shared_bytes=SHARED_BYTES,
        cluster=_cluster(blocks, ideas),
        defines=defines,
    )
    add = prepare(
        SOURCE,
        "mla_decode_add_parts",
        block=THREADS_THAT_ADD,
        defines=defines,
        before_the_last_grid_ended=True,
    )
    return attend, add
