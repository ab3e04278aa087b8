"""MLA decode, the contract: one new query for each sequence and head, over one latent row a token, which lies in pages.

    token n of sequence b lies in the page block_table[b, n // 64], at its place n % 64:
        c[b, n, :] = cache[block_table[b, n // 64], n % 64, :]              576 numbers: 512 latent, 64 rotated
    S[b, h, n] = scale * sum over d < 576 of Q[b, h, d] * c[b, n, d]        scale = 1 / sqrt(192), n < length[b]
    P[b, h, :] = softmax(S[b, h, :])
    O[b, h, d] = sum over n of P[b, h, n] * c[b, n, d]                      d < 512

Shapes    Q (B, H, 576); O (B, H, 512); cache (PAGES, 64, 576), a pool that all sequences draw from; block_table
          (B, MOST); length (B,), 0 to MOST * 64. All row-major. A sequence of length 0 is answered by zeros. Sequences
          may share pages
Types     bfloat16 or float16, the same for Q, cache and O; block_table and length int32
Scale     of the heads before absorption: 128 numbers and 64 rotated ones. It is no matter of the 576
Unused    what lies in a page that no sequence has, or behind the last token of its last page, is nobody's: it may be
          NaN, and changes nothing. An entry of block_table behind the last page is nobody's either, and may be any
          number; one before it names a page of the pool, and a kernel takes its word
Cost      read Q, the rows that are there and the entries that say where; write O. 2 * (576 + 512) operations for each
          head and token, over 2 * 576 bytes for each token, whatever the number of heads: at 128 heads 242 operations
          for a byte

A token has one row for all heads: as a key with 576 numbers, as a value with the first 512 of them. `absorb` says why.
The lengths and the table are on the device, and a launch does not look at them.
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.problem import NAN, Problem, Workload

LATENT = 512  # numbers of a row that are key and value
ROPE = 64  # rotated numbers, which are key only
ROW = LATENT + ROPE
PAGE = 64  # tokens
SCALE = 1 / sqrt(128 + 64)

MATH = {"bfloat16": "bf16", "float16": "fp16"}

# Errors are held against a row's own size. A kernel may round weights to the type, in bfloat16 by 2**-9 of each; over
# many tokens that adds up to little, and a row that hangs on a few weights sees it whole. The answer is rounded, too.
# Scores are sums in float32 of exact products. float16 has three more bits.
MAX_ERROR = {"bfloat16": 2.0**-6, "float16": 2.0**-9}

# What a table holds behind the last page of a sequence; read as a page, either is far outside of the pool.
NOBODY = (-1, 2**31 - 1)

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
    return sum(-(-length // PAGE) for length in lengths_of(w))


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Q (B, H, 576), cache (PAGES, 64, 576), block_table (B, MOST), lengths (B,).

    Numbers normal with variance 1. The order of the lengths is drawn, and so is which pages of the pool a sequence has;
    B - 1 more pages than they need have nobody. What has nobody is NaN, and of what lies behind a last token every
    other one; the others look like tokens, as those of an earlier sequence do.
    """
    most = -(-w.N // PAGE)
    order = torch.randperm(w.B, generator=generator, device=device)
    lengths = torch.tensor(lengths_of(w), dtype=torch.int32, device=device)[order]
    # Every place of the table, in the order of sequences, then of their tokens: how many tokens its page holds.
    behind = (lengths[:, None] - PAGE * torch.arange(most, device=device)).view(-1)  # [B * MOST]
    has = behind > 0
    pool = pages_of(w) + w.B - 1
    ids = torch.randperm(pool, generator=generator, device=device)[(has.cumsum(0) - 1).clamp(min=0)]
    held = torch.zeros(pool, dtype=torch.int64, device=device)
    held.scatter_add_(0, ids, behind.clamp(0, PAGE).long())
    nobody = torch.tensor(NOBODY, dtype=torch.int32, device=device).repeat(w.B * most)[: w.B * most]
    table = torch.where(has, ids.int(), nobody).view(w.B, most)
    past = torch.arange(PAGE, device=device) - held[:, None]  # [PAGES, 64]
    unwritten = ((past >= 0) & ((past % 2 == 0) | (held == 0)[:, None]))[:, :, None]
    q, cache = (
        torch.randn(*shape, generator=generator, dtype=torch.float32, device=device).to(w.torch_dtype)
        for shape in ((w.B, w.H, ROW), (pool, PAGE, ROW))
    )
    return q, cache.masked_fill_(unwritten, NAN), table, lengths


def reference(
    q: torch.Tensor, cache: torch.Tensor, block_table: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    """Return the answer in float64: (B, H, 512)."""
    out = torch.zeros((*q.shape[:2], LATENT), dtype=torch.float64, device=q.device)
    for b, length in enumerate(lengths.tolist()):
        if length:
            pages = block_table[b, : -(-length // PAGE)].long()
            rows = cache[pages].double().view(-1, ROW)[:length]
            out[b] = torch.softmax(q[b].double() @ rows.T * SCALE, dim=-1) @ rows[:, :LATENT]
    return out


def reads_bytes(w: Workload) -> int:
    """Q and the lengths, the rows of the tokens that are there, and the entries of the table that are used."""
    return w.element_bytes * ROW * (w.B * w.H + tokens_of(w)) + 4 * (pages_of(w) + w.B)


def _check_on() -> tuple[Workload, ...]:
    sizes = (  # B, H, N
        (1, 1, 64),
        (2, 128, 1),
        (3, 128, 127),  # one sequence of length 0
        (5, 16, 1000),  # the heads of one card of eight
        (4, 128, 193),  # three whole pages, and one token
        (2, 64, 4095),  # long enough to be cut, whatever the card
        (7, 96, 700),  # no whole number of blocks of 64 heads
    )
    return tuple(Workload.of(dtype, B=B, H=H, N=N) for dtype in MATH for B, H, N in sizes)


PROBLEM = Problem(
    name="mla_decode",
    formula="O[b, h] = softmax(Q[b, h] c[b]^T / sqrt(192)) c[b, :, :512], over the first length[b] tokens, in pages",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=reads_bytes,
    writes_bytes=lambda w: w.element_bytes * w.B * w.H * LATENT,
    flops=lambda w: 2 * w.H * (ROW + LATENT) * tokens_of(w),
    math=lambda w: MATH[w.dtype],
    max_error=lambda w: MAX_ERROR[w.dtype],
    rows_apart=True,
    # An infinity is a score, too: a weight that is zero times it is NaN in one library and left out in another.
    hard=lambda w: ({1: (0.0, -0.0, NAN)},),
    check_on=_check_on(),
    # The heads of DeepSeek-V3 on one card; and those of one card of eight.
    time_on=tuple(
        Workload.of("bfloat16", B=B, H=H, N=N, full=True)
        for B, H, N in ((64, 128, 4096), (128, 128, 8192), (1, 128, 16384), (64, 16, 4096))
    ),
)
