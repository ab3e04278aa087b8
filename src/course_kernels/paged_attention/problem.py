"""Paged attention, the contract: one new query for each sequence, over keys and values that lie in pages.

    token n of sequence b lies in the page block_table[b, n // PAGE], at its place n % PAGE:
        k[b, h, n] = K[block_table[b, n // PAGE], h, n % PAGE]              and v as k
    S[b, h, n] = scale * sum over d of Q[b, h, d] * k[b, h // G, n, d]      scale = 1 / sqrt(D), n < length[b]
    P[b, h, :] = softmax(S[b, h, :])
    O[b, h, d] = sum over n of P[b, h, n] * v[b, h // G, n, d]

Shapes    Q, O (B, H, D); K, V (PAGES, KV, PAGE, D), a pool that all sequences draw from; block_table (B, MOST);
          length (B,), 0 to MOST * PAGE; PAGE a power of two, 8 to 256. All row-major. G = H / KV query heads, 64 at
          most, share a head of keys and values; a sequence of length 0 is answered by zeros. Sequences may share pages
Types     bfloat16 or float16, the same for Q, K, V and O; block_table and length int32. Or K and V float8_e4m3fn, and
          two scales (KV,) float32, which a number of that head is multiplied by; Q and O stay as they are
Unused    what lies in a page that no sequence has, or behind the last token of its last page, is nobody's: it may be
          NaN, and changes nothing. An entry of block_table behind the last page is nobody's either, and may be any
          number; one before it names a page of the pool, and a kernel takes its word
Cost      read Q, of K and V what is there, and the entries that say where; write O. 4*D operations for each head and
          token: the floor is bytes, and an entry for PAGE tokens is not one in a thousand of them

The tokens of a head lie side by side within a page: PAGE * D numbers in a run, whole 128-byte lines from PAGE = 8 on
and in 8 bits too, where rows of several heads between each other, (PAGES, PAGE, KV, D), leave half a line at D = 64.
FlashInfer takes either order without a copy, and calls this one HND.

The lengths and the table are on the device, and a launch does not look at them: the same grid, captured once in a CUDA
graph, serves a cache that grows, and pages that come and go.
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.problem import BYTES_OF, NAN, Problem, Workload

MATH = {"bfloat16": "bf16", "float16": "fp16"}

# Errors are held against a row's own size: a row over few tokens is far larger than one over thousands. A kernel may
# round scores and weights to the type. A score of 4 or more is then off by up to 2**-7 in bfloat16, its weight by as
# much of itself, and a row that hangs on a few such weights too: the worst of many elements by a few times that.
# float16 has three more bits. Numbers of 8 bits are exact in either: what was lost when they were made is not counted.
MAX_ERROR = {"bfloat16": 2.0**-4, "float16": 2.0**-7}

# What a table holds behind the last page of a sequence; read as a page, either is far outside of the pool.
NOBODY = (-1, 2**31 - 1)

MOST_E4M3 = 448.0  # the largest number of float8_e4m3fn

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


def pages_of(w: Workload) -> int:
    """Return how many pages all sequences have together."""
    return sum(-(-length // w.PAGE) for length in lengths_of(w))


def cache_dtype(w: Workload) -> str:
    """Return the type of keys and values: with the flag `fp8` one of 8 bits."""
    return "float8_e4m3fn" if w.dims.get("fp8", False) else w.dtype


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, ...]:
    """Q (B, H, D), K and V (PAGES, KV, PAGE, D), block_table, lengths; and two scales (KV,) where the cache has 8 bits.

    Numbers normal with variance 1, in 8 bits once they are scaled. The order of the lengths is drawn, and so is which
    pages of the pool a sequence has; B - 1 more pages than they need have nobody. What has nobody is NaN, and of what
    lies behind a last token every other one; the others look like tokens, as those of an earlier sequence do.
    """
    of = {"generator": generator, "device": device}
    most = -(-w.N // w.PAGE)
    order = torch.randperm(w.B, **of)
    lengths = torch.tensor(lengths_of(w), dtype=torch.int32, device=device)[order]
    # Every place of the table, in the order of sequences, then of their tokens: how many tokens its page holds.
    behind = (lengths[:, None] - w.PAGE * torch.arange(most, device=device)).view(-1)  # [B * MOST]
    has = behind > 0
    pool = pages_of(w) + w.B - 1
    ids = torch.randperm(pool, **of)[(has.cumsum(0) - 1).clamp(min=0)]
    held = torch.zeros(pool, dtype=torch.int64, device=device)
    held.scatter_add_(0, ids, behind.clamp(0, w.PAGE).long())
    nobody = torch.tensor(NOBODY, dtype=torch.int32, device=device).repeat(w.B * most)[: w.B * most]
    table = torch.where(has, ids.int(), nobody).view(w.B, most)
    past = torch.arange(w.PAGE, device=device) - held[:, None]  # [PAGES, PAGE]
    unwritten = ((past >= 0) & ((past % 2 == 0) | (held == 0)[:, None]))[:, None, :, None]
    q = torch.randn(w.B, w.H, w.D, dtype=torch.float32, **of).to(w.torch_dtype)
    caches, scales = [], []
    for _ in range(2):
        x = torch.randn(pool, w.KV, w.PAGE, w.D, dtype=torch.float32, **of)
        if cache_dtype(w) != w.dtype:
            scales.append((1 + 2 * torch.rand(w.KV, **of)) / 64)
            x = (x / scales[-1][:, None, None]).clamp_(-MOST_E4M3, MOST_E4M3)
        caches.append(x.masked_fill_(unwritten, NAN).to(getattr(torch, cache_dtype(w))))
    return (q, *caches, table, lengths, *scales)


def reference(
    q: torch.Tensor,
    k_pages: torch.Tensor,
    v_pages: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
    k_scale: torch.Tensor | None = None,
    v_scale: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the answer in float64: (B, H, D)."""
    B, H, D = q.shape
    KV, PAGE = k_pages.shape[1:3]
    out = torch.zeros((B, KV, H // KV, D), dtype=torch.float64, device=q.device)
    for b, length in enumerate(lengths.tolist()):
        pages = block_table[b, : -(-length // PAGE)].long()
        for kv in range(KV if length else 0):  # one head at a time: 65536 tokens of it take 134 MB
            keys, values = (x[pages, kv].double().view(-1, D)[:length] for x in (k_pages, v_pages))
            if k_scale is not None and v_scale is not None:
                keys, values = keys * k_scale[kv].double(), values * v_scale[kv].double()
            scores = q[b].view(KV, H // KV, D)[kv].double() @ keys.T / sqrt(D)
            out[b, kv] = torch.softmax(scores, dim=-1) @ values
    return out.view(B, H, D)


def reads_bytes(w: Workload) -> int:
    """Q and the lengths, keys and values of the tokens that are there, their scales, and the entries that are used."""
    cache = 2 * w.KV * w.D * tokens_of(w) * BYTES_OF[cache_dtype(w)]
    scales = 8 * w.KV if cache_dtype(w) != w.dtype else 0
    return w.element_bytes * w.B * w.H * w.D + cache + scales + 4 * pages_of(w) + 4 * w.B


def _check_on() -> tuple[Workload, ...]:
    sizes = (  # B, H, KV, N, PAGE
        (1, 1, 1, 8, 8),
        (1, 8, 8, 1, 16),
        (2, 4, 1, 17, 16),
        (3, 8, 2, 127, 32),  # one sequence of length 0
        (5, 8, 8, 1000, 16),  # nothing is shared
        (4, 16, 2, 1000, 64),
        (3, 12, 2, 129, 8),  # six heads share: no power of two
        (2, 32, 1, 300, 128),  # all heads share
        (2, 8, 2, 4095, 256),  # long enough to be cut, whatever the card
    )
    return tuple(
        Workload.of(dtype, B=B, H=H, KV=KV, N=N, PAGE=PAGE, D=D, **more)
        for more in ({}, {"fp8": True})
        for dtype in ("bfloat16", "float16")
        for D in (64, 128)
        for B, H, KV, N, PAGE in sizes
        if not more or B > 1
    )


PROBLEM = Problem(
    name="paged_attention",
    formula="O[b, h] = softmax(Q[b, h] k[b, h // G]^T / sqrt(D)) v[b, h // G], over length[b] tokens in pages",
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
    # The heads of an 8B model of the Llama 3 family. Every sequence is as long as it may be, so that libraries that
    # plan on the host plan once; then lengths of all kinds, and a cache of 8 bits.
    time_on=(
        *(
            Workload.of("bfloat16", B=B, H=32, KV=8, N=N, PAGE=PAGE, D=128, full=True)
            for B, N, PAGE in (
                (64, 4096, 16), (16, 16384, 16), (1, 65536, 16), (1, 1024, 16), (32, 1024, 16),
                (64, 4096, 8), (64, 4096, 64), (64, 4096, 256),
            )
        ),
        Workload.of("bfloat16", B=64, H=32, KV=8, N=8192, PAGE=16, D=128),
        Workload.of("bfloat16", B=64, H=32, KV=8, N=4096, PAGE=16, D=128, full=True, fp8=True),
    ),
)  # fmt: skip
