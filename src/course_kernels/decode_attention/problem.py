"""Decode attention, the contract: one new query for each sequence, over the keys and values it has kept.

    S[b, h, n] = scale * sum over d of Q[b, h, d] * K[b, h // G, n, d]      scale = 1 / sqrt(D), n < length[b]
    P[b, h, :] = softmax(S[b, h, :])
    O[b, h, d] = sum over n of P[b, h, n] * V[b, h // G, n, d]

Shapes    Q, O (B, H, D); K, V (B, KV, N, D): room for N tokens; length (B,), how many of them are there, 0 to N. All
          row-major. G = H / KV query heads, 64 at most, share a head of keys and values; a sequence of length 0 is
          answered by zeros
Types     bfloat16, float16 or float32, the same for Q, K, V and O; length int32; the truth is computed in float64
Unused    what lies in the room past a length is nobody's: it may be NaN, and changes nothing
Cost      read Q, and of K and V what is there; write O. 4*D operations for each head and token: at G = 4 in 16 bits
          four for each byte of the cache, so the floor is bytes

The lengths are on the device, and a launch does not look at them: the same grid, captured once in a CUDA graph, serves
a cache that grows.
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.problem import NAN, Problem, Workload

# A fp32 kernel may make each product from three TF32 ones, on the tensor cores; it counts against the fp32 peak.
MATH = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}

# Errors are held against a row's own size: a row over few tokens is far larger than one over thousands. A kernel may
# round scores and weights to the type. A score of 4 or more is then off by up to 2**-7 in bfloat16, its weight by as
# much of itself, and a row that hangs on a few such weights too: the worst of many elements by a few times that.
# float16 has three more bits. In float32 what is left is the order of N additions; plain TF32 does not pass.
MAX_ERROR = {"bfloat16": 2.0**-4, "float16": 2.0**-7, "float32": 2.0**-15}

# Far from any fraction of small numbers: its multiples, cut to what follows the point, fill 0 to 1 evenly.
GOLDEN = (sqrt(5) - 1) / 2


def lengths_of(w: Workload) -> list[int]:
    """Return how many tokens each of the B sequences has, in no order that matters; the same for every draw of inputs.

    With the flag `full` all have N. Else one has N, one 1, one 0, and the others are spread between, as far as B goes.
    """
    if w.dims.get("full", False):
        return [w.N] * w.B
    spread = [1 + int(GOLDEN * i % 1 * w.N) for i in range(1, w.B - 2)]
    return [w.N, 1, 0, *spread][: w.B]


def tokens_of(w: Workload) -> int:
    """Return how many tokens all sequences have together."""
    return sum(lengths_of(w))


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Q (B, H, D), K and V (B, KV, N, D), normal with variance 1; the lengths (B,), in an order drawn at random.

    Past a length every other token of the room is NaN, the first of them too: memory that was never written. The
    others look like tokens, as those of an earlier, longer sequence do.
    """
    cache = w.B, w.KV, w.N, w.D
    q, k, v = (
        torch.randn(*shape, generator=generator, dtype=torch.float32, device=device).to(w.torch_dtype)
        for shape in ((w.B, w.H, w.D), cache, cache)
    )
    order = torch.randperm(w.B, generator=generator, device=device)
    lengths = torch.tensor(lengths_of(w), dtype=torch.int32, device=device)[order]
    past = torch.arange(w.N, device=device) - lengths[:, None]  # [B, N]
    unwritten = ((past >= 0) & (past % 2 == 0))[:, None, :, None]
    for x in (k, v):
        x.masked_fill_(unwritten, NAN)
    return q, k, v, lengths


def reference(
    q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    """Return the answer in float64: (B, H, D)."""
    B, H, D = q.shape
    KV = k_cache.shape[1]
    out = torch.zeros((B, KV, H // KV, D), dtype=torch.float64, device=q.device)
    for b, length in enumerate(lengths.tolist()):
        for kv in range(
            KV if length else 0
        ):  # one head of the cache at a time: 65536 tokens of it take 134 MB
            queries = q[b].view(KV, H // KV, D)[kv].double()
            keys, values = (x[b, kv, :length].double() for x in (k_cache, v_cache))
            out[b, kv] = torch.softmax(queries @ keys.T / sqrt(D), dim=-1) @ values
    return out.view(B, H, D)


def reads_bytes(w: Workload) -> int:
    """Q and the lengths, and the keys and values of the tokens that are there."""
    return w.element_bytes * w.D * (w.B * w.H + 2 * w.KV * tokens_of(w)) + 4 * w.B


def _check_on() -> tuple[Workload, ...]:
    sizes = (  # B, H, KV, N
        (1, 1, 1, 1),
        (2, 4, 1, 17),
        (3, 8, 2, 127),  # one sequence of length 0
        (5, 8, 8, 1000),  # nothing is shared
        (4, 16, 2, 1000),
        (3, 12, 2, 129),  # six heads share: no power of two
        (2, 32, 1, 300),  # all heads share
        (2, 8, 2, 4095),  # long enough to be cut, whatever the card
    )
    return tuple(
        Workload.of(dtype, B=B, H=H, KV=KV, N=N, D=D)
        for dtype in ("bfloat16", "float16", "float32")
        for D in (64, 128)
        for B, H, KV, N in sizes
    )


PROBLEM = Problem(
    name="decode_attention",
    formula="O[b, h] = softmax(Q[b, h] K[b, h // G]^T / sqrt(D)) V[b, h // G], over the first length[b] tokens",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=reads_bytes,
    writes_bytes=lambda w: w.element_bytes * w.B * w.H * w.D,
    flops=lambda w: 4 * w.H * w.D * tokens_of(w),
    math=lambda w: MATH[w.dtype],
    max_error=lambda w: MAX_ERROR[w.dtype],
    rows_apart=True,
    # A row of scores that are all NaN is one that sees no key, to some libraries: nothing in Q or K. An infinity of V
    # times a weight that float16 rounds to zero is NaN.
    hard=lambda w: ({2: (0.0, -0.0, NAN)},),
    check_on=_check_on(),
    # The heads of an 8B model of the Llama 3 family. Every cache is full, so the least bytes are those of all of it.
    time_on=tuple(
        Workload.of("bfloat16", B=B, H=32, KV=8, N=N, D=128, full=True)
        for B, N in ((1, 1024), (1, 4096), (1, 65536), (32, 1024), (32, 4096), (64, 1024), (64, 4096))
    ),
)
