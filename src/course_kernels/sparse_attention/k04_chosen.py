"""Sparse attention, kernel 4: the choice by the digits of a score, with all programs of the card.

Contract  problem.py, `ties` too
Idea      the bits of a score, turned so that they rise with it, are a number of four digits of 8 bits. Every program
          counts how often each first digit occurs among its tokens; the sums say which digit the last one chosen has,
          and how many with that digit are still to be chosen. Three more passes find its other digits. Then every
          program knows the last score chosen, and where among the chosen ones its own begin
Against   k03_gathered, whose `torch.topk` is made for any type and any row, and takes any of equals
Cost      a score is written once and read five times, 24 bytes a token beside 256 of its index key; from L2, as long as
          it has room. Five small kernels, each with a start and an end
Limits    those starts: with few tokens they are what it takes. Chosen tokens come in the order of their positions, so
          the same call gives the same bits
Next      index keys in FP8, as DeepSeek has them; digits that are counted while scores are made
Source    Alabi, Blanchard, Gordon & Steinbach 2012, doi:10.1145/2133803.2345676 (selection by the digits of a float);
          DeepSeek-AI 2025, DeepSeek-V3.2-Exp, section 1, equation 2
"""

from __future__ import annotations

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.sparse_attention.arguments import sizes_of
from course_kernels.sparse_attention.k01_dense import takes as supports
from course_kernels.sparse_attention.k02_in_pieces import index_scores
from course_kernels.sparse_attention.k03_gathered import attend_chosen
from course_kernels.sparse_attention.parts import Loop

__all__ = ["choose", "sparse_attention", "supports"]

# 8 bits a digit: a warp counts with ballots, eight for the digit and one step for each 32 values that it may have.
DIGITS = 4
SCORE_TRIPS = 1 + DIGITS + 1  # of the scores: written, read for each digit, and once more
# Tokens of a program: 8 in each thread. 64 programs for the longest context of DeepSeek-V3.2.
CHUNK, WARPS = 2048, 8
ROWS = 32  # chunks whose counts are read together: 32 numbers in each thread


# --- on the device -----------------------------------------------------------


@triton.jit
def keys_at(scores, n, N):
    """Return numbers that rise as the scores at n do, uint32; equal scores have equal ones, -0 and 0 among them."""
    score = tl.load(scores + n, mask=n < N, other=0.0)
    bits = tl.where(score == 0.0, 0.0, score).to(tl.uint32, bitcast=True)
    return tl.where(bits >= 0x80000000, bits ^ 0xFFFFFFFF, bits ^ 0x80000000)


@triton.jit
def last_digit(counts, chunks, left, ROWS: tl.constexpr):
    """Return the digit of the last of `left` numbers to be chosen, and how many are to be chosen that have it.

    counts: (chunks, 256), how often each digit occurs.
    """
    d = tl.arange(0, 256)
    total = tl.zeros([256], tl.int32)
    for first in tl.range(0, chunks, ROWS):
        c = first + tl.arange(0, ROWS)
        total += tl.sum(
            tl.load(counts + c[:, None] * 256 + d[None, :], mask=(c < chunks)[:, None], other=0), 0
        )
    so_large = tl.cumsum(total, 0, reverse=True)  # how many have this digit or a larger one
    digit = tl.sum((so_large >= left).to(tl.int32), 0) - 1
    return digit, left - tl.sum(tl.where(d > digit, total, 0), 0)


@triton.jit
def digit_kernel(
    scores, counts, larger, found, N, K, DIGIT: tl.constexpr, CHUNK: tl.constexpr, ROWS: tl.constexpr
):
    """One program counts a digit of a chunk of one sequence's scores: of those whose digits before are the last one's.

    counts: two tables (B, chunks, 256), in turns; larger: (B, chunks); found: (4, B, 2), what the first digits are, and
    how many of those that have them are to be chosen.
    """
    chunk, chunks = tl.program_id(0), tl.num_programs(0)
    b, sequences = tl.program_id(1), tl.num_programs(1)
    n = chunk * CHUNK + tl.arange(0, CHUNK)
    key = keys_at(scores + b.to(tl.int64) * N, n, N)
    counted = n < N
    table = sequences * chunks * 256
    mine = counts + DIGIT % 2 * table + b * chunks * 256
    if DIGIT > 0:
        before = found + ((DIGIT - 1) * sequences + b) * 2
        digit, left = last_digit(
            counts + (DIGIT - 1) % 2 * table + b * chunks * 256, chunks, tl.load(before + 1), ROWS
        )
        prefix = (tl.load(before).to(tl.uint32, bitcast=True) << 8) | digit.to(tl.uint32)
        own = key >> (8 * (4 - DIGIT))
        if DIGIT == 3:
            tl.store(larger + b * chunks + chunk, tl.sum(((own > prefix) & counted).to(tl.int32), 0))
        counted = counted & (own == prefix)
    else:
        left = K
        prefix = tl.full([], 0, tl.uint32)
    # Every program of a sequence finds the same, and only the next kernel reads it.
    tl.store(found + (DIGIT * sequences + b) * 2, prefix.to(tl.int32, bitcast=True))
    tl.store(found + (DIGIT * sequences + b) * 2 + 1, left)
    value = ((key >> (8 * (3 - DIGIT))) & 255).to(tl.int32)
    # Whoever does not count is a zero, and taken from the zeros.
    d = tl.arange(0, 256)
    amount = tl.histogram(tl.where(counted, value, 0), 256)
    amount -= tl.where(d == 0, CHUNK - tl.sum(counted.to(tl.int32), 0), 0)
    tl.store(mine + chunk * 256 + d, amount)


