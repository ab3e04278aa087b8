"""Sparse attention, the contract: an index scores every token of the cache, and attention reads the best of them.

    I[b, n]    = sum over j of W[b, j] * ReLU(sum over d of IQ[b, j, d] * IK[b, n, d])      the index, H_I heads
    chosen[b]  = the min(TOP, N) tokens of largest I[b, n]; of equals the lower position
    S[b, h, n] = scale * sum over d of Q[b, h, d] * C[b, n, d]              n in chosen[b]; scale = 1 / sqrt(192)
    O[b, h, d] = sum over n of softmax(S[b, h, :])[n] * C[b, n, d]          d < 512

The shape is that of DeepSeek-V3.2 in a step of decoding: 64 heads of 128 in the index, TOP = 2048, 128 heads of the
query, and a cache of latent vectors that all heads share (multi-head latent attention): 512 numbers that are keys and
values at once, and 64 more, which carry the position, for keys alone. scale is that of their heads of 128 + 64 numbers,
before the projections were moved into the query.

Shapes    IQ (B, H_I, 128), W (B, H_I), IK (B, N, 128), Q (B, H, 576), C (B, N, 576); O (B, H, 512). All row-major;
          every sequence has N tokens. H_I at most 64
Types     bfloat16 or float16, the same for IQ, IK, Q, C and O; W float32. Theirs keep IK in FP8 with a scale for each
          token, and of C the 512 in FP8 too: their index reads half of these bytes
Unused    a row of C that is not chosen may be NaN, and changes nothing. Where TOP >= N nobody needs the index
Flags     `peaked`: the tokens that are not chosen have a score so low that their weight is nothing, so that attention
          over all tokens, which reads no index, is right too. `ties`: many tokens have equal I, also where the choice
          ends
Cost      sparse: read Q, all of IK, the chosen rows of C. Dense: read Q and all of C. `crossing_tokens` says from which
          N on the first is less

How exact: I is a sum of float32, or of float64, in any order. `make_inputs` keeps every token that is not chosen MARGIN
below the last one that is, so that rounding decides nothing; with `ties` scores are small whole numbers, exact in any
order. A score that is NaN has no rank: that is outside of the contract.
"""

from __future__ import annotations

from math import log, sqrt

import torch

from course_kernels.problem import NAN, Problem, Workload

LATENT = 512  # numbers of a row of the cache that are keys and values
POSITION = 64  # and those that are keys alone
WIDTH = LATENT + POSITION
INDEX_WIDTH = 128  # numbers of a head of the index
HEAD = 128 + POSITION  # numbers of a head before the projections moved: what the scale is made from

MATH = {"bfloat16": "bf16", "float16": "fp16"}

# Weights are rounded to the type before the second product, by 2**-9 of themselves in bfloat16, and so is the answer;
# of a sum of many the errors are rarely of one sign. A token too few or too many shows: see LEVER.
MAX_ERROR = {"bfloat16": 2.0**-5, "float16": 2.0**-8}

# How far the last one chosen is ahead of the best one left out, in units of the scores' root mean square: more than ten
# thousand roundings of a float32.
MARGIN = 2.0**-8

# The last number of every query. What a token has in its last place then moves its score, and for every head alike.
LEVER = 16.0

# The last number of a token that has no weight: 74 below the others, and exp(-74) is nothing beside 2**20 tokens.
NO_WEIGHT = -64.0

TIED = 3  # numbers of a tied index key that are not zero, each 0 or 1: eight different tokens


def chosen_tokens(w: Workload) -> int:
    """Return how many tokens of a sequence are chosen."""
    return min(w.TOP, w.N)


def index_bytes(w: Workload) -> int:
    """Bytes of the index's keys, queries and weights."""
    return w.B * (w.element_bytes * INDEX_WIDTH * (w.N + w.H_I) + 4 * w.H_I)


def chosen_bytes(w: Workload) -> int:
    """Bytes of the rows of the cache that are chosen."""
    return w.B * chosen_tokens(w) * WIDTH * w.element_bytes


def query_bytes(w: Workload) -> int:
    """Bytes of the queries."""
    return w.B * w.H * WIDTH * w.element_bytes


def sparse_bytes(w: Workload) -> int:
    """Return the least bytes that are read by whoever scores, chooses, and attends to what is chosen."""
    return index_bytes(w) + chosen_bytes(w) + query_bytes(w)


