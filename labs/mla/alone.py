"""The last task of the lab mla: a list whose latents are stored with a scale for each token.

    L[b, n, c] = scale[b, n] * cache[b, n, c]            c < C; the R numbers of position, cache[b, n, C:], have none
    O[b, h] = softmax((Q[b, h, :D] K[b, h]^T + Q[b, h, D:] cache[b, :, C:]^T) / sqrt(D + R)) V[b, h]
    K[b, h, n] = Wk[h] L[b, n], V[b, h, n] = Wv[h] L[b, n]

Shapes    Q (B, H, D + R), Wk and Wv (H, D, C), cache (B, N, C + R), scale (B, N), O (B, H, D), row-major
Types     float32; the truth is computed in float64
Cost      read all inputs, write O; operations as in latent_attention, and two for each scale and each head
"""

from __future__ import annotations

import torch

from course_kernels.latent_attention.problem import PROBLEM as WITHOUT
from course_kernels.latent_attention.problem import reference as without_scales
from course_kernels.problem import Problem, Workload


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, ...]:
    """Inputs as in the lab, and the scale of every latent: each is divided by it, and its largest is then 1."""
    q, w_k, w_v, cache = WITHOUT.make_inputs(w, generator, device)
    latent = cache[:, :, : w.C]
    scale = latent.abs().amax(dim=2)
    latent /= scale[:, :, None]
    spread = torch.rand(scale.shape, generator=generator, dtype=scale.dtype, device=device)
    return q, w_k, w_v, cache, scale * (0.5 + 1.5 * spread)


def reference(
    q: torch.Tensor, w_k: torch.Tensor, w_v: torch.Tensor, cache: torch.Tensor, scale: torch.Tensor
) -> torch.Tensor:
    """The answer in float64: (B, H, D)."""
    cache = cache.double()
    cache[:, :, : w_k.shape[2]] *= scale[:, :, None]
    return without_scales(q, w_k, w_v, cache)


PROBLEM = Problem(
    name="scaled_latent_attention",
    formula="latent_attention, with every latent of the list times its scale",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: WITHOUT.reads_bytes(w) + w.element_bytes * w.B * w.N,
    writes_bytes=WITHOUT.writes_bytes,
    flops=lambda w: WITHOUT.flops(w) + 2 * w.B * w.H * w.N,
    math=WITHOUT.math,
    max_error=WITHOUT.max_error,
    hard=WITHOUT.hard,
    check_on=WITHOUT.check_on[1:],
    time_on=WITHOUT.time_on,
)
