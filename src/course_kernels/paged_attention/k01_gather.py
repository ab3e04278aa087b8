"""Paged attention, kernel 1: a step of the loop asks the table where each of its tokens lies.

Contract  problem.py
Idea      the loop of FlashAttention over the tokens of a sequence, and between a token and its address one more load:
          the page that it lies in. All queries that share a head of the cache are the rows of one product
Cost      what is there of K and V crosses memory once, and an entry of the table for every page and head. Every thread
          asks for the entries of the rows that it loads, the same ones as its neighbours: they come from L1
Limits    B * KV programs: with few sequences most multiprocessors have nothing to do; and the longest sequence keeps
          its one multiprocessor busy when all others are done. No address is known before the table has answered
Next      k02_split cuts the sequence, and asks the table a step ahead
Source    Kwon et al. 2023, arXiv:2309.06180, section 4.1; Dao 2023, arXiv:2307.08691, algorithm 1
"""

from __future__ import annotations

from functools import cache
from math import e, log2, sqrt
from typing import NamedTuple

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.paged_attention.arguments import (
    DTYPES,
    HEAD_SIZES,
    MOST_SHARE,
    PAGE_SIZES,
    sizes_of,
)
from course_kernels.problem import Workload


class Loop(NamedTuple):
    """Loop settings of a program over its tokens, for a type and a card.

    Attributes:
        step_bytes: of a step's keys, and of its values.
        warps: each takes its share of the tokens of a step, and then of the columns of V.
        stages: steps that are there at once; one is worked on, the others are on their way.
        resident: programs that a multiprocessor holds at once.
        registers: of a thread, at most; None where so many programs find room without a bound.
        least_rows: of a multiply on tensor cores.
    """

    step_bytes: int
    warps: int
    stages: int
    resident: int
    registers: int | None
    least_rows: int


# 64 tokens of 128 numbers in 16 bits: a thread asks for eight vectors of 16 bytes of its keys, and of its values; a
# shorter step would pay more often for the exchange of maxima between warps. Three times 73 KB of 227 KB of shared
# memory, and three times 128 threads of as many registers; one such program finds room on every card from Ampere on.
SMALL = Loop(16 * 1024, warps=4, stages=3, resident=3, registers=168, least_rows=16)
# Where a multiprocessor has 227 KB, one large program has two steps of 64 KB on their way. Tried on an H100, it carries
# a little more than three small ones; with eight warps it is slower, most of all for one long sequence.
LARGE = Loop(32 * 1024, warps=4, stages=3, resident=1, registers=None, least_rows=16)
LARGE_CARDS = ((9, 0), (10, 0))
# In 8 bits it is half as many bytes, and four times the rows, most of them empty: that is the product of a warpgroup,
# which takes V from shared memory as it lies. For the narrow product every thread would fetch V byte by byte, to turn
# it.
OF_8 = Loop(8 * 1024, warps=4, stages=3, resident=3, registers=168, least_rows=64)

# --- on the device -----------------------------------------------------------


# region kernel
@triton.jit
def load_queries(
    Q, head, scale, SHARE: tl.constexpr, ROWS: tl.constexpr, D: tl.constexpr, SHORT: tl.constexpr
):
    """Return the queries that share a head of the cache, zeros in the rows that no query has: [ROWS, D].

    And their scale.

    SHORT: the cache has 8 bits. The machine turns two such numbers into float16 in one instruction and needs more for
    bfloat16, so the products are of float16; a row is divided by its largest number first, which no range is short of.
    """
    row = tl.arange(0, ROWS)
    places = (head * SHARE + row)[:, None] * D + tl.arange(0, D)[None, :]
    q = tl.load(Q + places, mask=(row < SHARE)[:, None], other=0.0)
    scales = tl.zeros([ROWS, 1], tl.float32) + scale
    if SHORT:
        largest = tl.max(tl.abs(q.to(tl.float32)), 1)[:, None]
        largest = tl.where(largest > 0.0, largest, 1.0)
        q = (q.to(tl.float32) / largest).to(tl.float16)
        scales *= largest
    return q, scales


