"""General attention, the contract: sequences of any lengths side by side, heads that share, masks by position.

    sequence b has the queries from starts_q[b] to starts_q[b + 1], and the keys from starts_k[b] to starts_k[b + 1]
    query m stands at the key m + keys - queries: the last query at the last key (bottom-right)

    S[m, h, n] = scale * sum over d of Q[m, h, d] * K[n, h // G, d]         scale = 1 / sqrt(D)
    P[m, h, :] = softmax(S[m, h, :])                                        over the keys that query m sees
    O[m, h, d] = sum over n of P[m, h, n] * V[n, h // G, d]

    causal    query m sees no key behind the one that it stands at
    window    query m sees no key more than so many before the one that it stands at; None: there is none
    Who calls a kernel says both, and `longest`, by name.

Shapes    Q, O (T, H, D), K, V (S, KV, D): the sequences one after the other, without a gap; starts_q, starts_k
          (B + 1,), from 0 to T, and to S. All row-major. G = H / KV query heads share a head of keys and values
Unseen    a query that sees no key is answered by zeros; its log-sum-exp is minus infinity
Types     bfloat16, float16 or float32, the same for Q, K, V and O; starts int32; the truth is computed in float64
Cost      read Q, K and V, write O; 4*D operations for each head, query, and key that the query sees

The starts are on the device, and a launch does not look at them. `longest`, the most queries of a sequence, is the
host's to know: it sizes the grid.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from math import sqrt
from typing import Any

import torch

from course_kernels.problem import Problem, Workload

# A fp32 kernel may make each product from three TF32 ones, on the tensor cores; it counts against the fp32 peak.
MATH = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}

# As for attention: errors are held against a row's own size, and a kernel may round scores and weights to the type. A
# score of 4 or more is then off by up to 2**-7 in bfloat16, its weight by as much of itself, and the worst of many rows
# that hang on few such weights by a few times that. float16 has three more bits. In float32 what is left is the order
# of additions; plain TF32 does not pass.
MAX_ERROR = {"bfloat16": 2.0**-4, "float16": 2.0**-7, "float32": 2.0**-15}

ROWS_AT_ONCE = 1024  # queries of one head that the truth is made for at a time

# Far from any fraction of small numbers: its multiples, cut to what follows the point, fill 0 to 1 evenly.
GOLDEN = (sqrt(5) - 1) / 2


@cache
def lengths_of(w: Workload) -> tuple[tuple[int, int], ...]:
    """Return the queries and keys of each of the B sequences, in no order that matters.

    The same for every draw of inputs.

    With the flag `full` all have N of both. Else: N and N, one query over N keys, N queries over a third of the keys,
    no query, no key, and then any numbers from 1 to N, as far as B goes.
    """
    if w.dims.get("full", False):
        return ((w.N, w.N),) * w.B
    hard = (w.N, w.N), (1, w.N), (w.N, max(w.N // 3, 1)), (0, w.N), (w.N // 2 + 1, 0)
    spread = ((1 + int(GOLDEN * i % 1 * w.N), 1 + int(GOLDEN * (i + 7) * i % 1 * w.N)) for i in range(1, w.B))
    return (*hard, *spread)[: w.B]


def tokens_of(w: Workload) -> tuple[int, int]:
    """T and S: how many queries, and keys, all sequences have together."""
    return sum(queries for queries, _ in lengths_of(w)), sum(keys for _, keys in lengths_of(w))


def seen_by(
    row: int, queries: int, keys: int, *, causal: bool = False, window: int | None = None
) -> tuple[int, int]:
    """Return the keys that query `row` of a sequence sees, first and last plus 1.

    The same number twice where it sees none.
    """
    position = row + keys - queries
    last = min(position + 1, keys) if causal else keys
    first = 0 if window is None else max(position - window, 0)
    return first, max(first, last)


@cache
def pairs_of(w: Workload) -> int:
    """Return how many pairs there are of a query and a key that it sees."""
    masks = options(w)
    del masks["longest"]
    return sum(
        last - first
        for queries, keys in lengths_of(w)
        for first, last in (seen_by(row, queries, keys, **masks) for row in range(queries))
    )


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, ...]:
    """Q (T, H, D), K and V (S, KV, D), normal with variance 1; both starts, of sequences in a random order."""
    T, S = tokens_of(w)
    q, k, v = (
        torch.randn(*shape, generator=generator, dtype=torch.float32, device=device).to(w.torch_dtype)
        for shape in ((T, w.H, w.D), (S, w.KV, w.D), (S, w.KV, w.D))
    )
    order = torch.randperm(w.B, generator=generator, device=device)
    lengths = torch.tensor(lengths_of(w), device=device)[order]
    starts_q, starts_k = torch.nn.functional.pad(lengths.cumsum(0), (0, 0, 1, 0)).int().T.contiguous()
    return q, k, v, starts_q.clone(), starts_k.clone()


def options(w: Workload) -> dict[str, Any]:
    """`longest`, `causal` and `window`; a workload without the size W has no window."""
    return {"longest": w.N, "causal": bool(w.dims.get("causal", False)), "window": w.dims.get("W")}


def reference(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    starts_q: torch.Tensor,
    starts_k: torch.Tensor,
    *,
    longest: int,
    causal: bool = False,
    window: int | None = None,
) -> torch.Tensor:
    """Return the answer in float64: (T, H, D)."""
    return reference_with_lse(q, k, v, starts_q, starts_k, causal=causal, window=window)[0]


def reference_with_lse(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    starts_q: torch.Tensor,
    starts_k: torch.Tensor,
    *,
    causal: bool = False,
    window: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the answer in float64, (T, H, D), and the log-sum-exp of every row of scores, (H, T)."""
    (T, H, D), KV = q.shape, k.shape[1]
    out = torch.zeros((T, H, D), dtype=torch.float64, device=q.device)
    lse = torch.full((H, T), -torch.inf, dtype=torch.float64, device=q.device)
    bounds = list(zip(starts_q.tolist(), starts_k.tolist(), strict=True))
    for (first_q, first_k), (last_q, last_k) in pairwise(bounds):
        for h in range(H if last_k > first_k else 0):
            keys, values = (x[first_k:last_k, h // (H // KV)].double() for x in (k, v))
            for start in range(first_q, last_q, ROWS_AT_ONCE):
                rows = slice(start, min(start + ROWS_AT_ONCE, last_q))
                scores = q[rows, h].double() @ keys.T / sqrt(D)
                position = torch.arange(rows.start, rows.stop, device=q.device)[:, None] - last_q
                behind = torch.arange(first_k - last_k, 0, device=q.device) - position  # 0: where it stands
                if causal:
                    scores.masked_fill_(behind > 0, -torch.inf)
                if window is not None:
                    scores.masked_fill_(behind < -window, -torch.inf)
                lse[h, rows] = torch.logsumexp(scores, dim=-1)
                # A row without a key: every weight is exp(-inf - -inf).
                out[rows, h] = torch.softmax(scores, dim=-1).nan_to_num(0.0) @ values
    return out, lse


def reads_bytes(w: Workload) -> int:
    """Q, K, V and both starts."""
    T, S = tokens_of(w)
    return w.element_bytes * w.D * (T * w.H + 2 * S * w.KV) + 2 * 4 * (w.B + 1)


def _check_on() -> tuple[Workload, ...]:
    sizes: tuple[dict[str, int | bool], ...] = (
        {"B": 1, "H": 1, "KV": 1, "N": 1},
        {"B": 5, "H": 2, "KV": 1, "N": 17},
        {"B": 6, "H": 4, "KV": 4, "N": 127, "causal": True},  # nothing is shared; rows that see nothing
        {"B": 4, "H": 6, "KV": 2, "N": 129, "causal": True, "W": 40},
        {"B": 3, "H": 4, "KV": 1, "N": 200, "W": 64},  # every key behind, and some before
        {"B": 8, "H": 8, "KV": 2, "N": 1000, "causal": True, "W": 1},
        {"B": 7, "H": 8, "KV": 2, "N": 4095, "causal": True},
    )
    return tuple(
        Workload.of(dtype, **{**size, "D": D})
        for dtype in ("bfloat16", "float16", "float32")
        for D in (64, 96, 128, 256)
        for size in sizes
    )


PROBLEM = Problem(
    name="attention_general",
    formula="O[m, h] = softmax(Q[m, h] K[:, h // G]^T / sqrt(D)) V[:, h // G], over the keys that query m sees",
    make_inputs=make_inputs,
    options=options,
    reference=reference,
    reads_bytes=reads_bytes,
    writes_bytes=lambda w: w.element_bytes * w.D * tokens_of(w)[0] * w.H,
    flops=lambda w: 4 * w.D * w.H * pairs_of(w),
    math=lambda w: MATH[w.dtype],
    max_error=lambda w: MAX_ERROR[w.dtype],
    rows_apart=True,
    # A row of scores that are all NaN is one that sees no key, to some libraries. A NaN of K or V reaches rows that do
    # not see it, by a weight of zero; which ones, is a matter of the tile.
    hard=lambda w: (),
    check_on=_check_on(),
    # The heads of an 8B model of the Llama 3 family: one long sequence, a batch of a prefill, and a sliding window.
    time_on=(
        Workload.of("bfloat16", B=1, H=32, KV=8, N=16384, D=128, causal=True),
        Workload.of("bfloat16", B=16, H=32, KV=8, N=4096, D=128, causal=True),
        Workload.of("bfloat16", B=1, H=32, KV=8, N=16384, D=128, causal=True, W=4096),
    ),
)
