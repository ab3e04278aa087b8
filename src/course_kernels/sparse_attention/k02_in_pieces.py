"""Sparse attention, kernel 2: score, choose, copy, attend, each a kernel of its own.

Contract  problem.py, but for `ties`: `torch.topk` takes any of equals
Idea      the index has a narrow row for each token. All of them are read, and of the wide rows of the cache only those
          whose score is among the TOP largest: `torch.topk` finds them, a copy lays them side by side, and kernel 1
          goes over the copy
Against   k01_dense, which reads every wide row
Cost      N narrow rows and TOP wide ones; a score of 4 bytes for each token, written once and read by every pass of the
          choice. The copy writes the chosen rows, and attention reads them again: three trips instead of one
Limits    three kernels of ours, the copy, and those of `torch.topk`, each with a start and an end: with few tokens
          these are what it takes. With few sequences the choice does not fill the card
Next      k03_gathered leaves out the copy
Source    DeepSeek-AI 2025, DeepSeek-V3.2-Exp, section 1, equations 1 and 2; its inference code, `Indexer` and
          `fp8_index`, github.com/deepseek-ai/DeepSeek-V3.2-Exp
"""

from __future__ import annotations

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.problem import Workload
from course_kernels.sparse_attention.arguments import sizes_of
from course_kernels.sparse_attention.k01_dense import dense_kernel, takes
from course_kernels.sparse_attention.parts import attend, multiprocessors
from course_kernels.sparse_attention.problem import INDEX_WIDTH, WIDTH

# 128 index keys are 32 KB; three tiles and the queries are 112 KB of shared memory, so two programs find room.
TILE, WARPS, STAGES, RESIDENT = 128, 4, 3, 2
LEAST_HEADS = 16  # of a product on tensor cores


# --- on the device -----------------------------------------------------------


@triton.jit
def scores_kernel(
    IQ, W, IK, scores, N, H_I, HEADS: tl.constexpr, TILE: tl.constexpr, INDEX_WIDTH: tl.constexpr
):
    """One program scores a part of one sequence's tokens, a tile after the other."""
    part, parts, b = tl.program_id(0), tl.num_programs(0), tl.program_id(1).to(tl.int64)
    j, d = tl.arange(0, HEADS), tl.arange(0, INDEX_WIDTH)
    # Heads past the last have a weight of zero, and zeros that it is multiplied by.
    iq = tl.load(IQ + (b * H_I + j)[:, None] * INDEX_WIDTH + d[None, :], mask=(j < H_I)[:, None], other=0.0)
    weight = tl.load(W + b * H_I + j, mask=j < H_I, other=0.0)
    tiles = tl.cdiv(N, TILE)
    for tile in tl.range(part * tiles // parts, (part + 1) * tiles // parts):
        n = tile * TILE + tl.arange(0, TILE)
        ik = tl.load(IK + (b * N + n)[:, None] * INDEX_WIDTH + d[None, :], mask=(n < N)[:, None], other=0.0)
        # Tokens are the rows: the sum over heads stays within four neighbouring threads.
        s = tl.maximum(tl.dot(ik, iq.T), 0.0) * weight[None, :]  # [TILE, HEADS]
        tl.store(scores + b * N + n, tl.sum(s, 1), mask=n < N)


# --- on the host -------------------------------------------------------------


def supports(w: Workload) -> bool:
    """Return whether the kernels that choose by `torch.topk` take a workload: no equals where the choice ends."""
    return takes(w) and not w.dims.get("ties", False)


def index_scores(
    index_q: torch.Tensor, index_weight: torch.Tensor, index_k: torch.Tensor, programs: int | None = None
) -> torch.Tensor:
    """Return the scores of all tokens, (B, N) float32, of tensors that are checked.

    Args:
        index_q, index_weight, index_k: as in the contract.
        programs: for each sequence; without it, as many as fit on the card at once.
    """
    (B, H_I, _), N = index_q.shape, index_k.shape[1]
    programs = programs or max(1, RESIDENT * multiprocessors(index_q.device) // B)
    scores = torch.empty(B, N, dtype=torch.float32, device=index_q.device)
    scores_kernel[(min(programs, triton.cdiv(N, TILE)), B)](
        index_q, index_weight, index_k, scores, N, H_I,
        HEADS=max(LEAST_HEADS, triton.next_power_of_2(H_I)), TILE=TILE, INDEX_WIDTH=INDEX_WIDTH,
        num_warps=WARPS, num_stages=STAGES,
    )  # fmt: skip
    return scores


def sparse_attention(
    index_q: torch.Tensor,
    index_weight: torch.Tensor,
    index_k: torch.Tensor,
    q: torch.Tensor,
    latent: torch.Tensor,
    *,
    top: int,
) -> torch.Tensor:
    """Attention of one query for each sequence and head over the tokens that the index puts first.

    Args:
        index_q: (B, H_I, 128) bfloat16 or float16, contiguous, H_I at most 64.
        index_weight: (B, H_I) float32, contiguous.
        index_k: (B, N, 128), the type of index_q, contiguous.
        q: (B, H, 576), the same type, contiguous.
        latent: (B, N, 576), the same type, contiguous.
        top: how many tokens are chosen, at least 1; more than N count as N.
    Returns:
        (B, H, 512), the same type: every row a weighted mean of the first 512 numbers of chosen rows of latent.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    sizes = sizes_of(index_q, index_weight, index_k, q, latent, top)
    scores = index_scores(index_q, index_weight, index_k)
    chosen = torch.topk(scores, sizes.K, sorted=False).indices  # [B, K]
    chosen += torch.arange(0, sizes.B * sizes.N, sizes.N, device=q.device)[:, None]
    # Eight bytes at a time, whatever torch makes of numbers of two.
    wide = latent.view(torch.int64).view(-1, WIDTH // 4)
    rows = torch.index_select(wide, 0, chosen.view(-1)).view(q.dtype)
    return attend(dense_kernel, q, sizes.K, (rows,), None, None)
