"""Attention forward, the contract.

    S[m, n] = scale * sum over d of Q[m, d] * K[n, d]       scale = 1 / sqrt(D)
    P[m, :] = softmax(S[m, :])                              causal: over n <= m only
    O[m, d] = sum over n of P[m, n] * V[n, d]

Shapes    Q, K, V, O (B, H, N, D), row-major; every (b, h) is a problem of its own
Options   causal, by name; who calls a kernel always says it
Types     bfloat16, float16 or float32, the same for all four; the truth is computed in float64
Cost      read Q, K, V, write O: 4*B*H*N*D elements; 4*B*H*N*N*D operations, half of them when causal
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

# Errors are held against a row's own size: a causal row with few keys is far larger than one with thousands. A
# kernel may round scores and weights to the type. A row that hangs on a few large scores, of 5 or so, is then off
# by some 2**-7 of its size in bfloat16, and the worst of millions of elements by a few times that; a kernel that
# keeps scores in float32 does far better. float16 has three more bits. In float32 what is left is the order of N
# additions; plain TF32 does not pass.
MAX_ERROR = {"bfloat16": 2.0**-4, "float16": 2.0**-7, "float32": 2.0**-15}


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Q, K and V (B, H, N, D), normal with variance 1."""
    q, k, v = (
        torch.randn(w.B, w.H, w.N, w.D, generator=generator, dtype=torch.float32, device=device).to(
            w.torch_dtype
        )
        for _ in range(3)
    )
    return q, k, v


def options(w: Workload) -> dict[str, Any]:
    """Return the keyword argument `causal`; a workload without that flag is full attention."""
    return {"causal": bool(w.dims.get("causal", False))}


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False) -> torch.Tensor:
    """Return the answer in float64: (B, H, N, D)."""
    B, H, N, D = q.shape
    out = torch.empty((B, H, N, D), dtype=torch.float64, device=q.device)
    for b in range(B):
        for h in range(H):
            keys, values = k[b, h].double(), v[b, h].double()
            for start in range(0, N, ROWS_AT_ONCE):
                stop = min(start + ROWS_AT_ONCE, N)
                seen = stop if causal else N  # no row of this strip sees further
                scores = q[b, h, start:stop].double() @ keys[:seen].T / sqrt(D)
                if causal:
                    rows = torch.arange(start, stop, device=q.device)[:, None]
                    scores.masked_fill_(torch.arange(seen, device=q.device) > rows, -torch.inf)
                out[b, h, start:stop] = torch.softmax(scores, dim=-1) @ values[:seen]
    return out


def flops(w: Workload) -> int:
    """Return two matrix products of 2*N*N*D operations for each head; causal needs half of them."""
    return 4 * w.B * w.H * w.N * w.N * w.D // (2 if options(w)["causal"] else 1)


def _check_on() -> tuple[Workload, ...]:
    lengths = (1, 17, 127, 128, 129, 1000)  # below, at and above a tile; the last fills several and a part
    found = []
    for dtype in ("bfloat16", "float16", "float32"):
        for D in (64, 128):
            for causal in (False, True):
                found += [Workload.of(dtype, B=1, H=2, N=N, D=D, causal=causal) for N in lengths]
                # More heads than one, more batches than one, and the truth's fourth strip.
                found.append(Workload.of(dtype, B=2, H=3, N=4095, D=D, causal=causal))
    return tuple(found)


PROBLEM = Problem(
    name="attention",
    formula="O = softmax(Q K^T / sqrt(D)) V, row by row; causal: row m sees keys 0 to m",
    make_inputs=make_inputs,
    options=options,
    reference=reference,
    reads_bytes=lambda w: 3 * w.B * w.H * w.N * w.D * w.element_bytes,
    writes_bytes=lambda w: w.B * w.H * w.N * w.D * w.element_bytes,
    flops=flops,
    math=lambda w: MATH[w.dtype],
    max_error=lambda w: MAX_ERROR[w.dtype],
    rows_apart=True,
    # A row of scores that are all NaN is one that sees no key, to some libraries: torch answers with zeros on a CPU. A
    # NaN of K or V reaches rows that do not see it, by a weight of zero; which ones, is a matter of the tile.
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
