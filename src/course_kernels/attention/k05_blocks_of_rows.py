"""Attention, kernel 5: a block of queries at a time, with whole rows of scores in memory.

Contract  problem.py
Idea      the steps of kernel 1 for ROWS queries, then for the next ROWS, in the same room
Against   k01_materialised, which holds the scores of all queries at once
Cost      room for 2 * ROWS * N scores of each head, and no longer for 2 * N * N. Every score crosses memory as often
          as before, and all of K and V once for every block: more trips, not fewer
Next      k02_teaching never writes a score to memory
Source    Vaswani et al. 2017, arXiv:1706.03762, equation 1, some rows at a time
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.attention.arguments import sizes_of

TYPES = (torch.bfloat16, torch.float16, torch.float32)

# A sixteenth of N = 16384. Fewer rows need less room, and fetch K and V more often.
ROWS = 1024


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False) -> torch.Tensor:
    """Attention through the scores of ROWS queries at a time.

    Args:
        q, k, v: (B, H, N, D) bfloat16, float16 or float32, contiguous, any N and D.
        causal: row m sees keys 0 to m only.
    Returns:
        (B, H, N, D) of the same type; every row is a weighted mean of rows of v. float32 is computed without
        TF32, whatever the caller's own setting is.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    B, H, N, D = sizes_of(q, k, v, TYPES)

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        q, k, v = (x.view(B * H, N, D) for x in (q, k, v))
        nothing = q.new_zeros(1, 1, 1)
        out = torch.empty_like(q)
        # region loop
        for start in range(0, N, ROWS):
            block = slice(start, start + ROWS)
            scores = torch.baddbmm(
                nothing, q[:, block], k.transpose(-1, -2), beta=0, alpha=1 / sqrt(D)
            )  # [B*H, ROWS, N], whole rows
            if causal:  # keys after the row's own
                unseen = torch.ones_like(scores[0], dtype=torch.bool).triu_(start + 1)
                scores.masked_fill_(unseen, -torch.inf)
            weights = torch.softmax(scores, dim=-1)  # [B*H, ROWS, N]
            out[:, block] = weights @ v
            del scores, weights  # the next block is made in their room, not beside them
        # endregion
        return out.view(B, H, N, D)
    finally:
        torch.set_float32_matmul_precision(before)
