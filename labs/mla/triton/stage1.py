"""Lab mla: attention over one list of latents that all heads share; a program has a block of heads of a sequence."""

from math import sqrt

import torch
import triton
import triton.language as tl

BLOCK_H = 16  # heads of a program: they share what it loads of the list


@triton.jit
def latent_attention_kernel(
    q_ptr, w_k_ptr, w_v_ptr, cache_ptr, o_ptr, H, N, D, R, C, scale,
    BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """The answers of a block of heads in one sequence: D numbers for each of them."""
    b = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)  # [BLOCK_H] heads; from H on there is none
    c = tl.arange(0, BLOCK_C)  # [BLOCK_C] places in a latent
    r = tl.arange(0, BLOCK_R)  # [BLOCK_R] places in a position
    q_row = q_ptr + (b * H + h) * (D + R)  # [BLOCK_H] where the query of each head begins
    o_row = o_ptr + (b * H + h) * D  # [BLOCK_H]
    w_row = (
        h[:, None] * D * C + c[None, :]
    )  # [BLOCK_H, BLOCK_C] row 0 of each head's matrix; row d is d * C further
    there = (h[:, None] < H) & (c[None, :] < C)
    latent = tl.load(cache_ptr + b * N * (C + R) + c, mask=c < C, other=0.0)  # [BLOCK_C] of the first token
    for d in range(D):
        w = tl.load(w_v_ptr + w_row + d * C, mask=there, other=0.0)  # [BLOCK_H, BLOCK_C]
        tl.store(o_row + d, tl.sum(w * latent[None, :], axis=1), mask=h < H)


def latent_attention(
    q: torch.Tensor, w_k: torch.Tensor, w_v: torch.Tensor, cache: torch.Tensor
) -> torch.Tensor:
    """The answer (B, H, D): q is (B, H, D + R), w_k and w_v are (H, D, C), cache is (B, N, C + R)."""
    (B, H, _), (_, D, C), N = q.shape, w_k.shape, cache.shape[1]
    R = cache.shape[2] - C
    o = torch.empty((B, H, D), dtype=q.dtype, device=q.device)
    # 16 is the least that `tl.dot` takes.
    BLOCK_R, BLOCK_C = (max(16, triton.next_power_of_2(size)) for size in (R, C))
    BLOCK_N = max(16, triton.next_power_of_2(N))  # room for the whole list
    latent_attention_kernel[(B, triton.cdiv(H, BLOCK_H))](
        q, w_k, w_v, cache, o, H, N, D, R, C, 1 / sqrt(D + R),
        BLOCK_H=BLOCK_H, BLOCK_N=BLOCK_N, BLOCK_R=BLOCK_R, BLOCK_C=BLOCK_C, num_warps=8, num_stages=1,
    )  # fmt: skip
    return o