@triton.jit
def pages_at(table, start, last, PAGE: tl.constexpr, STEP: tl.constexpr):
    """Return the pages of the tokens from `start` on: [STEP]. Where no token is, the table is not read."""
    n = start + tl.arange(0, STEP)
    return tl.load(table + n // PAGE, mask=n < last, other=0)


@triton.jit
def fold(q, K, V, page, heads, head, start, last, scale, acc, m, l, PAGE: tl.constexpr, STEP: tl.constexpr):
    """Let the STEP tokens from `start` on pass by: the sums [ROWS, D], maxima and weights [ROWS] behind them."""
    D: tl.constexpr = q.shape[1]
    n = start + tl.arange(0, STEP)
    there = n < last
    # A pool has more than 2**31 numbers soon: 64 bits before anything is multiplied.
    place = (page.to(tl.int64) * heads + head) * (PAGE * D) + (n % PAGE) * D
    places = place[:, None] + tl.arange(0, D)[None, :]  # [STEP, D]
    k = tl.load(K + places, mask=there[:, None], other=0.0)
    s = tl.dot(q, k.to(q.dtype).T) * scale  # [ROWS, STEP]
    s = tl.where(there[None, :], s, -float("inf"))
    # A step has a token that is there: m_new is never -inf, and no exponent is NaN.
    m_new = tl.maximum(m, tl.max(s, 1))
    p = tl.math.exp2(s - m_new[:, None])
    repair = tl.math.exp2(m - m_new)
    l = l * repair + tl.sum(p, 1)
    # Past the end V is not read: a weight of zero times the NaN that may lie there is NaN.
    v = tl.load(V + places, mask=there[:, None], other=0.0)
    acc = tl.dot(p.to(q.dtype), v.to(q.dtype), acc * repair[:, None])
    return acc, m_new, l


@triton.jit
def store_answers(O, head, acc, l, v_scale, SHARE: tl.constexpr):
    """Store the weighted means of the queries that share a head; zeros where no token was there."""
    row = tl.arange(0, acc.shape[0])
    places = (head * SHARE + row)[:, None] * acc.shape[1] + tl.arange(0, acc.shape[1])[None, :]
    o = acc * (v_scale / tl.where(l == 0.0, 1.0, l))[:, None]
    tl.store(O + places, o.to(O.dtype.element_ty), mask=(row < SHARE)[:, None])


@triton.jit
def gather_kernel(
    Q, K, V, table_ptr, lengths_ptr, k_scale_ptr, v_scale_ptr, O, MOST, scale,
    SHARE: tl.constexpr, ROWS: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr, STEP: tl.constexpr,
    SHORT: tl.constexpr,
):  # fmt: skip
    """One program answers the queries that share one head of one sequence's cache."""
    kv, heads, b = tl.program_id(0), tl.num_programs(0), tl.program_id(1)
    head = b.to(tl.int64) * heads + kv
    table = table_ptr + b.to(tl.int64) * MOST
    # The host does not look at the lengths; whatever they hold, no program leaves its row of the table.
    last = tl.minimum(tl.load(lengths_ptr + b), MOST * PAGE)
    v_scale = 1.0
    if SHORT:
        scale *= tl.load(k_scale_ptr + kv)
        v_scale = tl.load(v_scale_ptr + kv)
    q, scales = load_queries(Q, head, scale, SHARE, ROWS, D, SHORT)
    m = tl.full([ROWS], -float("inf"), tl.float32)  # counts in powers of two
    l = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, D], tl.float32)
    for start in tl.range(0, last, STEP):
        page = pages_at(table, start, last, PAGE, STEP)
        acc, m, l = fold(q, K, V, page, heads, kv, start, last, scales, acc, m, l, PAGE, STEP)
    store_answers(O, head, acc, l, v_scale, SHARE)


# endregion


# --- on the host -------------------------------------------------------------


def supports(w: Workload) -> bool:
    """Return whether the kernels of this folder take a workload."""
    known = w.dtype in {str(dtype).removeprefix("torch.") for dtype in DTYPES}
    sizes = w.D in HEAD_SIZES and w.PAGE in PAGE_SIZES
    return known and sizes and w.H % w.KV == 0 and w.H <= MOST_SHARE * w.KV


@cache
def loop_of(cache_bytes: int, device: torch.device) -> Loop:
    """Return what suits numbers of so many bytes on a card; the interpreter takes what every card does."""
    if cache_bytes == 1:
        return OF_8
    is_large = device.type == "cuda" and torch.cuda.get_device_capability(device) in LARGE_CARDS
    return LARGE if is_large else SMALL


def step_of(loop: Loop, cache_bytes: int, D: int) -> int:
    """Tokens of a step, from the bytes of a number of the cache."""
    return loop.step_bytes // (D * cache_bytes)


def constants_of(loop: Loop, cache_bytes: int, share: int, D: int, page: int) -> dict[str, int | bool]:
    """Return what the loop is compiled for."""
    return {
        "SHARE": share,
        "ROWS": max(loop.least_rows, triton.next_power_of_2(share)),
        "D": D,
        "PAGE": page,
        "STEP": step_of(loop, cache_bytes, D),
        "SHORT": cache_bytes == 1,
        "num_warps": loop.warps,
        "num_stages": loop.stages,
    }


def scale_of(D: int) -> float:
    """Return what a product of two rows is multiplied by; exp2 takes the place of exp."""
    return log2(e) / sqrt(D)


def paged_attention(
    q: torch.Tensor,
    k_pages: torch.Tensor,
    v_pages: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
    k_scale: torch.Tensor | None = None,
    v_scale: torch.Tensor | None = None,
) -> torch.Tensor:
    """Attention of one query for each sequence and head over that sequence's pages.

    Args:
        q: (B, H, D) bfloat16 or float16, contiguous, D = 64 or 128.
        k_pages, v_pages: (PAGES, KV, PAGE, D), the same type or float8_e4m3fn, contiguous, PAGE a power of two from 8
            to 256; H is a multiple of KV, at most 64 times it.
        block_table: (B, MOST) int32, on the device: which pages a sequence has, in the order of its tokens.
        lengths: (B,) int32, on the device: the tokens that are there, 0 to MOST * PAGE. More count as so many.
        k_scale, v_scale: (KV,) float32 with pages of 8 bits: what a number of that head is multiplied by.
    Returns:
        (B, H, D), the type of q: every row a weighted mean of rows of v_pages, or zeros where the length is 0.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    B, H, KV, MOST, PAGE, D = sizes_of(q, k_pages, v_pages, block_table, lengths, k_scale, v_scale)
    o = torch.empty_like(q)
    gather_kernel[(KV, B)](
        q, k_pages, v_pages, block_table, lengths, k_scale, v_scale, o, MOST, scale_of(D),
        **constants_of(loop_of(k_pages.element_size(), q.device), k_pages.element_size(), H // KV, D, PAGE),
    )  # fmt: skip
    return o