@triton.jit
def place_kernel(
    scores, counts, larger, found, chosen, N, K, DIGITS: tl.constexpr, CHUNK: tl.constexpr, ROWS: tl.constexpr
):
    """One program writes the positions of the chosen tokens of its chunk, behind those of the chunks before."""
    chunk, chunks = tl.program_id(0), tl.num_programs(0)
    b, sequences = tl.program_id(1), tl.num_programs(1)
    counts += (DIGITS - 1) % 2 * sequences * chunks * 256 + b * chunks * 256
    before = found + ((DIGITS - 1) * sequences + b) * 2
    digit, left = last_digit(counts, chunks, tl.load(before + 1), ROWS)
    least = (tl.load(before).to(tl.uint32, bitcast=True) << 8) | digit.to(tl.uint32)
    # Of the chunks before this one: how many scores are larger than the last one chosen, and how many are equal.
    d = tl.arange(0, 256)
    over, equal = tl.zeros([], tl.int32), tl.zeros([], tl.int32)
    for first in tl.range(0, chunk, ROWS):
        c = first + tl.arange(0, ROWS)
        amount = tl.load(counts + c[:, None] * 256 + d[None, :], mask=(c < chunk)[:, None], other=0)
        over += tl.sum(tl.sum(tl.where((d > digit)[None, :], amount, 0), 1), 0)
        over += tl.sum(tl.load(larger + b * chunks + c, mask=c < chunk, other=0), 0)
        equal += tl.sum(tl.sum(tl.where((d == digit)[None, :], amount, 0), 1), 0)
    n = chunk * CHUNK + tl.arange(0, CHUNK)
    key = keys_at(scores + b.to(tl.int64) * N, n, N)
    is_equal = ((key == least) & (n < N)).to(tl.int32)
    # Of equals the lower positions, as many as are left.
    taken = ((key > least) & (n < N)) | ((is_equal > 0) & (equal + tl.cumsum(is_equal, 0) <= left))
    place = over + tl.minimum(equal, left) + tl.cumsum(taken.to(tl.int32), 0) - 1
    tl.store(chosen + b.to(tl.int64) * K + place, n, mask=taken)


# --- on the host -------------------------------------------------------------


def choose(scores: torch.Tensor, K: int) -> torch.Tensor:
    """Return the positions of the K largest scores of each row, rising; of equals the lower ones: (B, K) int32.

    Args:
        scores: (B, N) float32, contiguous, no NaN among them.
        K: 1 to N.
    """
    B, N = scores.shape
    chunks = triton.cdiv(N, CHUNK)
    of = {"dtype": torch.int32, "device": scores.device}
    counts = torch.empty(2, B, chunks, 256, **of)
    larger, found = torch.empty(B, chunks, **of), torch.empty(DIGITS, B, 2, **of)
    chosen = torch.empty(B, K, **of)
    how = {"CHUNK": CHUNK, "ROWS": ROWS, "num_warps": WARPS}
    for digit in range(DIGITS):
        digit_kernel[(chunks, B)](scores, counts, larger, found, N, K, DIGIT=digit, **how)
    place_kernel[(chunks, B)](scores, counts, larger, found, chosen, N, K, DIGITS=DIGITS, **how)
    return chosen


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
    """Attention of one query for each sequence and head over the tokens that the index puts first.

    Args:
        index_q: (B, H_I, 128) bfloat16 or float16, contiguous, H_I at most 64.
        index_weight: (B, H_I) float32, contiguous.
        index_k: (B, N, 128), the type of index_q, contiguous.
        q: (B, H, 576), the same type, contiguous.
        latent: (B, N, 576), the same type, contiguous.
        top: how many tokens are chosen, at least 1; more than N count as N.
        loop, splits: as for kernel 3.
    Returns:
        (B, H, 512), the same type: every row a weighted mean of the first 512 numbers of chosen rows of latent. The
        same bits every time on one kind of card.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    sizes = sizes_of(index_q, index_weight, index_k, q, latent, top)
    chosen = choose(index_scores(index_q, index_weight, index_k), sizes.K)
    return attend_chosen(q, latent, chosen, loop, splits)
