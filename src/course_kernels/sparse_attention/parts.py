"""Attention over parts of a sequence's tokens: how they are cut, what a part leaves in memory, the merge, the launch.

The kernels of this folder that attend differ in where a token lies; this is what they share. A program takes a block of
heads and a part of the tokens, and where there are several parts, a second kernel merges them as an online softmax
merges its steps.

Source    Dao, Haziza, Massa & Sizov 2023, https://pytorch.org/blog/flash-decoding/
"""

from __future__ import annotations

from functools import cache
from math import e, log2, sqrt
from typing import Any, NamedTuple

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.sparse_attention.problem import HEAD, LATENT, POSITION


class Loop(NamedTuple):
    """Loop settings of a program over its tokens.

    Attributes:
        heads: of the query, rows of its products.
        step: tokens of a turn.
        warps, stages: of the loop.
        resident: programs that a multiprocessor holds at once.
    """

    heads: int
    step: int
    warps: int
    stages: int
    resident: int


# 64 heads are the rows of a warpgroup's product, and two warpgroups share the 64 * 512 sums, 128 registers of a thread.
# Queries and two steps of 64 rows are 216 KB of the 227 KB of shared memory.
WIDE = Loop(heads=64, step=64, warps=8, stages=2, resident=1)
WIDE_CARDS = ((9, 0),)
# 16 heads: four times as many programs without one more part to merge, where there are few tokens; L2 is asked for a
# row four times as often. The buffers of its steps are 91 KB: two programs find room, and one on every card from Ampere
# on.
NARROW = Loop(heads=16, step=32, warps=4, stages=3, resident=2)
# A card that is so full is full: 64 blocks of heads in two parts each are 128 programs for 132 multiprocessors.
BUSY = 0.9
# Tokens of a part, at least: at 128 heads, what is written of it and read back is then less than four times its rows.
LEAST_PART = 128
WAVES = 4  # where the blocks of heads alone do not fit at once: times as many programs as do, so the last are short

MERGED = 16  # parts that the merge reads together: 64 numbers in each thread, one wait for them all


# --- on the device -----------------------------------------------------------


@triton.jit
def steps_of_part(tokens, STEP: tl.constexpr):
    """Return the first and the last token of this program's part: whole steps, as evenly as they go."""
    part, parts = tl.program_id(1), tl.num_programs(1)
    steps = tl.cdiv(tokens, STEP)
    return part * steps // parts * STEP, tl.minimum((part + 1) * steps // parts * STEP, tokens)


@triton.jit
def store_part(O, parts, b, first_head, H, acc, m, l, ALONE: tl.constexpr):
    """Store the answers, where there is one part; else leave its sums, maxima and weights at its place."""
    HEADS: tl.constexpr = acc.shape[0]
    LATENT: tl.constexpr = acc.shape[1]
    head = first_head + tl.arange(0, HEADS)
    d = tl.arange(0, LATENT)[None, :]
    there = head < H
    if ALONE:
        o = acc / l[:, None]
        tl.store(O + (b * H + head)[:, None] * LATENT + d, o.to(O.dtype.element_ty), mask=there[:, None])
    else:
        at = (b * tl.num_programs(1) + tl.program_id(1)) * H + head
        count = tl.num_programs(2).to(tl.int64) * tl.num_programs(1) * H
        tl.store(parts + at[:, None] * LATENT + d, acc, mask=there[:, None])
        tl.store(parts + count * LATENT + at, m, mask=there)
        tl.store(parts + count * (LATENT + 1) + at, l, mask=there)


