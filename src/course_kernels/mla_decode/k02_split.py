"""MLA decode, kernel 2: the tokens of a sequence are shared out among several programs, and a second kernel adds them.

Contract  problem.py
Idea      every program lets a part of the tokens pass by and leaves its means and their weight in memory; then a
          program for each head merges the parts, as an online softmax merges its steps
Against   k01_one_program, which has B * ceil(H / 64) programs, however many multiprocessors there are
Cost      every part writes and reads back 513 numbers of float32 for each head: for 64 heads as many bytes as 228
          tokens of the cache. With sequences enough to fill the card nothing is cut, and no second kernel follows
Limits    every sequence's room is cut into as many parts, whatever its length: the longest one still ends last
Next      k03_wgmma shares out pages and not rooms; and multiplies and weighs at once
Source    Dao, Haziza, Massa & Sizov 2023, https://pytorch.org/blog/flash-decoding/
"""

from __future__ import annotations

from functools import cache as cached

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.mla_decode.arguments import sizes_of
from course_kernels.mla_decode.k01_one_program import (
    attend,
    constants_of,
    rows_of,
    scale_of,
    store_answers,
    supports,
)
from course_kernels.mla_decode.problem import LATENT

__all__ = ["mla_decode", "splits_for", "supports"]

# --- on the device -----------------------------------------------------------


@triton.jit
def split_kernel(
    Q, cache, table_ptr, lengths_ptr, O, parts, part_lse, H, MOST, scale,
    ROWS: tl.constexpr, STEP: tl.constexpr, PAGE: tl.constexpr, LATENT: tl.constexpr, ROPE: tl.constexpr,
):  # fmt: skip
    """One program takes a part of one sequence for a block of heads."""
    block, part, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    splits = tl.num_programs(1)
    last = tl.minimum(tl.load(lengths_ptr + b), MOST * PAGE)
    # Whole steps of the tokens that are there, as evenly as they go: a short sequence in a large room is cut, too.
    each = tl.cdiv(tl.cdiv(last, STEP), splits) * STEP
    first = part * each
    last = tl.minimum(first + each, last)
    table = table_ptr + b.to(tl.int64) * MOST
    acc, m, l = attend(Q, cache, table, b, H, block, first, last, scale, ROWS, STEP, PAGE, LATENT, ROPE)
    if splits == 1:
        store_answers(O, b, H, block, acc, l)
    else:
        store_answers(parts, b * splits + part, H, block, acc, l)
        head = block * ROWS + tl.arange(0, ROWS)
        # A part without tokens weighs 2**-inf: nothing.
        lse = tl.where(l == 0.0, -float("inf"), m + tl.math.log2(tl.where(l == 0.0, 1.0, l)))
        tl.store(part_lse + (b.to(tl.int64) * splits + part) * H + head, lse, mask=head < H)


@triton.jit
def merge_kernel(parts, part_lse, O, splits, LATENT: tl.constexpr):
    """One program adds the parts of one head of one sequence, in their order."""
    head, H, b = tl.program_id(0), tl.num_programs(0), tl.program_id(1).to(tl.int64)
    column = tl.arange(0, LATENT)
    top = -float("inf")
    for part in range(splits):
        top = tl.maximum(top, tl.load(part_lse + (b * splits + part) * H + head))
    top = tl.where(top == -float("inf"), 0.0, top)
    total = 0.0
    acc = tl.zeros([LATENT], tl.float32)
    for part in range(splits):
        place = (b * splits + part) * H + head
        weight = tl.math.exp2(tl.load(part_lse + place) - top)
        total += weight
        acc += weight * tl.load(parts + place * LATENT + column)
    o = acc / tl.where(total == 0.0, 1.0, total)
    tl.store(O + (b * H + head) * LATENT + column, o.to(O.dtype.element_ty))


# --- on the host -------------------------------------------------------------


@cached
def splits_for(device: torch.device, programs: int, pages: int) -> int:
    """Into how many parts each sequence is cut: a matter of shapes, never of lengths.

    As many as make all programs run at once, one to a multiprocessor. Never more than there are pages.

    Args:
        device: which card.
        programs: of uncut sequences.
        pages: of the longest sequence there is room for.
    """
    return min(max(multiprocessors(device) // programs, 1), pages)


def multiprocessors(device: torch.device) -> int:
    """Return how many there are; the interpreter runs one program after the other."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


def mla_decode(
    q: torch.Tensor,
    cache: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
    *,
    splits: int | None = None,
) -> torch.Tensor:
    """Attention of one query for each sequence and head over that sequence's rows.

    Args:
        q: (B, H, 576) bfloat16 or float16, contiguous; B <= 8192, H <= 128.
        cache: (PAGES, 64, 576), the same type, contiguous.
        block_table: (B, MOST) int32, on the device: which pages a sequence has, in the order of its tokens.
        lengths: (B,) int32, on the device: the tokens that are there, 0 to MOST * 64. More count as so many.
        splits: into how many parts a sequence is cut, at least 1; without it, what suits the card and the shapes.
    Returns:
        (B, H, 512), the same type: every row a weighted mean of the first 512 numbers of the cache's rows, or zeros
        where the length is 0. The same bits every time on one kind of card.
    Raises:
        TypeError, ValueError: see `sizes_of`; fewer splits than one.
    """
    B, H, MOST = sizes_of(q, cache, block_table, lengths)
    blocks = triton.cdiv(H, rows_of(H))
    if splits is None:
        splits = splits_for(q.device, blocks * B, MOST)
    elif splits < 1:
        raise ValueError(f"splits: expected at least 1, got {splits}")
    o = torch.empty((B, H, LATENT), dtype=q.dtype, device=q.device)
    # One place more than needed where nothing is cut: a kernel wants an address.
    places = B * splits * H if splits > 1 else 1
    parts = torch.empty(places, LATENT, dtype=torch.float32, device=q.device)
    part_lse = torch.empty(places, dtype=torch.float32, device=q.device)
    split_kernel[(blocks, splits, B)](
        q, cache, block_table, lengths, o, parts, part_lse, H, MOST, scale_of(), **constants_of(H)
    )
    if splits > 1:
        merge_kernel[(H, B)](parts, part_lse, o, splits, LATENT=LATENT, num_warps=4)
    return o
