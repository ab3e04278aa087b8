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

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.problem import Workload
from course_kernels.sparse_attention.arguments import DTYPES, MOST_INDEX_HEADS, sizes_of
from course_kernels.sparse_attention.parts import Loop, attend, steps_of_part, store_part

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


# --- on the host -------------------------------------------------------------


def takes(w: Workload) -> bool:
    """Return whether the launchers of this folder take the sizes and types of a workload."""
    return w.dtype in {str(dtype).removeprefix("torch.") for dtype in DTYPES} and w.H_I <= MOST_INDEX_HEADS


def supports(w: Workload) -> bool:
    """Return whether attention over everything is the answer, whatever TOP is: tokens not chosen weigh nothing."""
    return takes(w) and bool(w.dims.get("peaked", False))


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
        loop: `WIDE` or `NARROW` of parts.py; without it, what suits the card and the shapes.
        splits: into how many parts the tokens are cut, at most; without it, what suits the card and the shapes.
    Returns:
        (B, H, 512), the same type: every row a weighted mean of the first 512 numbers of rows of latent. The same bits
        every time on one kind of card.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    sizes = sizes_of(index_q, index_weight, index_k, q, latent, top)
    return attend(dense_kernel, q, sizes.N, (latent,), loop, splits)
