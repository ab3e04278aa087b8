"""Paged attention, kernel 3: as many programs as fit on the card, and to each the same number of steps.

Contract  problem.py
Idea      the steps of all heads of all sequences form one long row. Every program works out from the lengths where its
          part of that row begins and ends, whichever heads it crosses. A head that lies in one program is answered
          there; the parts of one that several share are merged by the last of them
Against   k02_split, which cuts every sequence into as many parts, so that programs differ as lengths do; where the
          heads are more than fit at once, its last programs leave much of the card idle
Cost      as before, and every program reads all lengths: B numbers, which the first ones bring into L2. The loop starts
          anew for every head that a program crosses
Limits    all programs end together only where all are equally fast: nobody takes over from a slow one. At most 8192
          sequences. The lengths decide which programs share a head, so another batch may round a sequence otherwise;
          the same call gives the same bits
Source    Osama, Merrill, Cecka, Garland & Owens 2023, arXiv:2301.03598 (Stream-K); Ye et al. 2025, arXiv:2501.01005,
          section 3.3 (FlashInfer plans so, on the host)
"""

from __future__ import annotations

from functools import cache

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.arguments import check_size, check_tensor
from course_kernels.paged_attention.arguments import sizes_of
from course_kernels.paged_attention.k01_gather import (
    constants_of,
    load_queries,
    loop_of,
    scale_of,
    step_of,
    store_answers,
    supports,
)
from course_kernels.paged_attention.k02_split import (
    attend,
    merge_constants_of,
    multiprocessors,
    store_part,
)

__all__ = ["paged_attention", "programs_for", "supports"]

MOST_SEQUENCES = 8192  # a program holds all their lengths in registers


# --- on the device -----------------------------------------------------------


@triton.jit
def merge_shared(
    parts,
    first,
    used,
    odd,
    count,
    SHARE: tl.constexpr,
    GROUP: tl.constexpr,
    D: tl.constexpr,
    MERGED: tl.constexpr,
):
    """Return the parts of a head that programs from `first` on left, in their order: sums [GROUP, D], weights [GROUP].

    Every program has two places, for the head that it begins with and the one that it ends with; a head's first part
    lies in the second of them where `odd` says so.
    """
    TOGETHER: tl.constexpr = MERGED // (GROUP * D)
    # Rows that no query has follow the last one that has: none of them is without a maximum.
    row = tl.minimum(tl.arange(0, GROUP), SHARE - 1)
    m = tl.full([GROUP], -float("inf"), tl.float32)
    l = tl.zeros([GROUP], tl.float32)
    acc = tl.zeros([GROUP, D], tl.float32)
    for start in tl.range(0, used, TOGETHER):
        part = start + tl.arange(0, TOGETHER)
        place = 2 * (first + part) + tl.where(part == 0, odd, 0)
        at = place.to(tl.int64)[:, None] * SHARE + row[None, :]  # [TOGETHER, GROUP]
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
def even_kernel(
    Q, K, V, table_ptr, lengths_ptr, k_scale_ptr, v_scale_ptr, O, parts, tickets, MOST, B, heads, scale,
    SHARE: tl.constexpr, ROWS: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr, STEP: tl.constexpr,
    SHORT: tl.constexpr, GROUP: tl.constexpr, MERGED: tl.constexpr, SEQUENCES: tl.constexpr,
):  # fmt: skip
    """One program takes an even part of all steps there are."""
    program, programs = tl.program_id(0), tl.num_programs(0)
    sequence = tl.arange(0, SEQUENCES)
    tokens = tl.load(lengths_ptr + sequence, mask=sequence < B, other=0)
    tokens = tl.maximum(tl.minimum(tokens, MOST * PAGE), 0)
    # A sequence of length 0 has a step, too, which answers zeros; a head's steps lie side by side, then its
    # neighbour's.
    steps_of = tl.where(sequence < B, tl.maximum(tl.cdiv(tokens, STEP), 1), 0)
    ends_of = tl.cumsum(steps_of, 0) * heads  # of all heads of a sequence
    each = tl.cdiv(tl.sum(steps_of, 0) * heads, programs)
    begin = program * each
    end = tl.minimum(begin + each, tl.sum(steps_of, 0) * heads)
    count = programs.to(tl.int64) * 2 * SHARE
    at = begin
    while at < end:
        # Which sequence and head this step is of; where the head's steps begin and end.
        b = tl.sum((ends_of <= at).to(tl.int32), 0)
        of_b = sequence == b
        steps = tl.sum(tl.where(of_b, steps_of, 0), 0)
        start_of_b = tl.sum(tl.where(of_b, ends_of, 0), 0) - steps * heads
        kv = (at - start_of_b) // steps
        start = start_of_b + kv * steps
        stop = tl.minimum(start + steps, end)
        head = b.to(tl.int64) * heads + kv
        last = tl.minimum(tl.sum(tl.where(of_b, tokens, 0), 0), (stop - start) * STEP)
        of_scores, v_scale = scale, 1.0
        if SHORT:
            of_scores = scale * tl.load(k_scale_ptr + kv)
            v_scale = tl.load(v_scale_ptr + kv)
        q, scales = load_queries(Q, head, of_scores, SHARE, ROWS, D, SHORT)
        table = table_ptr + b.to(tl.int64) * MOST
        acc, m, l = attend(q, K, V, table, heads, kv, (at - start) * STEP, last, scales, PAGE, STEP)
        # Those who have a part of this head, from the one that has its first step to the one that has its last.
        first = start // each
        used = (start + steps - 1) // each - first + 1
        if used == 1:
            store_answers(O, head, acc, l, v_scale, SHARE)
        else:
            store_part(parts, 2 * program + (at > begin).to(tl.int32), count, acc, m, l, SHARE)
            # All threads have stored before one of them takes the ticket, which orders what lies before and after it.
            tl.debug_barrier()
            ticket = tl.atomic_add(tickets + head, 1, sem="acq_rel")
            if ticket == used - 1:
                odd = (start > first * each).to(tl.int32)
                merged, weights = merge_shared(parts, first, used, odd, count, SHARE, GROUP, D, MERGED)
                store_answers(O, head, merged, weights, v_scale, SHARE)
                tl.store(tickets + head, 0)  # as the next launch wants it
        at = stop


