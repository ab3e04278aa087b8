"""Decode attention, kernel 2: the tokens of a sequence are shared out among many programs.

Contract  problem.py
Idea      every program lets a part of the tokens pass by and leaves its sums, its maximum and its weight in memory; the
          last one to finish a head merges them, as an online softmax merges its steps
Against   k01_one_program, which has B * KV programs, however many multiprocessors there are
Cost      what is there of K and V is read once, and every part writes and reads back D + 2 numbers for each query: at
          128 tokens in 16 bits and with four queries a sixteenth of what it reads, at 1024 a hundredth
Limits    a launch is one kernel, but finds the tickets at zero: without tickets of your own that is a fill of B * KV
          numbers before it. The parts are merged in their order, so the same call gives the same bits
Next      pages: a cache whose rows do not lie side by side
Source    Dao, Haziza, Massa & Sizov 2023, https://pytorch.org/blog/flash-decoding/; the ticket: CUDA samples,
          threadFenceReduction
"""

from __future__ import annotations

from functools import cache

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.arguments import check_tensor
from course_kernels.decode_attention.arguments import sizes_of
from course_kernels.decode_attention.k01_one_program import (
    WARPS,
    attend,
    constants_of,
    load_queries,
    scale_of,
    step_of,
    store_answers,
    supports,
)

__all__ = ["decode_attention", "splits_for", "supports"]

# Programs that a multiprocessor of Hopper holds at once: three times 72 KB of its 227 KB of shared memory.
RESIDENT = 3

# Where the heads alone are more than fit at once: at least so many times as many programs as fit. The last ones, which
# may leave most of the card idle, are then short.
WAVES = 4

# Numbers of the parts that are read together when they are merged: 64 in each thread, so that one wait serves them all.
MERGED = 64 * 32 * WARPS


# --- on the device -----------------------------------------------------------


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
    Q, K, V, lengths_ptr, O, parts, tickets, N, scale,
    SHARE: tl.constexpr, ROWS: tl.constexpr, D: tl.constexpr, STEP: tl.constexpr, PRECISION: tl.constexpr,
    GROUP: tl.constexpr, MERGED: tl.constexpr,
):  # fmt: skip
    """One program takes a part of one head of one sequence's cache; the last one of a head answers for it."""
    part, b = tl.program_id(0), tl.program_id(2)
    head = b.to(tl.int64) * tl.num_programs(1) + tl.program_id(1)
    last = tl.minimum(tl.load(lengths_ptr + b), N)
    # Whole steps of the tokens that are there, as evenly as they go: a short sequence in a large room is cut, too.
    steps = tl.cdiv(last, STEP)
    each = tl.maximum(tl.cdiv(steps, tl.num_programs(0)), 1)
    used = tl.maximum(tl.cdiv(steps, each), 1)  # a sequence of length 0 has a part, too, which answers zeros
    if part < used:
        first = part * each * STEP
        last = tl.minimum(first + each * STEP, last)
        q = load_queries(Q, head, SHARE, ROWS, D)
        acc, m, l = attend(q, K + head * N * D, V + head * N * D, first, last, scale, STEP, PRECISION)
        if used == 1:
            store_answers(O, head, acc, l, SHARE)
        else:
            parts_of_head = tl.num_programs(0)
            heads = tl.num_programs(1).to(tl.int64) * tl.num_programs(2)
            count = heads * parts_of_head * SHARE
            store_part(parts, head * parts_of_head + part, count, acc, m, l, SHARE)
            # All threads have stored before one of them takes the ticket, which orders what lies before and after it.
            tl.debug_barrier()
            ticket = tl.atomic_add(tickets + head, 1, sem="acq_rel")
            if ticket == used - 1:
                merged, weights = merge_parts(
                    parts, head * parts_of_head, used, count, SHARE, GROUP, D, MERGED
                )
                store_answers(O, head, merged, weights, SHARE)
                tl.store(tickets + head, 0)  # as the next launch wants it


# --- on the host -------------------------------------------------------------


def merge_constants_of(share: int) -> dict[str, int]:
    """Return what the merge is compiled for, besides what the loop is."""
    return {"GROUP": triton.next_power_of_2(share), "MERGED": MERGED}


@cache
def splits_for(device: torch.device, heads: int, steps: int) -> int:
    """Into how many parts the room of each head is cut: a matter of shapes, never of lengths.

    As many as make all programs fit on the card at once, so that they end together. Where the heads alone do not fit,
    enough that the last ones do not matter. Never more than there are steps.

    Args:
        device: which card.
        heads: B * KV.
        steps: of the loop, for a room that is full.
    """
    at_once = RESIDENT * multiprocessors(device)
    splits = at_once // heads if heads <= at_once else triton.cdiv(WAVES * at_once, heads)
    return min(splits, steps)


def multiprocessors(device: torch.device) -> int:
    """Return how many there are; the interpreter runs one program after the other."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


def decode_attention(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    lengths: torch.Tensor,
    *,
    tickets: torch.Tensor | None = None,
    splits: int | None = None,
) -> torch.Tensor:
    """Attention of one query for each sequence and head over that sequence's cache.

    Args:
        q: (B, H, D) bfloat16, float16 or float32, contiguous, D = 64 or 128.
        k_cache, v_cache: (B, KV, N, D), the same type, contiguous; H is a multiple of KV, at most 64 times it.
        lengths: (B,) int32, on the device: the tokens that are there, 0 to N. More count as N.
        tickets: (B * KV,) int32, all zero, and zero again when the call is done: calls that come one after the other
            may share them, and then a call is one kernel. Without them each call fills some of its own.
        splits: into how many parts a head is cut, at least 1; without it, what suits the card and the shapes.
    Returns:
        (B, H, D), the same type: every row a weighted mean of rows of v_cache, or zeros where the length is 0.
        The same bits every time on one kind of card.
    Raises:
        TypeError, ValueError: see `sizes_of`; or tickets of another shape, type or device.
    """
    B, H, KV, N, D = sizes_of(q, k_cache, v_cache, lengths)
    heads, share = B * KV, H // KV
    if tickets is not None:
        check_tensor("tickets", tickets, "T", {"T": heads}, dtypes=(torch.int32,), device=q.device)
    splits = splits or splits_for(q.device, heads, triton.cdiv(N, step_of(q.element_size(), D)))
    if tickets is None:
        tickets = torch.zeros(heads, dtype=torch.int32, device=q.device)
    parts = torch.empty(heads * splits * share * (D + 2), dtype=torch.float32, device=q.device)
    o = torch.empty_like(q)
    split_kernel[(splits, KV, B)](
        q, k_cache, v_cache, lengths, o, parts, tickets, N, scale_of(D),
        **constants_of(q.element_size(), share, D), **merge_constants_of(share),
    )  # fmt: skip
    return o
