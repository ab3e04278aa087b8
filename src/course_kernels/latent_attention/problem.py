"""Attention of one token over a list of latents, the contract: a head's keys and values are made from what all share.

    K[b, h, n, d] = sum over c of Wk[h, d, c] * L[b, n, c]         L[b, n, :] = cache[b, n, :C], the latent of a token
    V[b, h, n, d] = sum over c of Wv[h, d, c] * L[b, n, c]
    S[b, h, n] = scale * (sum over d of Q[b, h, d] * K[b, h, n, d] + sum over r of Q[b, h, D + r] * cache[b, n, C + r])
    P[b, h, :] = softmax(S[b, h, :])                               scale = 1 / sqrt(D + R)
    O[b, h, d] = sum over n of P[b, h, n] * V[b, h, n, d]

Shapes    Q (B, H, D + R), Wk and Wv (H, D, C), cache (B, N, C + R), O (B, H, D), row-major
Types     float32; the truth is computed in float64
Cost      read all four inputs, write O. Made for every token, keys and values take 4*H*N*D*C operations a sequence;
          2*H*D*C for the query and as many for the answer do instead, and then 2*H*N*(2*C + R) over the list

The last R numbers of a query and of the list carry the position; all heads share those of the list.
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.problem import Problem, Workload


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw queries (B, H, D + R), weights (H, D, C) twice, list (B, N, C + R), normal; keys then have variance 1."""
    shapes = ((w.B, w.H, w.D + w.R), (w.H, w.D, w.C), (w.H, w.D, w.C), (w.B, w.N, w.C + w.R))
    q, w_k, w_v, cache = (
        torch.randn(*shape, generator=generator, dtype=w.torch_dtype, device=device) for shape in shapes
    )
    return q, w_k / sqrt(w.C), w_v / sqrt(w.C), cache


def reference(q: torch.Tensor, w_k: torch.Tensor, w_v: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
    """Return the answer in float64, (B, H, D); keys and values are made."""
    q, w_k, w_v = q.double(), w_k.double(), w_v.double()
    _, D, C = w_k.shape
    out = torch.empty((*q.shape[:2], D), dtype=torch.float64, device=q.device)
    for query, one, answer in zip(
        q, cache, out, strict=True
    ):  # the keys and values of one sequence at a time
        latent, position = one[:, :C].double(), one[:, C:].double()
        keys, values = latent @ w_k.mT, latent @ w_v.mT  # [H, N, D]
        scores = (keys @ query[:, :D, None])[:, :, 0] + query[:, D:] @ position.T  # [H, N]
        shares = torch.softmax(scores / sqrt(q.shape[2]), dim=-1)
        answer.copy_((shares[:, None] @ values)[:, 0])
    return out


def flops(w: Workload) -> int:
    """Return the operations that are needed, in whichever form takes fewer."""
    absorbed = 2 * w.D * w.C + w.N * (2 * w.C + w.R)
    made = 2 * w.N * w.D * w.C + w.N * (2 * w.D + w.R)
    return int(2 * w.B * w.H * min(absorbed, made))


def _sizes(*sizes: tuple[int, int, int, int, int, int]) -> tuple[Workload, ...]:
    return tuple(Workload.of("float32", B=B, H=H, N=N, D=D, R=R, C=C) for B, H, N, D, R, C in sizes)


PROBLEM = Problem(
    name="latent_attention",
    formula="O[b, h] = softmax((Q[b, h, :D] K[b, h]^T + Q[b, h, D:] cache[b, :, C:]^T) / sqrt(D + R)) V[b, h]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: (
        w.element_bytes * (w.B * (w.H * (w.D + w.R) + w.N * (w.C + w.R)) + 2 * w.H * w.D * w.C)
    ),
    writes_bytes=lambda w: w.element_bytes * w.B * w.H * w.D,
    flops=flops,
    math=lambda w: "fp32",
    max_error=lambda w: 2.0**-15,  # what is left is the order of additions; products of TF32 do not pass
    hard=lambda w: (),  # which sums meet an infinity depends on the form: inf - inf in one is inf in the other
    # Any number of heads and tokens. Widths are those announced here: with one number in a latent, or in a row, a mean
    # of both signs may be all there is of an answer, and its rounding is large beside it.
    check_on=_sizes(
        (1, 16, 4096, 128, 64, 512),  # DeepSeek's numbers, with the heads of one card of eight
        (1, 1, 1, 4, 2, 6),
        (2, 3, 17, 5, 3, 12),
        (3, 20, 129, 24, 6, 40),  # more than 16 heads
        (1, 7, 1000, 16, 9, 34),
        (2, 33, 70, 32, 16, 64),
        (1, 5, 65, 20, 18, 7),  # more of the position than of the latent
    ),
    time_on=_sizes((64, 16, 1024, 128, 64, 512), (64, 16, 4096, 128, 64, 512)),
)
