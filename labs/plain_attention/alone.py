"""The last task of the lab plain_attention: heads of queries that share heads of keys and values.

    group = H / KV                                                       head h of the queries has head h // group
    S[h, m, n] = scale * sum over d of Q[h, m, d] * K[h // group, n, d]  scale = 1 / sqrt(D)
    P[h, m, :] = softmax(S[h, m, :])                                     causal: over n <= m only
    O[h, m, d] = sum over n of P[h, m, n] * V[h // group, n, d]

Shapes    Q, O (H, N, D), K, V (KV, N, D), row-major; KV divides H
Types     float32; the truth is computed in float64
Cost      read Q, K, V, write O: 2 * (H + KV) * N * D elements; 4*H*N*N*D operations, half of them when causal
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import torch

from course_kernels.problem import Problem, Workload


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Queries (H, N, D), keys and values (KV, N, D), normal with variance 1."""
    q, k, v = (
        torch.randn(heads, w.N, w.D, generator=generator, dtype=w.torch_dtype, device=device)
        for heads in (w.H, w.KV, w.KV)
    )
    return q, k, v


def options(w: Workload) -> dict[str, Any]:
    """The keyword argument `causal`."""
    return {"causal": bool(w.dims.get("causal", False))}


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False) -> torch.Tensor:
    """The answer in float64: (H, N, D)."""
    (H, N, D), KV = q.shape, k.shape[0]
    ahead = torch.ones(N, N, dtype=torch.bool, device=q.device).triu(1)
    out = torch.empty((H, N, D), dtype=torch.float64, device=q.device)
    for h in range(H):  # one head's square at a time
        shared = h * KV // H
        scores = q[h].double() @ k[shared].double().T / sqrt(D)
        if causal:
            scores.masked_fill_(ahead, -torch.inf)
        out[h] = torch.softmax(scores, dim=-1) @ v[shared].double()
    return out


PROBLEM = Problem(
    name="grouped_attention",
    formula="O = softmax(Q K^T / sqrt(D)) V for every head of Q; H / KV of them share a head of K and V",
    make_inputs=make_inputs,
    options=options,
    reference=reference,
    reads_bytes=lambda w: (w.H + 2 * w.KV) * w.N * w.D * w.element_bytes,
    writes_bytes=lambda w: w.H * w.N * w.D * w.element_bytes,
    flops=lambda w: 4 * w.H * w.N * w.N * w.D // (2 if options(w)["causal"] else 1),
    math=lambda w: "fp32",
    max_error=lambda w: 2.0**-15,  # as in the problem attention: what is left is the order of N additions
    rows_apart=True,
    hard=lambda w: (),  # as in the problem attention
    # A program may hold all rows of K in one block: at large sizes they do not fit into registers.
    check_on=tuple(
        Workload.of("float32", H=6, KV=2, N=N, D=D, causal=causal)
        for N, D in ((1, 64), (127, 64), (129, 32), (1000, 8))
        for causal in (False, True)
    ),
    time_on=(Workload.of("float32", H=64, KV=8, N=512, D=64, causal=True),),
)
