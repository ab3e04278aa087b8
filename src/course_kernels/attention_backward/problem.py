"""Attention backward, the contract: what the loss is to q, k and v, once it is known what it is to the output.

    S[m, n]  = scale * sum over d of Q[m, d] * K[n, d]          scale = 1 / sqrt(D); causal: over n <= m only
    P[m, n]  = exp(S[m, n] - L[m])                              L, the log-sum-exp, was kept by the forward pass
    dP[m, n] = sum over d of dO[m, d] * V[n, d]
    D[m]     = sum over d of dO[m, d] * O[m, d]                 which is the sum over n of P[m, n] * dP[m, n]
    dS[m, n] = P[m, n] * (dP[m, n] - D[m])
    dQ[m, d] = scale * sum over n of dS[m, n] * K[n, d]
    dK[n, d] = scale * sum over m of dS[m, n] * Q[m, d]
    dV[n, d] = sum over m of P[m, n] * dO[m, d]

Shapes    Q, K, V, O, dO, dQ, dK, dV (B, H, N, D), L (B, H, N), row-major; every (b, h) is a problem of its own. The
          number D[m] of a row is not the D of the shapes; the kernels call it delta
Options   causal, by name; who calls a kernel always says it
Types     bfloat16, float16 or float32, the same for all but L, which is float32; the truth is computed in float64
Given     O and L are what a forward pass leaves: exact, then rounded to their types
Cost      read Q, K, V, O, dO and L, write dQ, dK and dV: 8*B*H*N*D elements and B*H*N numbers; five products of
          2*N*N*D operations for each head, half of them when causal
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import torch

from course_kernels.problem import Problem, Workload

# The truth is made for one head and this many rows at a time: all of N = 16384 scores of a strip take 134 MB.
ROWS_AT_ONCE = 1024

# A fp32 kernel may make each product from three TF32 ones, on the tensor cores; it counts against the fp32 peak.
MATH = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}

# A kernel may round P and dS to the type before it multiplies them, and it gets an O that is rounded, which D[m] is
# made from. Where dP - D[m] nearly cancels, dS is off by far more than its last bit, and the gradient of a key that
# hangs on few rows is too: in bfloat16 the worst of many elements by 2**-6 or so. Scores and dP had better stay in
# float32, since an exponent and a difference enlarge what is rounded there. float16 has three more bits. In float32
# what is left is the order of N additions, and what cancels; plain TF32 does not pass.
# An error is held against its element and the root mean square of the whole gradient, not of the row: the first causal
# row of dQ is zero, and what a kernel has there is what rounding leaves of numbers that cancel. So the rows must be of
# like size, see `make_inputs`. For the same reason no workload has N = 1, where dQ and dK are zero as a whole: the
# tests hold those against the size of what cancels.
MAX_ERROR = {"bfloat16": 2.0**-4, "float16": 2.0**-7, "float32": 2.0**-15}


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, ...]:
    """Q, K, V, O, L and dO: Q, K, V and dO normal with variance 1, O and L as the forward pass leaves them.

    Causal: row m of dO has variance (m + 1) / N. A gradient that goes to few keys is large in each, and the first rows
    would be larger than the last by the root of N; like this all rows of dQ are of one size, those of dK and dV nearly.
    """
    q, k, v, do = (
        torch.randn(w.B, w.H, w.N, w.D, generator=generator, dtype=torch.float32, device=device)
        for _ in range(4)
    )
    if options(w)["causal"]:
        do *= (torch.arange(1, w.N + 1, device=device) / w.N).sqrt()[:, None]
    q, k, v, do = (x.to(w.torch_dtype) for x in (q, k, v, do))
    o, lse = forward(q, k, v, **options(w))
    return q, k, v, o, lse, do


def options(w: Workload) -> dict[str, Any]:
    """Return the keyword argument `causal`; a workload without that flag is full attention."""
    return {"causal": bool(w.dims.get("causal", False))}


def forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what a forward pass leaves: O (B, H, N, D) in the type of q, and L (B, H, N) in float32."""
    o, lse = torch.empty_like(q), torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    for b, h, rows, seen in _strips(q, causal):
        scores = _scores(q[b, h], k[b, h].double(), rows, seen, causal)
        of_rows = torch.logsumexp(scores, dim=-1)
        o[b, h, rows] = ((scores - of_rows[:, None]).exp_() @ v[b, h, :seen].double()).to(q.dtype)
        lse[b, h, rows] = of_rows.float()
    return o, lse