def dense_bytes(w: Workload) -> int:
    """Return the least bytes that are read by whoever attends to everything."""
    return w.B * w.N * WIDTH * w.element_bytes + query_bytes(w)


def attention_flops(w: Workload, tokens: int) -> int:
    """Operations of attention over so many tokens of each sequence."""
    return 2 * w.B * w.H * tokens * (WIDTH + LATENT)


def sparse_flops(w: Workload) -> int:
    """Operations of the index, a product and a weighted sum, and of attention over what is chosen."""
    return 2 * w.B * w.N * w.H_I * (INDEX_WIDTH + 1) + attention_flops(w, chosen_tokens(w))


def dense_flops(w: Workload) -> int:
    """Operations of attention over everything."""
    return attention_flops(w, w.N)


def crossing_tokens(w: Workload, *, of: str) -> float:
    """Return the N from which on sparse moves fewer bytes, or does fewer operations, than dense; inf if it never does.

    Both are straight lines over N: sparse begins with what is chosen, and rises by an index key where dense rises by a
    row of the cache.

    Args:
        w: all sizes but N.
        of: "bytes" or "flops".
    """
    if of == "bytes":
        start = w.TOP * WIDTH * w.element_bytes + w.H_I * (INDEX_WIDTH * w.element_bytes + 4)
        dense, sparse = WIDTH * w.element_bytes, INDEX_WIDTH * w.element_bytes
    elif of == "flops":
        dense, sparse = 2 * w.H * (WIDTH + LATENT), 2 * w.H_I * (INDEX_WIDTH + 1)
        start = w.TOP * dense
    else:
        raise ValueError(f"of: expected 'bytes' or 'flops', got {of!r}")
    return start / (dense - sparse) if dense > sparse else float("inf")


def scores_of(index_q: torch.Tensor, index_weight: torch.Tensor, index_k: torch.Tensor) -> torch.Tensor:
    """Return the scores of one sequence's tokens in float64: (N,), from (H_I, 128), (H_I,) and (N, 128)."""
    return index_weight.double() @ (index_q.double() @ index_k.double().T).relu_()


def best_first(scores: torch.Tensor) -> torch.Tensor:
    """Return the positions of scores (N,), the largest first, and of equals the lower position."""
    return torch.sort(scores, descending=True, stable=True).indices


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, ...]:
    """IQ (B, H_I, 128), W (B, H_I), IK (B, N, 128), Q (B, H, 576), C (B, N, 576).

    Numbers normal with variance 1, but for these. The last number of a query is LEVER, that of a token 0; only the last
    one chosen, and the best one left out, have more there: they would have about as much weight as all others together,
    so that one token too few or too many shows. Of the others left out every other one is NaN; or with `peaked` all of
    those left out have NO_WEIGHT. The index's first weight is -2 or less: a token whose index key is twice that head's
    query is behind all others, and whoever came too near to the last one chosen becomes such a token. With `ties` the
    index has small whole numbers.
    """
    of = {"generator": generator, "device": device}
    dtype, top = w.torch_dtype, chosen_tokens(w)
    tied, peaked = w.dims.get("ties", False), w.dims.get("peaked", False)
    if tied:
        index_q = torch.randint(-1, 3, (w.B, w.H_I, INDEX_WIDTH), **of).to(dtype)
        index_weight = torch.randint(1, 4, (w.B, w.H_I), **of).float()
        index_k = torch.zeros(w.B, w.N, INDEX_WIDTH, dtype=dtype, device=device)
        index_k[..., :TIED] = torch.randint(0, 2, (w.B, w.N, TIED), **of).to(dtype)
    else:
        index_q = torch.randn(w.B, w.H_I, INDEX_WIDTH, **of).to(dtype)
        index_weight = torch.randn(w.B, w.H_I, **of)
        index_weight[:, 0] = -2 - index_weight[:, 0].abs()
        index_k = torch.empty(w.B, w.N, INDEX_WIDTH, dtype=dtype, device=device)
    q = torch.randn(w.B, w.H, WIDTH, **of).to(dtype)
    q[..., -1] = LEVER
    latent = torch.empty(w.B, w.N, WIDTH, dtype=dtype, device=device)
    # A part of all the weight that goes to the last one chosen: exp of this over about 4 * top.
    ahead = log(top) * sqrt(HEAD) / LEVER
    for b in range(w.B):  # one sequence at a time: the float64 of 131072 tokens take a quarter of a GB
        latent[b].copy_(torch.randn(w.N, WIDTH, **of))
        latent[b, :, -1] = 0
        if not tied:
            index_k[b].copy_(torch.randn(w.N, INDEX_WIDTH, **of))
        scores = scores_of(index_q[b], index_weight[b], index_k[b])
        if top < w.N and not tied:
            order = best_first(scores)
            near = scores > scores[order[top - 1]] - MARGIN * scores.square().mean().sqrt()
            near[order[:top]] = False
            index_k[b] = torch.where(near[:, None], 2 * index_q[b, 0], index_k[b])
            scores = scores_of(index_q[b], index_weight[b], index_k[b])
        order = best_first(scores)
        latent[b, order[top - 1], -1] = ahead
        if top < w.N:
            latent[b, order[top], -1] = ahead
        if peaked:
            latent[b, order[top:], -1] = NO_WEIGHT
        else:
            latent[b, order[top + 1 :: 2]] = NAN
    return index_q, index_weight, index_k, q, latent


