"""Sparse attention, kernel 3: attention reads the chosen rows where they lie.

Contract  problem.py, but for `ties`: `torch.topk` takes any of equals
Idea      between a token of the loop and its address there is one more load, its position in the cache. A row is 1152
          bytes, nine whole lines of memory, so rows that lie apart are no more bytes than rows side by side; and the
          positions of a step are fetched while the step before is under way
Against   k02_in_pieces, which copies the chosen rows: it reads them, writes them and reads them again
Cost      N narrow rows, TOP wide ones, 4 bytes a token for each pass over the scores, and 8 for each chosen position.
          The chosen tokens are cut into parts as those of kernel 1 are, so a single sequence still fills most of the
          card
Limits    the choice is still that of `torch.topk`: several kernels, and all tokens' scores pass by several times. With
          one sequence a part has 128 tokens, and leaves more to be merged than it reads
Next      k04_chosen chooses by itself
Source    DeepSeek-AI 2025, DeepSeek-V3.2-Exp, section 1, equation 2; FlashMLA's README, `indices` of the sparse decode,
          github.com/deepseek-ai/FlashMLA
"""

from __future__ import annotations

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.sparse_attention.arguments import sizes_of
from course_kernels.sparse_attention.k01_dense import fold, load_queries
from course_kernels.sparse_attention.k02_in_pieces import index_scores, supports
from course_kernels.sparse_attention.parts import Loop, attend, steps_of_part, store_part

__all__ = ["attend_chosen", "sparse_attention", "supports"]


# --- on the device -----------------------------------------------------------


@triton.jit
def positions_at(chosen, start, last, STEP: tl.constexpr):
    """Return where the chosen tokens from `start` on lie: [STEP]. Past the last one nothing is read."""
    k = start + tl.arange(0, STEP)
    return tl.load(chosen + k, mask=k < last, other=0).to(tl.int32)


@triton.jit
def gathered_kernel(
    Q, C, N, chosen, O, parts, K, H, scale,
    HEADS: tl.constexpr, STEP: tl.constexpr, LATENT: tl.constexpr, POSITION: tl.constexpr, ALONE: tl.constexpr,
):  # fmt: skip
    """One program takes a part of one sequence's chosen tokens for a block of heads."""
    b, first_head = tl.program_id(2).to(tl.int64), tl.program_id(0) * HEADS
    q_latent, q_position = load_queries(Q, b, first_head, H, HEADS, LATENT, POSITION)
    C += b * N * (LATENT + POSITION)
    chosen += b * K
    m = tl.full([HEADS], -float("inf"), tl.float32)  # counts in powers of two
    l = tl.zeros([HEADS], tl.float32)
    acc = tl.zeros([HEADS, LATENT], tl.float32)
    first, last = steps_of_part(K, STEP)
    n = positions_at(chosen, first, last, STEP)
    for start in tl.range(first, last, STEP):
        # Of the next turn: the positions arrive while this one's rows are on their way.
        ahead = positions_at(chosen, start + STEP, last, STEP)
        there = start + tl.arange(0, STEP) < last
        acc, m, l = fold(q_latent, q_position, C, n, there, scale, acc, m, l)
        n = ahead
    store_part(O, parts, b, first_head, H, acc, m, l, ALONE)


# --- on the host -------------------------------------------------------------


def attend_chosen(
    q: torch.Tensor,
    latent: torch.Tensor,
    chosen: torch.Tensor,
    loop: Loop | None = None,
    splits: int | None = None,
) -> torch.Tensor:
    """Attention over the rows that are chosen, in place: (B, H, 512), of tensors that are checked.

    Args:
        q, latent: as in the contract.
        chosen: (B, K) int32 or int64, positions in the cache of each sequence, 0 to N - 1. A kernel takes its word.
        loop, splits: settings; None for what suits the card and the shapes.
    """
    return attend(gathered_kernel, q, chosen.shape[1], (latent, latent.shape[1], chosen), loop, splits)


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
        loop: `WIDE` or `NARROW` of parts.py; without it, what suits the card and the shapes.
        splits: into how many parts the chosen tokens are cut, at most; without it, what suits the card and the shapes.
    Returns:
        (B, H, 512), the same type: every row a weighted mean of the first 512 numbers of chosen rows of latent.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    sizes = sizes_of(index_q, index_weight, index_k, q, latent, top)
    scores = index_scores(index_q, index_weight, index_k)
    return attend_chosen(q, latent, torch.topk(scores, sizes.K, sorted=False).indices, loop, splits)
