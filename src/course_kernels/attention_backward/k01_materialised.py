"""Attention backward, kernel 1: the formulas as they stand, with the N x N matrices in memory.

Contract  problem.py
Idea      five matrix multiplies of the library, and between them what happens to each score
Cost      P and dP lie in memory, N x N float32 for each head, and both once more in the type of the inputs, as the next
          multiply wants them. A matrix of that size crosses memory 18 times; twice more for a causal mask
Next      k02_teaching makes P again, tile by tile, and never writes it to memory
Source    Dao et al. 2022, arXiv:2205.14135, appendix B.2
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.attention_backward.arguments import sizes_of

TYPES = (torch.bfloat16, torch.float16, torch.float32)


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Multiply a @ b in float32, (B, M, K) by (B, K, N).

    Scores and dP, whose roundings an exponent and a difference enlarge.
    """
    if a.device.type == "cuda" and a.dtype is not torch.float32:
        return torch.bmm(a, b, out_dtype=torch.float32)  # tensor cores add up in it anyway; for GPUs alone
    return a.float() @ b.float()


def attention_backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    do: torch.Tensor,
    *,
    causal: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of attention through matrices in memory.

    Args:
        q, k, v, o, do: (B, H, N, D) bfloat16, float16 or float32, contiguous, any N and D.
        lse: (B, H, N) float32, contiguous: what the forward pass kept, a natural logarithm.
        causal: row m sees keys 0 to m only.
    Returns:
        dq, dk, dv: (B, H, N, D) of the same type. float32 is computed without TF32, whatever the caller's own
        setting is.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    B, H, N, D = sizes_of(q, k, v, o, lse, do, TYPES)
    shape, scale = q.shape, 1 / sqrt(D)
    q, k, v, o, do = (x.view(B * H, N, D) for x in (q, k, v, o, do))

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        p = product(q, k.transpose(-1, -2))  # [B*H, N, N], scores so far
        if causal:
            unseen = torch.ones(N, N, dtype=torch.bool, device=q.device).triu_(1)  # keys after the row's own
            p.masked_fill_(unseen, -torch.inf)
        torch.add(-lse.view(B * H, N, 1), p, alpha=scale, out=p).exp_()
        dv = p.to(q.dtype).transpose(-1, -2) @ do
        delta = (do.float() * o.float()).sum(dim=-1, keepdim=True)  # [B*H, N, 1]
        ds = product(do, v.transpose(-1, -2)).sub_(delta).mul_(p)  # [B*H, N, N]
        del p  # the next matrix is made in its room, not beside it
        ds = ds.to(q.dtype)
        # alpha scales inside the multiply: a step of its own would be one more trip.
        nothing = q.new_zeros(1, 1, 1)
        dq = torch.baddbmm(nothing, ds, k, beta=0, alpha=scale)
        dk = torch.baddbmm(nothing, ds.transpose(-1, -2), q, beta=0, alpha=scale)
    finally:
        torch.set_float32_matmul_precision(before)
    return dq.view(shape), dk.view(shape), dv.view(shape)