def reference(
    index_q: torch.Tensor,
    index_weight: torch.Tensor,
    index_k: torch.Tensor,
    q: torch.Tensor,
    latent: torch.Tensor,
    *,
    top: int,
) -> torch.Tensor:
    """Return the answer in float64: (B, H, 512)."""
    out = torch.empty(*q.shape[:2], LATENT, dtype=torch.float64, device=q.device)
    for b in range(len(q)):
        chosen = best_first(scores_of(index_q[b], index_weight[b], index_k[b]))[:top]
        rows = latent[b, chosen].double()
        weights = torch.softmax(q[b].double() @ rows.T / sqrt(HEAD), dim=-1)
        out[b] = weights @ rows[:, :LATENT]
    return out


def _hard(w: Workload) -> tuple[dict[int, tuple[float, ...]], ...]:
    # Nothing in the index, which the choice hangs on. An infinity times a weight that is rounded to zero is NaN. Where
    # all tokens may be read, none but the chosen ones may be NaN, and a query keeps its last number.
    return ({3: (NAN,)},) if w.dims.get("peaked", False) else ({3: (0.0, -0.0, NAN)}, {4: (0.0, -0.0, NAN)})


def _check_on() -> tuple[Workload, ...]:
    sizes = (  # B, H, H_I, N, TOP
        (1, 1, 1, 1, 1),
        (2, 3, 2, 9, 12),  # fewer tokens than may be chosen
        (2, 4, 3, 17, 5),
        (3, 16, 64, 130, 32),
        (2, 17, 16, 257, 257),  # all of them are
        (1, 128, 64, 300, 299),
        (2, 16, 64, 4100, 2048),
    )
    return tuple(
        Workload.of(dtype, B=B, H=H, H_I=H_I, N=N, TOP=TOP, **flags)
        for dtype in MATH
        for flags in ({}, {"peaked": True}, {"ties": True})
        for B, H, H_I, N, TOP in sizes
        if not flags or 5 < TOP < N
    )


PROBLEM = Problem(
    name="sparse_attention",
    formula="O[b, h] = softmax(Q[b, h] C[b, n]^T / sqrt(192)) C[b, n, :512], n the TOP tokens of largest index score",
    make_inputs=make_inputs,
    reference=reference,
    # A floor is what nobody can go below: with few tokens that is to read all of them, where that is right.
    reads_bytes=lambda w: min(sparse_bytes(w), dense_bytes(w)),
    writes_bytes=lambda w: w.element_bytes * w.B * w.H * LATENT,
    flops=lambda w: min(sparse_flops(w), dense_flops(w)),
    math=lambda w: MATH[w.dtype],
    max_error=lambda w: MAX_ERROR[w.dtype],
    options=lambda w: {"top": w.TOP},
    rows_apart=True,
    hard=_hard,
    check_on=_check_on(),
    # The heads and the choice of DeepSeek-V3.2, for one sequence, a few and many; and everything, which dense is for.
    time_on=(
        *(
            Workload.of("bfloat16", B=B, H=128, H_I=64, N=N, TOP=2048, peaked=True)
            for B in (1, 8, 32)
            for N in (4096, 8192, 16384, 32768, 65536, 131072)
        ),
        Workload.of("bfloat16", B=32, H=128, H_I=64, N=65536, TOP=65536, peaked=True),
    ),
)
