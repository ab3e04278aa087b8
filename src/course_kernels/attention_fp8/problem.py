"""Attention forward of 8-bit floating-point numbers, the contract.

    S[m, n] = scale * scale_q[m / 64] * scale_k[n / 64] * sum over d of Q[m, d] * K[n, d]    scale = 1 / sqrt(D)
    P[m, n] = exp(S[m, n]) / sum over n of exp(S[m, n])                     causal: over n <= m only
    O[m, d] = sum over n of rounded(P[m, n]) * scale_v[n / 64] * VT[d, n]

Shapes    Q, K, O (B, H, N, D), VT (B, H, D, N), scales (B, H, ceil(N / 64)), row-major; every (b, h) is a problem of
          its own. V is stored transposed: the tensor cores of Hopper want 8-bit numbers with the dimension that is
          summed over side by side, and here that is n
Options   causal, by name; who calls a kernel always says it
Types     Q, K and VT float8_e4m3fn, the scales float32, O bfloat16. A workload names the type of O
Cost      read Q, K, VT and the scales, write O once; 4*B*H*N*N*D operations, half of them when causal

Both products are of 8-bit numbers, so the weights are rounded on their way to V. e4m3 keeps four significant bits, and
a power of two changes nothing in that: so rounded() is e to the power of a score, rounded to four significant bits,
over the sum of what was not rounded, whichever power of two a kernel has put in front.

A block of 64 rows has a scale of its own, that puts its largest number at 448, the largest of the type. A block is what
a step of the loop takes, so its scale is one number there; and an outlier makes 64 rows coarse, not all.
"""

from __future__ import annotations

from math import e, log2, sqrt
from typing import Any

import torch

from course_kernels.problem import Problem, Workload

BLOCK = 64  # rows of Q, K and V that share a scale
LARGEST = 448.0  # of float8_e4m3fn

# The truth is made for one head and this many rows at a time.
ROWS_AT_ONCE = 1024


