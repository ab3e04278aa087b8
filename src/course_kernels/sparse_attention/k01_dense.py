"""Sparse attention, kernel 1: attention over every token, whatever the index says; what a choice has to beat.

Contract  problem.py, where it is right: every token is chosen, or those that are not have no weight
Idea      all heads share one row of the cache, so that they are the rows of one product, and the row is fetched once
          for its part in keys and values. The tokens of a sequence are cut into parts for many programs; a second
          kernel merges the parts, as an online softmax merges its steps
Cost      every row of the cache crosses memory once, and L2 as often as there are blocks of heads. A part writes and
          reads back 514 numbers for each head
Limits    at 128 heads some 240 operations for each byte: near the ridge of a Hopper, so a card is short of both.
          Nothing of the index is read, and a row that nobody chose is: if it is NaN, so is the answer
Next      k02_in_pieces asks the index first
Source    DeepSeek-AI 2024, arXiv:2405.04434, section 2.1 (the latent cache); Dao 2023, arXiv:2307.08691, algorithm 1;
          Dao, Haziza, Massa & Sizov 2023, https://pytorch.org/blog/flash-decoding/ (parts)
"""

from __future__ import annotations

from functools import cache
from math import e, log2, sqrt
from typing import Any, NamedTuple

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.problem import Workload
from course_kernels.sparse_attention.arguments import DTYPES, MOST_INDEX_HEADS, sizes_of
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
# Queries and two steps of 64 rows are 219 KB of the 227 KB of shared memory.
WIDE = Loop(heads=64, step=64, warps=8, stages=2, resident=1)
WIDE_CARDS = ((9, 0), (10, 0))
# 16 heads: four times as many programs without one more part to merge, where there are few tokens; L2 is asked for a
# row four times as often. The buffers of its steps are 92 KB: two programs find room, and one on every card from Ampere
# on.
NARROW = Loop(heads=16, step=32, warps=4, stages=3, resident=2)
# A card that is so full is full: 64 blocks of heads in two parts each are 128 programs for 132 multiprocessors.
BUSY = 0.9
# Tokens of a part, at least: what it leaves to be merged is then less than four times what it reads.
LEAST_PART = 128
WAVES = 4  # where the blocks of heads alone do not fit at once: times as many programs as do, so the last are short

MERGED = 16  # parts that the merge reads together: 64 numbers in each thread, one wait for them all


# --- on the device -----------------------------------------------------------


@triton.jit
def load_queries(Q, b, first_head, H, HEADS: tl.constexpr, LATENT: tl.constexpr, POSITION: tl.constexpr):
    """Return a block of a sequence's queries: [HEADS, LATENT] and [HEADS, POSITION], zeros past the last head."""
    head = first_head + tl.arange(0, HEADS)
    row = Q + (b * H + head)[:, None] * (LATENT + POSITION)
    there = (head < H)[:, None]
    of_latent = tl.load(row + tl.arange(0, LATENT)[None, :], mask=there, other=0.0)
    return of_latent, tl.load(row + LATENT + tl.arange(0, POSITION)[None, :], mask=there, other=0.0)


@triton.jit
def fold(q_latent, q_position, C, n, there, scale, acc, m, l):
    """Let the tokens at positions n [STEP] of the cache C pass by: sums, maxima and weights behind them."""
    LATENT: tl.constexpr = q_latent.shape[1]
    POSITION: tl.constexpr = q_position.shape[1]
    row = C + n[:, None] * (LATENT + POSITION)
    # Past the end nothing is read: a weight of zero times the NaN that may lie there is NaN.
    c = tl.load(row + tl.arange(0, LATENT)[None, :], mask=there[:, None], other=0.0)  # [STEP, LATENT]
    r = tl.load(row + LATENT + tl.arange(0, POSITION)[None, :], mask=there[:, None], other=0.0)
    s = tl.dot(q_position, r.T, tl.dot(q_latent, c.T)) * scale  # [HEADS, STEP]
    s = tl.where(there[None, :], s, -float("inf"))
    # A step has a token that is there: m_new is never -inf, and no exponent is NaN.
    m_new = tl.maximum(m, tl.max(s, 1))
    p = tl.math.exp2(s - m_new[:, None])
    repair = tl.math.exp2(m - m_new)
    l = l * repair + tl.sum(p, 1)
    acc = tl.dot(p.to(c.dtype), c, acc * repair[:, None])
    return acc, m_new, l


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
def dense_kernel(
    Q, C, O, parts, tokens, H, scale,
    HEADS: tl.constexpr, STEP: tl.constexpr, LATENT: tl.constexpr, POSITION: tl.constexpr, ALONE: tl.constexpr,
):  # fmt: skip
    """One program takes a part of one sequence's tokens for a block of heads."""
    b, first_head = tl.program_id(2).to(tl.int64), tl.program_id(0) * HEADS
    q_latent, q_position = load_queries(Q, b, first_head, H, HEADS, LATENT, POSITION)
    C += b * tokens * (LATENT + POSITION)
    m = tl.full([HEADS], -float("inf"), tl.float32)  # counts in powers of two
    l = tl.zeros([HEADS], tl.float32)
    acc = tl.zeros([HEADS, LATENT], tl.float32)
    first, last = steps_of_part(tokens, STEP)
    for start in tl.range(first, last, STEP):
        n = start + tl.arange(0, STEP)
        acc, m, l = fold(q_latent, q_position, C, n, n < last, scale, acc, m, l)
    store_part(O, parts, b, first_head, H, acc, m, l, ALONE)


@triton.jit
def merge_kernel(parts, O, splits, H, LATENT: tl.constexpr, MERGED: tl.constexpr):
    """One program merges the parts of one head of one sequence, in their order."""
    head, b = tl.program_id(0), tl.program_id(1).to(tl.int64)
    count = tl.num_programs(1).to(tl.int64) * splits * H
    d = tl.arange(0, LATENT)[None, :]
    m = -float("inf")
    l = 0.0
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


def takes(w: Workload) -> bool:
    """Return whether the launchers of this folder take the sizes and types of a workload."""
    return w.dtype in {str(dtype).removeprefix("torch.") for dtype in DTYPES} and w.H_I <= MOST_INDEX_HEADS


def supports(w: Workload) -> bool:
    """Return whether attention over everything is the answer, whatever TOP is: tokens not chosen weigh nothing."""
    return takes(w) and bool(w.dims.get("peaked", False))


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
        kernel: `dense_kernel`, or one with other arguments between Q and O.
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


def sparse_attention(
    index_q: torch.Tensor,
    index_weight: torch.Tensor,
    index_k: torch.Tensor,
    q: torch.Tensor,
    latent: torch.Tensor,
    *,
    top: int,
    loop: Loop | None = None,
    splits: int | None = None,
) -> torch.Tensor:
    """Attention of one query for each sequence and head over all tokens of that sequence's cache.

    Args:
        index_q, index_weight, index_k: (B, H_I, 128), (B, H_I), (B, N, 128): checked, and not read.
        q: (B, H, 576) bfloat16 or float16, contiguous.
        latent: (B, N, 576), the same type, contiguous.
        top: checked, and not used.
        loop: `WIDE` or `NARROW`; without it, what suits the card and the shapes.
        splits: into how many parts the tokens are cut, at most; without it, what suits the card and the shapes.
    Returns:
        (B, H, 512), the same type: every row a weighted mean of the first 512 numbers of rows of latent. The same bits
        every time on one kind of card.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    sizes = sizes_of(index_q, index_weight, index_k, q, latent, top)
    return attend(dense_kernel, q, sizes.N, (latent,), loop, splits)
