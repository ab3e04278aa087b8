"""Norm, merged projection and rotary embedding, the contract: how a step of decoding begins a layer.

    h[b, :] = g * x[b, :] / sqrt(mean over w of x[b, w]**2 + EPSILON)
    p[b, o] = sum over w of h[b, w] * w_qkv[o, w]
    q, k, v = the first H, the next KV and the last KV heads of p, D numbers each
    q and k: number i and number i + D/2 of a head are turned by the angle of position and i

One new token for each of B sequences. `cos` and `sin` hold the angles of every position there is; a sequence's own
position says which row is its. The pairs are those of Hugging Face's checkpoints; Meta's own files pair 2i with 2i + 1.

Shapes    x (B, W), g (W,), w_qkv ((H + 2 KV) * D, W), positions (B,), cos and sin (P, D/2); q (B, H, D), k and v
          (B, KV, D). All row-major; B <= 32, D = 64 or 128, H a multiple of KV
Types     bfloat16, float16 or float32, the same for x, g, w_qkv and the answers; positions int32; cos and sin float32.
          The truth is computed in float64
Range     g * x and h are numbers of the type: in float16 a kernel may weigh x before its size is known
Cost      read the weights once; all else is some thousandth of that. 2*W operations for each row and output: with 32
          rows in 16 bits 32 for each byte of the weights, so the floor is bytes
Cache     every kernel has a twin, `qkv_rope_into_cache`, that writes k and v into caches (B, KV, N, D), at the position
          of each sequence, and returns q: as many bytes, elsewhere. What is checked and timed is the form above, since
          a check holds that no input changes
Source    Su et al. 2021, arXiv:2104.09864; Touvron et al. 2023, arXiv:2302.13971
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.problem import INF, NAN, Problem, Workload

EPSILON = 1e-5  # as Llama 3 has it
THETA = 500_000.0  # the base of its angles
SMALL = 2.0**-9  # of a usual row; its square is about EPSILON

# A fp32 kernel may make each product from three TF32 ones, on the tensor cores; it counts against the fp32 peak.
MATH = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}

# Half precision: each of W numbers of h is rounded, up to twice, and so is p, and the answer. The roundings of h mostly
# cancel: the sum is off by half a unit of its own size, and the worst of many by a few times that; the two of p and of
# the answer are half a unit each. float32: three TF32 products keep 21 bits, and there are the roundings of W sums.
# Plain TF32 keeps 11, and does not pass.
MAX_ERROR = {"bfloat16": 2.0**-6, "float16": 2.0**-9, "float32": 2.0**-16}


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, ...]:
    """x, g, w_qkv, positions, cos, sin: weights of a size that keeps that of the numbers; positions all different.

    Where there are fewer positions than sequences they are shared out evenly. The first row of x is so small that
    EPSILON counts.
    """

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float32, device=device)

    x, g = 2 * normal(w.B, w.W), 1 + normal(w.W) / 8
    x[0] *= SMALL
    weights = normal((w.H + 2 * w.KV) * w.D, w.W) / sqrt(w.W)
    order = torch.randperm(max(w.B, w.P), generator=generator, device=device)
    positions = (order[: w.B] % w.P).int()
    pairs = torch.arange(0, w.D, 2, dtype=torch.float64, device=device)
    angles = torch.arange(w.P, device=device)[:, None] * THETA ** (-pairs / w.D)
    return (
        *(t.to(w.torch_dtype) for t in (x, g, weights)),
        positions,
        angles.cos().float(),
        angles.sin().float(),
    )


def reference(
    x: torch.Tensor,
    g: torch.Tensor,
    w_qkv: torch.Tensor,
    positions: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    *,
    kv_heads: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """q (B, H, D), k and v (B, KV, D) in float64."""
    wide = x.double()
    h = g.double() * wide / (wide.square().mean(dim=-1, keepdim=True) + EPSILON).sqrt()
    p = (h @ w_qkv.double().T).view(len(x), -1, 2 * cos.shape[1])
    heads = p.shape[1] - 2 * kv_heads
    at = positions.long()
    c, s = (table.double()[at][:, None] for table in (cos, sin))  # (B, 1, D/2)

    def turned(heads_of: torch.Tensor) -> torch.Tensor:
        a, b = heads_of.chunk(2, dim=-1)
        return torch.cat((a * c - b * s, b * c + a * s), dim=-1)

    return turned(p[:, :heads]), turned(p[:, heads : heads + kv_heads]), p[:, heads + kv_heads :]


def outputs_of(w: Workload) -> int:
    """Return rows of w_qkv."""
    return (w.H + 2 * w.KV) * w.D


def reads_bytes(w: Workload) -> int:
    """Weights, x and g; the positions, and of the tables the rows that are asked for."""
    tables = 2 * 4 * min(w.B, w.P) * w.D // 2
    return w.element_bytes * (outputs_of(w) * w.W + w.B * w.W + w.W) + 4 * w.B + tables


def _check_on() -> tuple[Workload, ...]:
    sizes = (  # B, H, KV, W, P
        (1, 1, 1, 40, 1),
        (3, 2, 1, 331, 7),  # nothing divides anything
        (5, 6, 2, 1000, 4),  # fewer positions than sequences
        (16, 4, 4, 64, 100),  # nothing is shared
        (17, 8, 1, 520, 100),
        (32, 4, 2, 264, 1000),
        (31, 2, 2, 2056, 100),
        (2, 9, 3, 4104, 70),  # long rows of few outputs: they are cut, whatever the card
    )
    found = [
        Workload.of(dtype, B=B, H=H, KV=KV, D=D, W=W, P=P)
        for dtype in ("bfloat16", "float16", "float32")
        for D in (64, 128)
        for B, H, KV, W, P in sizes
    ]
    return (*found, Workload.of("bfloat16", B=32, H=32, KV=8, D=128, W=4096, P=8192))


PROBLEM = Problem(
    name="qkv_rope",
    formula="q, k, v = heads of (g * x / rms(x)) W^T, pairs i and i + D/2 of q and k turned by their position's angles",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=reads_bytes,
    writes_bytes=lambda w: w.element_bytes * w.B * outputs_of(w),
    flops=lambda w: 2 * w.B * outputs_of(w) * w.W,
    math=lambda w: MATH[w.dtype],
    max_error=lambda w: MAX_ERROR[w.dtype],
    options=lambda w: {"kv_heads": w.KV},
    # Nothing large in x, see the range; no infinity in the weights: three TF32 products make NaN of it.
    hard=lambda w: ({0: (0.0, -0.0, NAN)}, {0: (INF, -INF)}, {2: (0.0, -0.0, NAN)}),
    check_on=_check_on(),
    # The layer of an 8B model of the Llama 3 family.
    time_on=tuple(
        Workload.of("bfloat16", B=B, H=32, KV=8, D=128, W=4096, P=8192) for B in (1, 2, 4, 8, 16, 32)
    ),
)