def reference(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    do: torch.Tensor,
    *,
    causal: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients in float64: dQ, dK and dV (B, H, N, D).

    o and lse are not looked at: rounded as they are, they would round the truth. It is that of q, k, v and do.
    """
    dq, dk, dv = (torch.zeros(q.shape, dtype=torch.float64, device=q.device) for _ in range(3))
    scale = 1 / sqrt(q.shape[-1])
    for b, h, rows, seen in _strips(q, causal):
        keys, values, of_rows = k[b, h, :seen].double(), v[b, h, :seen].double(), do[b, h, rows].double()
        p = torch.softmax(_scores(q[b, h], keys, rows, seen, causal), dim=-1)  # [rows, seen]
        dp = of_rows @ values.T
        ds = p * (dp - (p * dp).sum(dim=-1, keepdim=True))
        dq[b, h, rows] = scale * ds @ keys
        dk[b, h, :seen] += scale * ds.T @ q[b, h, rows].double()
        dv[b, h, :seen] += p.T @ of_rows
    return dq, dk, dv


def _strips(q: torch.Tensor, causal: bool) -> Any:
    """b, h, some rows and how many keys are seen by any of them, for all of (B, H, N, D)."""
    B, H, N, _ = q.shape
    for b in range(B):
        for h in range(H):
            for start in range(0, N, ROWS_AT_ONCE):
                stop = min(start + ROWS_AT_ONCE, N)
                yield b, h, slice(start, stop), stop if causal else N


def _scores(q: torch.Tensor, keys: torch.Tensor, rows: slice, seen: int, causal: bool) -> torch.Tensor:
    """Scores of some rows of one head in float64: [rows, seen]."""
    scores = q[rows].double() @ keys[:seen].T / sqrt(q.shape[-1])
    if causal:
        row = torch.arange(rows.start, rows.stop, device=q.device)[:, None]
        scores.masked_fill_(torch.arange(seen, device=q.device) > row, -torch.inf)
    return scores


def flops(w: Workload) -> int:
    """Five matrix products of 2*N*N*D operations for each head, where forward has two; causal needs half of them."""
    return 10 * w.B * w.H * w.N * w.N * w.D // (2 if options(w)["causal"] else 1)


def _check_on() -> tuple[Workload, ...]:
    lengths = (17, 127, 128, 129, 1000)  # below, at and above a tile; the last fills several and a part
    found = []
    for dtype in ("bfloat16", "float16", "float32"):
        for D in (64, 128):
            for causal in (False, True):
                found += [Workload.of(dtype, B=1, H=2, N=N, D=D, causal=causal) for N in lengths]
                # More heads than one, more batches than one, and the truth's fourth strip.
                found.append(Workload.of(dtype, B=2, H=3, N=4095, D=D, causal=causal))
    return tuple(found)


PROBLEM = Problem(
    name="attention_backward",
    formula="dV = P^T dO; dS = P * (dO V^T - rowsum(dO * O)); dQ = dS K / sqrt(D); dK = dS^T Q / sqrt(D), "
    "where P = exp(Q K^T / sqrt(D) - L); causal: row m sees keys 0 to m",
    make_inputs=make_inputs,
    options=options,
    reference=reference,
    reads_bytes=lambda w: w.B * w.H * w.N * (5 * w.D * w.element_bytes + 4),
    writes_bytes=lambda w: 3 * w.B * w.H * w.N * w.D * w.element_bytes,
    flops=flops,
    math=lambda w: MATH[w.dtype],
    max_error=lambda w: MAX_ERROR[w.dtype],
    # A NaN of one input reaches rows that do not see it, by a weight of zero; which ones, is a matter of the tile. And
    # planted in Q it would not be in the O and L that were made from Q before.
    hard=lambda w: (),
    # Libraries keep the heads of a position side by side, (B, N, H, D), and hand out a view; a layer wants just that.
    layouts=((0, 2, 1, 3),),
    check_on=_check_on(),
    time_on=tuple(
        Workload.of("bfloat16", B=1, H=H, N=16384, D=D, causal=causal)
        for H, D in ((16, 128), (32, 64))
        for causal in (False, True)
    ),
)