@triton.jit
def merge_kernel(parts, O, splits, H, LATENT: tl.constexpr, MERGED: tl.constexpr):
    """One program merges the parts of one head of one sequence, in their order."""
    head, b = tl.program_id(0), tl.program_id(1).to(tl.int64)
    count = tl.num_programs(1).to(tl.int64) * splits * H
    d = tl.arange(0, LATENT)[None, :]
    m = tl.full([], -float("inf"), tl.float32)
    l = tl.zeros([], tl.float32)
    acc = tl.zeros([LATENT], tl.float32)
    for first in tl.range(0, splits, MERGED):
        part = first + tl.arange(0, MERGED)
        there = part < splits
        at = (b * splits + part) * H + head  # [MERGED]
        a_of = tl.load(parts + at[:, None] * LATENT + d, mask=there[:, None], other=0.0)
        m_of = tl.load(parts + count * LATENT + at, mask=there, other=-float("inf"))
        l_of = tl.load(parts + count * (LATENT + 1) + at, mask=there, other=0.0)
        m_new = tl.maximum(m, tl.max(m_of, 0))
        weight = tl.math.exp2(m_of - m_new)
        repair = tl.math.exp2(m - m_new)
        l = l * repair + tl.sum(l_of * weight, 0)
        acc = acc * repair + tl.sum(a_of * weight[:, None], 0)
        m = m_new
    o = (acc / l).to(O.dtype.element_ty)
    tl.store(O + (b * H + head) * LATENT + tl.arange(0, LATENT), o)


# --- on the host -------------------------------------------------------------


@cache
def loop_of(device: torch.device, B: int, H: int, tokens: int) -> Loop:
    """Return the wide loop where the card has room for it, and tokens enough to be full of it; else the narrow one."""
    large = device.type == "cuda" and torch.cuda.get_device_capability(device) in WIDE_CARDS
    programs = B * triton.cdiv(H, WIDE.heads) * (tokens // (2 * LEAST_PART))
    full = programs >= int(BUSY * multiprocessors(device))
    return WIDE if large and WIDE.heads <= H and full else NARROW


@cache
def splits_for(device: torch.device, loop: Loop, blocks: int, tokens: int) -> int:
    """Into how many parts the tokens are cut: as many as make all programs fit at once, so that they end together.

    Args:
        device: which card.
        loop: how a program goes.
        blocks: B times the blocks of heads.
        tokens: of a sequence.
    """
    at_once = loop.resident * multiprocessors(device)
    splits = at_once // blocks if blocks <= at_once else triton.cdiv(WAVES * at_once, blocks)
    return max(1, min(splits, tokens // LEAST_PART))


def multiprocessors(device: torch.device) -> int:
    """Return how many there are; the interpreter runs one program after the other."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


def scale_of() -> float:
    """Return what a product of two rows is multiplied by; exp2 takes the place of exp."""
    return log2(e) / sqrt(HEAD)


def attend(
    kernel: Any, q: torch.Tensor, tokens: int, rows: tuple[Any, ...], loop: Loop | None, splits: int | None
) -> torch.Tensor:
    """Run a kernel of parts over so many tokens of each sequence, then the merge: (B, H, 512).

    Args:
        kernel: one that takes Q, then `rows`, then what is named below.
        q: (B, H, 576), checked.
        tokens: that the queries of a sequence see.
        rows: the arguments between: where the tokens lie.
        loop, splits: settings; None for what suits the card and the shapes.
    """
    B, H, _ = q.shape
    loop = loop or loop_of(q.device, B, H, tokens)
    blocks = triton.cdiv(H, loop.heads)
    splits = splits or splits_for(q.device, loop, B * blocks, tokens)
    splits = min(splits, triton.cdiv(tokens, loop.step))  # no part is without a token
    o = torch.empty(B, H, LATENT, dtype=q.dtype, device=q.device)
    # A single part answers itself: nobody looks at `parts`.
    parts = o if splits == 1 else q.new_empty(B * splits * H * (LATENT + 2), dtype=torch.float32)
    kernel[(blocks, splits, B)](
        q, *rows, o, parts, tokens, H, scale_of(),
        HEADS=loop.heads, STEP=loop.step, LATENT=LATENT, POSITION=POSITION, ALONE=splits == 1,
        num_warps=loop.warps, num_stages=loop.stages,
    )  # fmt: skip
    if splits > 1:
        merge_kernel[(H, B)](parts, o, splits, H, LATENT=LATENT, MERGED=MERGED)
    return o
