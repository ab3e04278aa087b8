"""Paged attention, kernel 2: the tokens of a sequence are shared out among many programs, and the table is asked ahead.

Contract  problem.py
Idea      every program lets a part of the tokens pass by and leaves its sums, its maximum and its weight in memory; the
          last one to finish a head merges them, as an online softmax merges its steps. The pages of a step are fetched
          while the loads of the step before are sent off, so that no load of keys waits for the table
Against   k01_gather, which has B * KV programs, however many multiprocessors there are; and where the table's answer
          takes a turn of the loop, so that keys and values have one turn less to arrive in
Cost      what is there of K and V is read once, and every part writes and reads back D + 2 numbers for each query: at
          128 tokens in 16 bits and with four queries a sixteenth of what it reads, at 1024 a hundredth
Limits    a launch is one kernel, but finds the tickets at zero: without tickets of your own that is a fill of B * KV
          numbers before it. The parts are merged in their order, so the same call gives the same bits. A short sequence
          beside a long one is cut into as many parts, so that programs differ in what they have to do
Next      k03_even shares out all sequences together; k04_prefill has many new tokens
Source    Dao, Haziza, Massa & Sizov 2023, https://pytorch.org/blog/flash-decoding/; the ticket: CUDA samples,
          threadFenceReduction; Kwon et al. 2023, arXiv:2309.06180 (pages)
"""

from __future__ import annotations

from functools import cache

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.arguments import check_tensor
from course_kernels.paged_attention.arguments import sizes_of
from course_kernels.paged_attention.k01_gather import (
    Loop,
    constants_of,
    fold,
    load_queries,
    loop_of,
    pages_at,
    scale_of,
    step_of,
    store_answers,
    supports,
)

__all__ = ["paged_attention", "splits_for", "supports"]

# Heads of a group up to which the registers of a thread are bounded; the sums of 64 need more, and leave shared memory
# for two programs only.
BOUND_UP_TO = 32
# Where the heads alone are more than fit at once: the fewest parts with which the last programs leave no more than a
# twentieth of the card idle; if there are none, so many times as many programs as fit, so that the last ones are short.
BUSY = 0.95
WAVES = 4
# Numbers of the parts that a warp reads together when they are merged: 64 in each thread, so that one wait serves them
# all.
MERGED_OF_A_WARP = 64 * 32


# --- on the device -----------------------------------------------------------


@triton.jit
def attend(q, K, V, table, heads, head, first, last, scale, PAGE: tl.constexpr, STEP: tl.constexpr):
    """Let the tokens first to last of a sequence pass by: sums [ROWS, D], maxima and weights [ROWS]."""
    ROWS: tl.constexpr = q.shape[0]
    D: tl.constexpr = q.shape[1]
    m = tl.full([ROWS], -float("inf"), tl.float32)  # counts in powers of two
    l = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, D], tl.float32)
    page = pages_at(table, first, last, PAGE, STEP)
    for start in tl.range(first, last, STEP):
        # Of the next turn: the table answers while this one's keys are on their way.
        ahead = pages_at(table, start + STEP, last, PAGE, STEP)
        acc, m, l = fold(q, K, V, page, heads, head, start, last, scale, acc, m, l, PAGE, STEP)
        page = ahead
    return acc, m, l


@triton.jit
def store_part(parts, place, count, acc, m, l, SHARE: tl.constexpr):
    """Leave the sums of one part, its maxima and its weights where they have their place among `count` rows."""
    D: tl.constexpr = acc.shape[1]
    row = tl.arange(0, acc.shape[0])
    at = place * SHARE + row  # [ROWS]
    taken = row < SHARE
    tl.store(parts + at[:, None] * D + tl.arange(0, D)[None, :], acc, mask=taken[:, None])
    tl.store(parts + count * D + at, m, mask=taken)
    tl.store(parts + count * (D + 1) + at, l, mask=taken)