# --- on the host -------------------------------------------------------------


@cache
def programs_for(device: torch.device, heads: int, steps: int, resident: int) -> int:
    """Return how many programs: as many as fit on the card at once, and never more than there are steps in a full room.

    Args:
        device: which card.
        heads: B * KV.
        steps: of the loop for one head, for a room that is full.
        resident: programs of a multiprocessor.
    """
    return min(resident * multiprocessors(device), heads * steps)


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
    programs: int | None = None,
) -> torch.Tensor:
    """Attention of one query for each sequence and head over that sequence's pages.

    Args:
        q, k_pages, v_pages, block_table, lengths, k_scale, v_scale: see `k02_split`; B <= 8192, and B * KV heads of a
            full room have at most 2**30 steps.
        tickets: (B * KV,) int32, all zero, and zero again when the call is done: calls that come one after the other
            may share them, and then a call is one kernel. Without them each call fills some of its own.
        programs: how many, at least 1; without it, what suits the card and the shapes.
    Returns:
        (B, H, D), the type of q: every row a weighted mean of rows of v_pages, or zeros where the length is 0.
        The same bits every time for the same lengths on one kind of card.
    Raises:
        TypeError, ValueError: see `sizes_of`; or tickets of another shape, type or device.
    """
    B, H, KV, MOST, PAGE, D = sizes_of(q, k_pages, v_pages, block_table, lengths, k_scale, v_scale)
    heads, share, cache_bytes = B * KV, H // KV, k_pages.element_size()
    loop = loop_of(cache_bytes, q.device)
    steps = triton.cdiv(MOST * PAGE, step_of(loop, cache_bytes, D))
    check_size("q", "B", B, MOST_SEQUENCES)
    check_size("block_table", "B * KV * steps", heads * steps, 2**30)
    if tickets is not None:
        check_tensor("tickets", tickets, "T", {"T": heads}, dtypes=(torch.int32,), device=q.device)
    else:
        tickets = torch.zeros(heads, dtype=torch.int32, device=q.device)
    programs = programs or programs_for(q.device, heads, steps, loop.resident)
    parts = torch.empty(programs * 2 * share * (D + 2), dtype=torch.float32, device=q.device)
    o = torch.empty_like(q)
    even_kernel[(programs,)](
        q, k_pages, v_pages, block_table, lengths, k_scale, v_scale, o, parts, tickets, MOST, B, KV, scale_of(D),
        **constants_of(loop, cache_bytes, share, D, PAGE), **merge_constants_of(loop, share),
        SEQUENCES=triton.next_power_of_2(B),
    )  # fmt: skip
    return o
