"""Paged attention, kernel 4: many new tokens of a sequence at once, over the pages before them and their own.

Contract  problem.py for one new token. For M of them: Q, O (B, M, H, D); query m of a sequence stands at its token
          length - M + m, whose keys and values are in the pages already, and sees no token behind that one. A query
          that stands before the first token is answered by zeros
Idea      the rows of a product are all heads that share keys, of as many tokens as fill it: 128 rows are 32 tokens of
          four heads. So a long prompt may come in pieces, each over what the earlier ones left in the pages
Against   k01_gather, which has one token's heads as rows, and leaves most of a product empty
Cost      Q and O cross memory once; K and V once for every 128 rows, mostly from L2. Of the steps on the diagonal half
          of the arithmetic is for nothing
Limits    to read, not to race: every step pays for its mask, and all warps do the same in turn. Every sequence has as
          many new tokens
Source    Agrawal et al. 2023, arXiv:2308.16369 (prompts in pieces); Dao 2023, arXiv:2307.08691, algorithm 1
"""

from __future__ import annotations

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.arguments import check_size
from course_kernels.paged_attention.arguments import MAX_N, sizes_of
from course_kernels.paged_attention.k01_gather import pages_at, scale_of, supports

__all__ = ["paged_attention", "paged_prefill", "supports"]

ROWS = 128  # of a product: two warpgroups, each with the 64 rows that theirs has
STEP = 64  # tokens of a step of the loop
WARPS = 8
STAGES = 3  # two steps on their way: 64 KB at D = 128 in 16 bits


# --- on the device -----------------------------------------------------------


@triton.jit
def prefill_kernel(
    Q, K, V, table_ptr, lengths_ptr, k_scale_ptr, v_scale_ptr, O, MOST, M, scale,
    SHARE: tl.constexpr, ROWS: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr, STEP: tl.constexpr,
    SHORT: tl.constexpr,
):  # fmt: skip
    """One program answers ROWS queries that share a head of one sequence's cache: of a token, then of the next."""
    kv, heads, b = tl.program_id(1), tl.num_programs(1), tl.program_id(2)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    token, there = row // SHARE, row < M * SHARE
    length = tl.minimum(tl.load(lengths_ptr + b), MOST * PAGE)
    position = length - M + token
    places = ((b.to(tl.int64) * M + token) * heads + kv) * SHARE + row % SHARE
    places = places[:, None] * D + tl.arange(0, D)[None, :]
    q = tl.load(Q + places, mask=there[:, None], other=0.0)
    scales = tl.zeros([ROWS, 1], tl.float32) + scale
    v_scale = 1.0
    if SHORT:  # see load_queries of k01_gather
        largest = tl.max(tl.abs(q.to(tl.float32)), 1)[:, None]
        largest = tl.where(largest > 0.0, largest, 1.0)
        q = (q.to(tl.float32) / largest).to(tl.float16)
        scales *= largest * tl.load(k_scale_ptr + kv)
        v_scale = tl.load(v_scale_ptr + kv)
    # The last row sees furthest: what none of them sees is not even brought.
    last = tl.max(tl.where(there, position, -1), 0) + 1
    table = table_ptr + b.to(tl.int64) * MOST
    m = tl.full([ROWS], -float("inf"), tl.float32)  # counts in powers of two
    l = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, D], tl.float32)
    page = pages_at(table, 0, last, PAGE, STEP)
    for start in tl.range(0, last, STEP):
        ahead = pages_at(table, start + STEP, last, PAGE, STEP)
        n = start + tl.arange(0, STEP)
        place = (page.to(tl.int64) * heads + kv) * (PAGE * D) + (n % PAGE) * D
        at = place[:, None] + tl.arange(0, D)[None, :]  # [STEP, D]
        k = tl.load(K + at, mask=(n < last)[:, None], other=0.0)
        s = tl.dot(q, k.to(q.dtype).T) * scales  # [ROWS, STEP]
        s = tl.where(n[None, :] <= position[:, None], s, -float("inf"))
        m_new = tl.maximum(m, tl.max(s, 1))
        # A row may have seen nothing so far: -inf less -inf would be NaN, less 0 it is a weight of zero.
        top = tl.where(m_new == -float("inf"), 0.0, m_new)
        p = tl.math.exp2(s - top[:, None])
        repair = tl.math.exp2(m - top)
        l = l * repair + tl.sum(p, 1)
        v = tl.load(V + at, mask=(n < last)[:, None], other=0.0)
        acc = tl.dot(p.to(q.dtype), v.to(q.dtype), acc * repair[:, None])
        m, page = m_new, ahead
    o = acc * (v_scale / tl.where(l == 0.0, 1.0, l))[:, None]
    tl.store(O + places, o.to(O.dtype.element_ty), mask=there[:, None])


# --- on the host -------------------------------------------------------------


def paged_prefill(
    q: torch.Tensor,
    k_pages: torch.Tensor,
    v_pages: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
    k_scale: torch.Tensor | None = None,
    v_scale: torch.Tensor | None = None,
) -> torch.Tensor:
    """Causal attention of the last M tokens of each sequence over that sequence's pages.

    Args:
        q: (B, M, H, D) bfloat16 or float16, contiguous, D = 64 or 128.
        k_pages, v_pages, block_table, k_scale, v_scale: see `k01_gather`.
        lengths: (B,) int32, on the device: the tokens that are there, the M new ones among them.
    Returns:
        (B, M, H, D), the type of q: every row a weighted mean of rows of v_pages, or zeros where the token is none.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    B, H, KV, MOST, PAGE, D = sizes_of(
        q, k_pages, v_pages, block_table, lengths, k_scale, v_scale, letters="BMHD"
    )
    M, share = q.shape[1], H // KV
    check_size("q", "M * H", M * H, MAX_N)
    o = torch.empty_like(q)
    prefill_kernel[(triton.cdiv(M * share, ROWS), KV, B)](
        q, k_pages, v_pages, block_table, lengths, k_scale, v_scale, o, MOST, M, scale_of(D),
        SHARE=share, ROWS=ROWS, D=D, PAGE=PAGE, STEP=STEP, SHORT=k_pages.element_size() == 1,
        num_warps=WARPS, num_stages=STAGES,
    )  # fmt: skip
    return o


def paged_attention(
    q: torch.Tensor,
    k_pages: torch.Tensor,
    v_pages: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
    k_scale: torch.Tensor | None = None,
    v_scale: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return one new token for each sequence: `paged_prefill` with M = 1. See `k01_gather`, which takes the same."""
    # Before a dimension is added: what is refused is named as the caller has it.
    sizes_of(q, k_pages, v_pages, block_table, lengths, k_scale, v_scale)
    return paged_prefill(q[:, None], k_pages, v_pages, block_table, lengths, k_scale, v_scale)[:, 0]
