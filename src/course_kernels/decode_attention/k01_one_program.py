"""Decode attention, kernel 1: one program for each head of the cache, all the queries that share it together.

Contract  problem.py
Idea      the loop of FlashAttention with one row of queries for each head that shares the keys: K and V are read
          once for the whole group, and no score goes to memory
Cost      what is there of K and V crosses memory once. A multiply works on 16 rows at least; with 4 of them used
          three quarters of the arithmetic is for nothing, and arithmetic is not what is short here
Limits    B * KV programs: with few sequences most multiprocessors have nothing to do; and the longest sequence
          keeps its one multiprocessor busy when all others are done
Next      k02_split cuts the sequence, too
Source    Ainslie et al. 2023, arXiv:2305.13245 (heads that share); Dao 2023, arXiv:2307.08691, algorithm 1
"""

from __future__ import annotations

from math import e, log2, sqrt

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.decode_attention.arguments import DTYPES, HEAD_SIZES, MOST_SHARE, sizes_of
from course_kernels.problem import BYTES_OF, Workload

# Bytes of a step's keys, and of its values: 64 tokens of 128 numbers in 16 bits. A thread asks for eight vectors of 16
# bytes of each; a shorter step would pay more often for the exchange of maxima between warps.
STEP_BYTES = 16 * 1024

# Two steps are on their way while one is worked on: 64 KB for each program. What memory delivers in the time of one
# latency is some 30 KB for each multiprocessor of an H200, so that one program alone could keep it busy.
STAGES = 3

WARPS = 4  # each takes a quarter of the tokens of a step, and then a quarter of the columns of V

LEAST_ROWS = 16  # of a multiply on tensor cores


# --- on the device -----------------------------------------------------------


@triton.jit
def load_queries(Q, head, SHARE: tl.constexpr, ROWS: tl.constexpr, D: tl.constexpr):
    """Return the queries that share a head of the cache, and zeros in the rows that no query has: [ROWS, D]."""
    row = tl.arange(0, ROWS)
    places = (head * SHARE + row)[:, None] * D + tl.arange(0, D)[None, :]
    return tl.load(Q + places, mask=(row < SHARE)[:, None], other=0.0)


@triton.jit
def attend(q, K, V, first, last, scale, STEP: tl.constexpr, PRECISION: tl.constexpr):
    """Let the tokens first to last of a head pass by, K and V its own: sums [ROWS, D], maxima and weights [ROWS]."""
    ROWS: tl.constexpr = q.shape[0]
    D: tl.constexpr = q.shape[1]
    m = tl.full([ROWS], -float("inf"), tl.float32)  # counts in powers of two
    l = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, D], tl.float32)
    for start in tl.range(first, last, STEP):
        n = start + tl.arange(0, STEP)
        there = n < last
        places = n[:, None] * D + tl.arange(0, D)[None, :]  # [STEP, D]
        k = tl.load(K + places, mask=there[:, None], other=0.0)
        s = tl.dot(q, k.T, input_precision=PRECISION) * scale  # [ROWS, STEP]
        s = tl.where(there[None, :], s, -float("inf"))
        # A step has a token that is there: m_new is never -inf, and no exponent is NaN.
        m_new = tl.maximum(m, tl.max(s, 1))
        p = tl.math.exp2(s - m_new[:, None])
        repair = tl.math.exp2(m - m_new)
        l = l * repair + tl.sum(p, 1)
        # Past the end V is not read: a weight of zero times the NaN that may lie there is NaN.
        v = tl.load(V + places, mask=there[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * repair[:, None], input_precision=PRECISION)
        m = m_new
    return acc, m, l


@triton.jit
def store_answers(O, head, acc, l, SHARE: tl.constexpr):
    """Store the weighted means of the queries that share a head; zeros where no token was there."""
    row = tl.arange(0, acc.shape[0])
    places = (head * SHARE + row)[:, None] * acc.shape[1] + tl.arange(0, acc.shape[1])[None, :]
    o = acc / tl.where(l == 0.0, 1.0, l)[:, None]
    tl.store(O + places, o.to(O.dtype.element_ty), mask=(row < SHARE)[:, None])


@triton.jit
def one_program_kernel(
    Q, K, V, lengths_ptr, O, N, scale,
    SHARE: tl.constexpr, ROWS: tl.constexpr, D: tl.constexpr, STEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One program answers the queries that share one head of one sequence's cache."""
    b = tl.program_id(1)
    # Heads of all sequences, one after the other; times N * D it passes 2**31.
    head = b.to(tl.int64) * tl.num_programs(0) + tl.program_id(0)
    # The host does not look at the lengths; whatever they hold, no program leaves its room.
    last = tl.minimum(tl.load(lengths_ptr + b), N)
    q = load_queries(Q, head, SHARE, ROWS, D)
    acc, _, l = attend(q, K + head * N * D, V + head * N * D, 0, last, scale, STEP, PRECISION)
    store_answers(O, head, acc, l, SHARE)


# --- on the host -------------------------------------------------------------


def supports(w: Workload) -> bool:
    """Return whether the kernels of this folder take a workload."""
    known = w.dtype in {str(dtype).removeprefix("torch.") for dtype in DTYPES}
    return known and w.D in HEAD_SIZES and w.H % w.KV == 0 and w.H <= MOST_SHARE * w.KV


def step_of(element_bytes: int, D: int) -> int:
    """Tokens of a step."""
    return STEP_BYTES // (D * element_bytes)


def constants_of(element_bytes: int, share: int, D: int) -> dict[str, int | str]:
    """Return what the loop is compiled for."""
    return {
        "SHARE": share,
        "ROWS": max(LEAST_ROWS, triton.next_power_of_2(share)),
        "D": D,
        "STEP": step_of(element_bytes, D),
        # Plain TF32 would keep 11 bits of a float32; three products of split numbers keep 21.
        "PRECISION": "tf32x3" if element_bytes == BYTES_OF["float32"] else "tf32",
        "num_warps": WARPS,
        "num_stages": STAGES,
    }


def scale_of(D: int) -> float:
    """Return what a product of two rows is multiplied by; exp2 takes the place of exp."""
    return log2(e) / sqrt(D)


def decode_attention(
    q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    """Attention of one query for each sequence and head over that sequence's cache.

    Args:
        q: (B, H, D) bfloat16, float16 or float32, contiguous, D = 64 or 128.
        k_cache, v_cache: (B, KV, N, D), the same type, contiguous; H is a multiple of KV, at most 64 times it.
        lengths: (B,) int32, on the device: the tokens that are there, 0 to N. More count as N.
    Returns:
        (B, H, D), the same type: every row a weighted mean of rows of v_cache, or zeros where the length is 0.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    B, H, KV, N, D = sizes_of(q, k_cache, v_cache, lengths)
    o = torch.empty_like(q)
    one_program_kernel[(KV, B)](
        q, k_cache, v_cache, lengths, o, N, scale_of(D), **constants_of(q.element_size(), H // KV, D)
    )
    return o
