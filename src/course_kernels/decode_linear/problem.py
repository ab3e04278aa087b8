"""A linear layer of a step of decoding and what stands around it, the contract.

    h[m, :] = x[m, :], or with `norm` g * x[m, :] / sqrt(mean over k of x[m, k]**2 + EPSILON)
    p[m, n] = sum over k of h[m, k] * w[n, k]
    y[m, n] = p[m, n]; with `add` r[m, n] + p[m, n]; with `gated` silu(p[m, n]) * p[m, N + n]

A layer of a Llama has four of these in a row: norm and the projections to queries, keys and values (`qkv_rope`, which
has more behind it); attention's output and the sum with the residual; norm, gate and up and what is between them; down
and the sum with the residual. Behind the last layer stand norm and head.

Shapes    x (M, K), M = 1 to 32; w (N, K), gated (2 N, K): the rows of the gate, then those of up; g (K,); r and y
          (M, N). All row-major. N a multiple of 16, K of 64
Types     bfloat16 or float16, the same for all; sums in float32, and y is rounded once
Range     g * x is a number of the type: a kernel may weigh x before its size is known
Cost      2*M*K operations for each row of w; read x, w, g and r, write y. Up to some hundred rows of x it is the bytes
          of w that take the time
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.problem import NAN, Problem, Workload

EPSILON = 1e-5  # as Llama 3 has it
MATH = {"bfloat16": "bf16", "float16": "fp16"}
ROWS_AT_ONCE = 4096  # of w in float64, so that the truth of 128256 x 4096 fits on a small card

# y is rounded, and before it g * x; a library that computes this in several steps rounds what is between them, too.
# Gated, what one factor is off by is multiplied by the other, which is some five times its usual size at worst.
MAX_ERROR = {"bfloat16": 2.0**-6, "float16": 2.0**-9}
GATED = 2.0


def flags_of(w: Workload) -> dict[str, bool]:
    """Return which of `norm`, `add` and `gated` a workload has."""
    return {name: bool(w.dims.get(name, False)) for name in ("norm", "add", "gated")}


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, ...]:
    """x (M, K), w (N, K) or (2 N, K) of a size that keeps that of the numbers; with norm g, with add r."""

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float32, device=device)

    flags = flags_of(w)
    made = [normal(w.M, w.K), normal((1 + flags["gated"]) * w.N, w.K) / sqrt(w.K)]
    if flags["norm"]:
        made[0] *= 2
        made.append(1 + normal(w.K) / 8)
    if flags["add"]:
        made.append(normal(w.M, w.N))
    return tuple(t.to(w.torch_dtype) for t in made)


def reference(
    x: torch.Tensor,
    w: torch.Tensor,
    *rest: torch.Tensor,
    norm: bool = False,
    add: bool = False,
    gated: bool = False,
) -> torch.Tensor:
    """y (M, N) in float64."""
    h = x.double()
    if norm:
        h = rest[0].double() * h / (h.square().mean(dim=-1, keepdim=True) + EPSILON).sqrt()
    strips = [h @ w[n : n + ROWS_AT_ONCE].double().t() for n in range(0, w.shape[0], ROWS_AT_ONCE)]
    p = torch.cat(strips, dim=1)
    if gated:
        gate, up = p.chunk(2, dim=-1)
        p = gate / (1 + (-gate).exp()) * up
    return rest[-1].double() + p if add else p


def _reads_bytes(w: Workload) -> int:
    flags = flags_of(w)
    numbers = w.M * w.K + (1 + flags["gated"]) * w.N * w.K + flags["norm"] * w.K + flags["add"] * w.M * w.N
    return w.element_bytes * numbers


def _check_on() -> tuple[Workload, ...]:
    sizes = (
        (1, 16, 64),
        (3, 80, 192),
        (8, 48, 4160),  # a long way through few tiles
        (9, 272, 320),
        (16, 2048, 2048),
        (17, 112, 832),
        (32, 4112, 128),  # more tiles than multiprocessors; and the truth's second strip
        (29, 64, 14336),
    )
    kinds: tuple[dict[str, bool], ...] = ({}, {"norm": True}, {"add": True}, {"norm": True, "gated": True})
    every = [(size, kind) for size in sizes for kind in kinds]
    types = ("bfloat16", "float16")
    return tuple(
        Workload.of(types[i % 2], M=M, N=N, K=K, **kind)
        for i, ((M, N, K), kind) in enumerate([*every, *every[1:]])
    )


def _time_on(M: int) -> tuple[Workload, ...]:
    return (
        Workload.of("bfloat16", M=M, N=4096, K=4096, add=True),
        Workload.of("bfloat16", M=M, N=14336, K=4096, norm=True, gated=True),
        Workload.of("bfloat16", M=M, N=4096, K=14336, add=True),
        Workload.of("bfloat16", M=M, N=128256, K=4096, norm=True),
    )


PROBLEM = Problem(
    name="decode_linear",
    formula="y = x W^T; x may be normalised and weighed by g before, and y added to r, or gated: silu(gate) * up",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=_reads_bytes,
    writes_bytes=lambda w: w.element_bytes * w.M * w.N,
    flops=lambda w: 2 * w.M * w.N * w.K * (1 + flags_of(w)["gated"]),
    math=lambda w: MATH[w.dtype],
    max_error=lambda w: MAX_ERROR[w.dtype] * (GATED if flags_of(w)["gated"] else 1.0),
    options=flags_of,
    hard=lambda w: ({0: (0.0, -0.0, NAN)},),
    check_on=_check_on(),
    # The layer of an 8B model of the Llama 3 family, and its head.
    time_on=(*_time_on(1), *_time_on(16), *_time_on(32)),
)
