"""Attention, kernel 1: the formula as it stands, with the whole N x N matrix of scores in memory.

Contract  problem.py
Idea      two matrix multiplies of the library, and a softmax between them
Cost      the N x N matrix crosses memory four times: scores written, read, weights written, read; twice more
          for a causal mask. It is kept in the type of the inputs, so that scores are rounded to it
Next      k02_teaching never writes a score to memory
Source    Vaswani et al. 2017, arXiv:1706.03762, equation 1
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.attention.arguments import sizes_of

TYPES = (torch.bfloat16, torch.float16, torch.float32)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False) -> torch.Tensor:
    """Attention through a matrix of scores in memory.

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
        # alpha scales inside the multiply: a step of its own would be one more trip of the whole matrix.
        heads_q, heads_k = q.view(B * H, N, D), k.view(B * H, N, D)
        nothing = q.new_zeros(1, 1, 1)
        scores = torch.baddbmm(
            nothing, heads_q, heads_k.transpose(-1, -2), beta=0, alpha=1 / sqrt(D)
        )  # [B*H, N, N]
        if causal:
            unseen = torch.ones(N, N, dtype=torch.bool, device=q.device).triu_(1)  # keys after the row's own
            scores.masked_fill_(unseen, -torch.inf)
        weights = torch.softmax(scores, dim=-1)  # [B*H, N, N]
        return (weights @ v.view(B * H, N, D)).view(B, H, N, D)
    finally:
        torch.set_float32_matmul_precision(before)
