"""The last task of the lab flash_attention: attention in which a key counts less the further away it is.

    S[m, n] = scale * sum over d of Q[m, d] * K[n, d] - slope[h] * |m - n|       scale = 1 / sqrt(D)
    P[m, :] = softmax(S[m, :])
    O[m, d] = sum over n of P[m, n] * V[n, d]

Shapes    Q, K, V, O (B, H, N, D), slope (H,), row-major; every (b, h) is a problem of its own
Types     float32; the truth is computed in float64
Cost      read Q, K, V and the slopes, write O; 4*B*H*N*N*D operations
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.problem import Problem, Workload


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Q, K and V (B, H, N, D), normal with variance 1, and a slope (H,) between 0.05 and 0.25 for every head."""
    q, k, v = (
        torch.randn(w.B, w.H, w.N, w.D, generator=generator, dtype=w.torch_dtype, device=device)
        for _ in range(3)
    )
    return q, k, v, 0.05 + torch.rand(w.H, generator=generator, dtype=w.torch_dtype, device=device) / 5


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    """The answer in float64: (B, H, N, D)."""
    B, H, N, D = q.shape
    place = torch.arange(N, dtype=torch.float64, device=q.device)
    away = (place[:, None] - place).abs()
    out = torch.empty((B, H, N, D), dtype=torch.float64, device=q.device)
    for b in range(B):
        for h in range(H):  # one head's square at a time
            scores = q[b, h].double() @ k[b, h].double().T / sqrt(D) - slope[h].double() * away
            out[b, h] = torch.softmax(scores, dim=-1) @ v[b, h].double()
    return out


PROBLEM = Problem(
    name="attention_by_distance",
    formula="O = softmax(Q K^T / sqrt(D) - slope |m - n|) V, row by row; a slope for every head",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: (3 * w.B * w.H * w.N * w.D + w.H) * w.element_bytes,
    writes_bytes=lambda w: w.B * w.H * w.N * w.D * w.element_bytes,
    flops=lambda w: 4 * w.B * w.H * w.N * w.N * w.D,
    math=lambda w: "fp32",
    max_error=lambda w: 2.0**-15,  # as in the problem attention: what is left is the order of N additions
    rows_apart=True,
    hard=lambda w: (),  # as in the problem attention
    check_on=tuple(Workload.of("float32", B=2, H=3, N=N, D=128) for N in (1, 127, 129, 1000)),
    time_on=(Workload.of("float32", B=4, H=16, N=4096, D=128),),
)
