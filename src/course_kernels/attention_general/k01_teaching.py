"""General attention, kernel 1: FlashAttention's loop over the keys that a block of queries can see. In Triton.

Contract  problem.py
Idea      a block of queries works out which keys any of its rows sees, from the lengths, the mask and the window; the
          loop of FlashAttention runs over those, and asks of each pair whether it is one
Cost      Q and O cross memory once; K and V once for every block of queries and head, mostly from L2. D = 96 is worked
          on as 128: a quarter of the arithmetic is for nothing
Limits    every tile pays for its mask; heads that share their keys bring them each on their own; the grid is as large
          as if all sequences were as long as the longest, and what is too much of it ends at once
Source    Dao 2023, arXiv:2307.08691, algorithm 1; Ainslie et al. 2023, arXiv:2305.13245 (heads that share)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import e, log, log2, sqrt

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.attention_general.arguments import DTYPES, HEAD_SIZES, MAX_TOKENS, sizes_of
from course_kernels.problem import Workload

# How tl.dot multiplies. Plain TF32 would keep 11 bits of a float32; three products of split numbers keep 21.
PRECISION = {torch.bfloat16: "tf32", torch.float16: "tf32", torch.float32: "tf32x3"}


@dataclass(frozen=True)
class Tile:
    """Tile shape.

    Attributes:
        block_m: queries of a program.
        block_n: keys of one step of the loop.
        warps: warps of a program.
        stages: how far ahead the loads of the loop run.
    """

    block_m: int
    block_n: int
    warps: int
    stages: int


# By bytes of an element, then columns: D, or the power of two above it. One table for all cards, sized for 99 KB of
# shared memory; float32 must split its operands in registers, so its steps are shorter.
TILES = {
    (2, 64): Tile(128, 64, warps=8, stages=2),
    (2, 128): Tile(128, 64, warps=8, stages=2),
    (2, 256): Tile(64, 32, warps=8, stages=2),
    (4, 64): Tile(64, 16, warps=4, stages=2),
    (4, 128): Tile(32, 32, warps=4, stages=2),
    (4, 256): Tile(16, 16, warps=4, stages=1),
}


# --- on the device -----------------------------------------------------------


@triton.jit
def rows_of(x, first, start, end, head, heads, ROWS: tl.constexpr, D: tl.constexpr, COLUMNS: tl.constexpr):
    """Return where ROWS rows of one head lie, from a sequence's row `start` on, and what of them there is.

    [ROWS, COLUMNS].
    """
    row, column = start + tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    places = ((first + row).to(tl.int64)[:, None] * heads + head) * D + column[None, :]
    return x + places, (row < end)[:, None] & (column < D)[None, :]


@triton.jit
def attention_general_kernel(
    Q, K, V, O, lse_ptr, starts_q, starts_k, T, heads, kv_heads, window, scale, ln_2,
    D: tl.constexpr, COLUMNS: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One program answers BLOCK_M queries of one head of one sequence."""
    head, b = tl.program_id(1), tl.program_id(2)
    first_q, first_k = tl.load(starts_q + b), tl.load(starts_k + b)
    queries, keys = tl.load(starts_q + b + 1) - first_q, tl.load(starts_k + b + 1) - first_k
    first_row = tl.program_id(0) * BLOCK_M
    if first_row >= queries:
        return
    kv_head = head // (heads // kv_heads)
    at_q, there = rows_of(Q, first_q, first_row, queries, head, heads, BLOCK_M, D, COLUMNS)
    q = tl.load(at_q, mask=there, other=0.0)
    row = first_row + tl.arange(0, BLOCK_M)
    # The key that each stands at; below 0 where there are fewer keys than queries.
    position = row + keys - queries
    # The last row sees furthest, the first one back: what none of them sees is not even brought.
    last = tl.minimum(first_row + BLOCK_M + keys - queries, keys) if CAUSAL else keys
    first = tl.maximum(first_row + keys - queries - window, 0) // BLOCK_N * BLOCK_N if WINDOW else 0
    m = tl.full([BLOCK_M], -float("inf"), tl.float32)  # counts in powers of two
    l = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, COLUMNS], tl.float32)
    for start in tl.range(first, last, BLOCK_N):
        at_k, there_k = rows_of(K, first_k, start, keys, kv_head, kv_heads, BLOCK_N, D, COLUMNS)
        at_v, _ = rows_of(V, first_k, start, keys, kv_head, kv_heads, BLOCK_N, D, COLUMNS)
        k = tl.load(at_k, mask=there_k, other=0.0)
        s = tl.dot(q, k.T, input_precision=PRECISION) * scale  # [BLOCK_M, BLOCK_N]
        col = start + tl.arange(0, BLOCK_N)
        seen = (col < keys)[None, :]
        if CAUSAL:
            seen = seen & (col[None, :] <= position[:, None])
        if WINDOW:
            seen = seen & (col[None, :] >= position[:, None] - window)
        s = tl.where(seen, s, -float("inf"))
        m_new = tl.maximum(m, tl.max(s, 1))
        # A row may have seen nothing so far: -inf less -inf would be NaN, less 0 it is a weight of zero.
        at = tl.where(m_new == -float("inf"), 0.0, m_new)
        p = tl.math.exp2(s - at[:, None])
        repair = tl.math.exp2(m - at)
        l = l * repair + tl.sum(p, 1)
        v = tl.load(at_v, mask=there_k, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * repair[:, None], input_precision=PRECISION)  # [BLOCK_M, COLUMNS]
        m = m_new
    at_o, there = rows_of(O, first_q, first_row, queries, head, heads, BLOCK_M, D, COLUMNS)
    tl.store(at_o, (acc / tl.where(l == 0.0, 1.0, l)[:, None]).to(q.dtype), mask=there)
    # A natural logarithm; of a row that saw nothing that of 0, which is -inf.
    lse = tl.where(l == 0.0, -float("inf"), (m + tl.math.log2(tl.where(l == 0.0, 1.0, l))) * ln_2)
    tl.store(lse_ptr + head.to(tl.int64) * T + first_q + row, lse, mask=row < queries)