def rounded_to_fp8(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows as 8-bit numbers, and the scales of their blocks: x is about scale * numbers.

    Args:
        x: (B, H, N, D), any floating-point type.
    Returns:
        (B, H, N, D) float8_e4m3fn; (B, H, ceil(N / 64)) float32, 1 where a block is all zeros.
    """
    B, H, N, D = x.shape
    blocks = -(-N // BLOCK)
    padded = torch.zeros((B, H, blocks * BLOCK, D), dtype=torch.float32, device=x.device)
    padded[:, :, :N] = x
    scale = padded.reshape(B, H, blocks, -1).abs().amax(-1) / LARGEST
    scale = torch.where(scale == 0, 1.0, scale)
    # Dividing rounds: the largest can come out a hair above 448, where torch would make it NaN.
    numbers = padded / scale.repeat_interleave(BLOCK, -1)[..., None]
    return numbers[:, :, :N].clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn).contiguous(), scale


def stands_for(numbers: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return what 8-bit rows (B, H, N, D) with scales (B, H, ceil(N / 64)) stand for, in float64."""
    of_row = scale.double().repeat_interleave(BLOCK, -1)[..., : numbers.shape[-2], None]
    return numbers.double() * of_row


def in_8_bits(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return what a kernel of this problem is called with, of rows (B, H, N, D) in any floating-point type."""
    (q, scale_q), (k, scale_k), (v, scale_v) = (rounded_to_fp8(x) for x in (q, k, v))
    return q, k, v.transpose(-1, -2).contiguous(), scale_q, scale_k, scale_v


def normal(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Q, K and V (B, H, N, D) bfloat16, normal with variance 1, before anybody rounds them to 8 bits."""
    q, k, v = (
        torch.randn(w.B, w.H, w.N, w.D, generator=generator, device=device).to(torch.bfloat16)
        for _ in range(3)
    )
    return q, k, v


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, ...]:
    """Q, K, VT as 8-bit numbers and the scales of each; scores are about normal, with a variance of about 1.

    V is normal before it is rounded. Q and K are whole numbers of at most 15, normal before that, and their scales are
    drawn. Hopper's tensor cores keep some 14 bits of a sum, and those hold any sum of such products. Of other numbers a
    score is off by some 2**-10, and of a hundred weights one is then rounded the other way, by an eighth of itself:
    nobody could tell that from a fault.
    """
    blocks = -(-w.N // BLOCK)

    def whole() -> torch.Tensor:
        x = 4 * torch.randn(w.B, w.H, w.N, w.D, generator=generator, device=device)
        return x.round().clamp(-15, 15).to(torch.float8_e4m3fn)

    def scale() -> torch.Tensor:
        return (1.5 + torch.rand(w.B, w.H, blocks, generator=generator, device=device)) / 8

    v, scale_v = rounded_to_fp8(torch.randn(w.B, w.H, w.N, w.D, generator=generator, device=device))
    return whole(), whole(), v.transpose(-1, -2).contiguous(), scale(), scale(), scale_v


def options(w: Workload) -> dict[str, Any]:
    """Return the keyword argument `causal`; a workload without that flag is full attention."""
    return {"causal": bool(w.dims.get("causal", False))}


def in_four_bits(x: torch.Tensor) -> torch.Tensor:
    """Return float64 numbers rounded to four significant bits: the others are lost beside a number 2**49 as large."""
    large = x * (2.0**49 + 1)  # of 53 bits
    return large - (large - x)


def exact(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False, rounded: bool = False
) -> torch.Tensor:
    """Return attention of rows (B, H, N, D) of any type in float64: (B, H, N, D); `rounded`: the weights as above."""
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
                if not rounded:
                    out[b, h, start:stop] = torch.softmax(scores, dim=-1) @ values[:seen]
                    continue
                scores *= log2(
                    e
                )  # a power of two in front of a row: its largest weight lies between 1/2 and 1
                weights = torch.exp2(scores - scores.amax(-1, keepdim=True).ceil())
                sums = weights.sum(-1, keepdim=True)
                out[b, h, start:stop] = in_four_bits(weights) @ values[:seen] / sums
    return out


def reference(
    q: torch.Tensor,
    k: torch.Tensor,
    v_t: torch.Tensor,
    scale_q: torch.Tensor,
    scale_k: torch.Tensor,
    scale_v: torch.Tensor,
    *,
    causal: bool = False,
) -> torch.Tensor:
    """Return attention of what the 8-bit numbers stand for, in float64: (B, H, N, D).

    Rounding to 8 bits is not its error: neither that of Q, K and V, nor that of the weights.
    """
    v = v_t.transpose(-1, -2)
    rows = (stands_for(x, scale) for x, scale in ((q, scale_q), (k, scale_k), (v, scale_v)))
    return exact(*rows, causal=causal, rounded=True)


def max_error(w: Workload) -> float:
    """Bound what one weight does that is rounded the other way, and the error of O in bfloat16.

    O is off by 2**-8 at most. A score in float32 sends one weight of some hundred thousand, that lay in the middle of
    two numbers, to the other: off by an eighth of itself at most. An element that hangs on that weight alone is off by
    as much beside the size of its row. Weights rounded to one bit less, or relative to other than powers of two, are
    off by 0.03 as a root mean square, and the worst of a few thousand elements by four times that.
    """
    return 3 / 32


def flops(w: Workload) -> int:
    """Return two matrix products of 2*N*N*D operations for each head; causal needs half of them."""
    return 4 * w.B * w.H * w.N * w.N * w.D // (2 if options(w)["causal"] else 1)


def reads_bytes(w: Workload) -> int:
    """Return the bytes of Q, K and VT, one for each number, and of their scales."""
    return 3 * w.B * w.H * (w.N * w.D + 4 * -(-w.N // BLOCK))


PROBLEM = Problem(
    name="attention_fp8",
    formula="O = rounded(softmax(scale_q scale_k Q K^T / sqrt(D))) scale_v V, by row; causal: row m sees keys 0 to m",
    make_inputs=make_inputs,
    options=options,
    reference=reference,
    reads_bytes=reads_bytes,
    writes_bytes=lambda w: w.element_bytes * w.B * w.H * w.N * w.D,
    flops=flops,
    math=lambda w: "fp8",
    max_error=max_error,
    rows_apart=True,
    # As for attention in 16 bits: a NaN of K or V reaches rows that do not see it, by a weight of zero; which ones, is
    # a matter of the tile. And the type has no infinity.
    hard=lambda w: (),
    check_on=tuple(
        Workload.of("bfloat16", B=1, H=2, N=N, D=128, causal=causal)
        for N in (
            1,
            17,
            64,
            65,
            128,
            1000,
        )  # below, at and above a block; rows of VT of no multiple of 16 bytes
        for causal in (False, True)
    )
    + tuple(Workload.of("bfloat16", B=2, H=3, N=784, D=128, causal=causal) for causal in (False, True)),
    time_on=tuple(Workload.of("bfloat16", B=1, H=16, N=8192, D=128, causal=c) for c in (False, True)),
)