@triton.jit
def merge_parts(
    parts, place, used, count, SHARE: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, MERGED: tl.constexpr
):
    """Return the parts of a head from `place` on, merged in their order: sums [GROUP, D], weights [GROUP]."""
    TOGETHER: tl.constexpr = MERGED // (GROUP * D)
    # Rows that no query has follow the last one that has: none of them is without a maximum.
    row = tl.minimum(tl.arange(0, GROUP), SHARE - 1)
    m = tl.full([GROUP], -float("inf"), tl.float32)
    l = tl.zeros([GROUP], tl.float32)
    acc = tl.zeros([GROUP, D], tl.float32)
    for first in tl.range(0, used, TOGETHER):
        part = first + tl.arange(0, TOGETHER)
        at = (place + part)[:, None] * SHARE + row[None, :]  # [TOGETHER, GROUP]
        there = (part < used)[:, None]
        # Others wrote these: .cg looks in L2, where all multiprocessors see the same.
        a_of = tl.load(
            parts + at[:, :, None] * D + tl.arange(0, D)[None, None, :],
            mask=there[:, :, None], other=0.0, cache_modifier=".cg",
        )  # fmt: skip
        m_of = tl.load(parts + count * D + at, mask=there, other=-float("inf"), cache_modifier=".cg")
        l_of = tl.load(parts + count * (D + 1) + at, mask=there, other=0.0, cache_modifier=".cg")
        m_new = tl.maximum(m, tl.max(m_of, 0))
        weight = tl.math.exp2(m_of - m_new[None, :])  # [TOGETHER, GROUP]
        repair = tl.math.exp2(m - m_new)
        l = l * repair + tl.sum(l_of * weight, 0)
        acc = acc * repair[:, None] + tl.sum(a_of * weight[:, :, None], 0)
        m = m_new
    return acc, l


@triton.jit
def split_kernel(
    Q, K, V, table_ptr, lengths_ptr, k_scale_ptr, v_scale_ptr, O, parts, tickets, MOST, scale,
    SHARE: tl.constexpr, ROWS: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr, STEP: tl.constexpr,
    SHORT: tl.constexpr, GROUP: tl.constexpr, MERGED: tl.constexpr,
):  # fmt: skip
    """One program takes a part of one head of one sequence's cache; the last one of a head answers for it."""
    part, kv, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    heads = tl.num_programs(1)
    head = b.to(tl.int64) * heads + kv
    last = tl.minimum(tl.load(lengths_ptr + b), MOST * PAGE)
    # Whole steps of the tokens that are there, as evenly as they go: a short sequence in a large room is cut, too.
    steps = tl.cdiv(last, STEP)
    each = tl.maximum(tl.cdiv(steps, tl.num_programs(0)), 1)
    used = tl.maximum(tl.cdiv(steps, each), 1)  # a sequence of length 0 has a part, too, which answers zeros
    if part < used:
        first = part * each * STEP
        last = tl.minimum(first + each * STEP, last)
        v_scale = 1.0
        if SHORT:
            scale *= tl.load(k_scale_ptr + kv)
            v_scale = tl.load(v_scale_ptr + kv)
        q, scales = load_queries(Q, head, scale, SHARE, ROWS, D, SHORT)
        table = table_ptr + b.to(tl.int64) * MOST
        acc, m, l = attend(q, K, V, table, heads, kv, first, last, scales, PAGE, STEP)
        if used == 1:
            store_answers(O, head, acc, l, v_scale, SHARE)
        else:
            parts_of_head = tl.num_programs(0)
            count = heads.to(tl.int64) * tl.num_programs(2) * parts_of_head * SHARE
            store_part(parts, head * parts_of_head + part, count, acc, m, l, SHARE)
            # All threads have stored before one of them takes the ticket, which orders what lies before and after it.
            tl.debug_barrier()
            ticket = tl.atomic_add(tickets + head, 1, sem="acq_rel")
            if ticket == used - 1:
                merged, weights = merge_parts(
                    parts, head * parts_of_head, used, count, SHARE, GROUP, D, MERGED
                )
                store_answers(O, head, merged, weights, v_scale, SHARE)
                tl.store(tickets + head, 0)  # as the next launch wants it