# --- on the host -------------------------------------------------------------


def supports(w: Workload) -> bool:
    """Return whether this kernel takes a workload."""
    known = w.dtype in {str(dtype).removeprefix("torch.") for dtype in DTYPES}
    return known and w.D in HEAD_SIZES and w.H % w.KV == 0


def attention_general(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    starts_q: torch.Tensor,
    starts_k: torch.Tensor,
    *,
    longest: int,
    causal: bool = False,
    window: int | None = None,
) -> torch.Tensor:
    """General attention: the first of the two results of `attention_general_with_lse`, which says what it takes."""
    return attention_general_with_lse(
        q, k, v, starts_q, starts_k, longest=longest, causal=causal, window=window
    )[0]


def attention_general_with_lse(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    starts_q: torch.Tensor,
    starts_k: torch.Tensor,
    *,
    longest: int,
    causal: bool = False,
    window: int | None = None,
    tile: Tile | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention over packed sequences, and the log-sum-exp of every row of scores.

    Args:
        q: (T, H, D) bfloat16, float16 or float32, contiguous, D = 64, 96, 128 or 256, at an address divisible by 16.
        k, v: (S, KV, D), the same type, contiguous, at such addresses. H is a multiple of KV.
        starts_q, starts_k: (B + 1,) int32, on the device, rising from 0 to T, and from 0 to S.
        longest: at least the most queries of a sequence; those of a longer one are not answered.
        causal: a query sees no key behind the one that it stands at, the last query at the last key.
        window: a query sees no key more than so many before the one that it stands at; None: it sees all of them.
        tile: how to cut the work; without it, the tile for this type and D.
    Returns:
        (T, H, D), the same type: every row a weighted mean of rows of v, or zeros where a query sees no key.
        (H, T) float32: the natural logarithm of the sum of exp(score) over the keys that a query sees.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    B, T, _, H, KV, D = sizes_of(q, k, v, starts_q, starts_k, longest, window)
    columns = triton.next_power_of_2(D)
    tile = tile or TILES[q.element_size(), columns]
    o = torch.empty_like(q)
    lse = torch.empty((H, T), dtype=torch.float32, device=q.device)
    attention_general_kernel[triton.cdiv(longest, tile.block_m), H, B](
        q, k, v, o, lse, starts_q, starts_k, T, H, KV, MAX_TOKENS if window is None else window,
        log2(e) / sqrt(D), log(2),
        D=D, COLUMNS=columns, CAUSAL=causal, WINDOW=window is not None, BLOCK_M=tile.block_m, BLOCK_N=tile.block_n,
        PRECISION=PRECISION[q.dtype], num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
    return o, lse