# --- on the host -------------------------------------------------------------


def merge_constants_of(loop: Loop, share: int) -> dict[str, int]:
    """Return what the merge is compiled for, besides what the loop is; and how many registers are left to a thread."""
    bound = {"maxnreg": loop.registers} if loop.registers and share <= BOUND_UP_TO else {}
    return {"GROUP": triton.next_power_of_2(share), "MERGED": MERGED_OF_A_WARP * loop.warps, **bound}


@cache
def splits_for(device: torch.device, heads: int, steps: int, resident: int) -> int:
    """Into how many parts the room of each head is cut: a matter of shapes, never of lengths.

    As many as make all programs fit on the card at once, so that they end together. Where the heads alone do not fit,
    enough that the last ones do not matter. Never more than there are steps.

    Args:
        device: which card.
        heads: B * KV.
        steps: of the loop, for a room that is full.
        resident: programs of a multiprocessor.
    """
    at_once = resident * multiprocessors(device)
    if heads <= at_once:
        return min(at_once // heads, steps)
    most = triton.cdiv(WAVES * at_once, heads)
    fine = (n for n in range(1, most) if n * heads >= BUSY * at_once * triton.cdiv(n * heads, at_once))
    return min(next(fine, most), steps)


def multiprocessors(device: torch.device) -> int:
    """Return how many there are; the interpreter runs one program after the other."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


def paged_attention(
    q: torch.Tensor,
    k_pages: torch.Tensor,
    v_pages: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
    k_scale: torch.Tensor | None = None,
    v_scale: torch.Tensor | None = None,
    *,
    tickets: torch.Tensor | None = None,
    splits: int | None = None,
) -> torch.Tensor:
    """Attention of one query for each sequence and head over that sequence's pages.

    Args:
        q: (B, H, D) bfloat16 or float16, contiguous, D = 64 or 128.
        k_pages, v_pages: (PAGES, KV, PAGE, D), the same type or float8_e4m3fn, contiguous, PAGE a power of two from 8
            to 256; H is a multiple of KV, at most 64 times it.
        block_table: (B, MOST) int32, on the device: which pages a sequence has, in the order of its tokens.
        lengths: (B,) int32, on the device: the tokens that are there, 0 to MOST * PAGE. More count as so many.
        k_scale, v_scale: (KV,) float32 with pages of 8 bits: what a number of that head is multiplied by.
        tickets: (B * KV,) int32, all zero, and zero again when the call is done: calls that come one after the other
            may share them, and then a call is one kernel. Without them each call fills some of its own.
        splits: into how many parts a head is cut, at least 1; without it, what suits the card and the shapes.
    Returns:
        (B, H, D), the type of q: every row a weighted mean of rows of v_pages, or zeros where the length is 0.
        The same bits every time on one kind of card.
    Raises:
        TypeError, ValueError: see `sizes_of`; or tickets of another shape, type or device.
    """
    B, H, KV, MOST, PAGE, D = sizes_of(q, k_pages, v_pages, block_table, lengths, k_scale, v_scale)
    heads, share, cache_bytes = B * KV, H // KV, k_pages.element_size()
    if tickets is not None:
        check_tensor("tickets", tickets, "T", {"T": heads}, dtypes=(torch.int32,), device=q.device)
    loop = loop_of(cache_bytes, q.device)
    steps = triton.cdiv(MOST * PAGE, step_of(loop, cache_bytes, D))
    splits = splits or splits_for(q.device, heads, steps, loop.resident)
    if tickets is None:
        tickets = torch.zeros(heads, dtype=torch.int32, device=q.device)
    parts = torch.empty(heads * splits * share * (D + 2), dtype=torch.float32, device=q.device)
    o = torch.empty_like(q)
    split_kernel[(splits, KV, B)](
        q, k_pages, v_pages, block_table, lengths, k_scale, v_scale, o, parts, tickets, MOST, scale_of(D),
        **constants_of(loop, cache_bytes, share, D, PAGE), **merge_constants_of(loop, share),
    )  # fmt: skip
    return o
