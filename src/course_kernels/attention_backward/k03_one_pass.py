"""Attention backward, kernel 3: S and dP are made once; the owners of keys add to dQ in memory. In Triton.

Contract  problem.py
Idea      the owner of a block of keys has dS of every row that sees it, so it makes that row's part of dQ as well, and
          adds it to a sum in memory: by the copy engine (TMA) on Hopper, which also brings the tiles, elsewhere by
          atomics
Against   k02_teaching, which makes S and dP a second time for dQ: seven products where five are needed
Cost      a dQ in float32 for every block of keys, added up in L2; and one more trip of dQ, which is rounded at the end
Limits    who adds first is a matter of time, and a sum of float32 depends on its order: dQ differs in its last bits
          from call to call, dK and dV do not. Softmax and multiply take turns within a program
Source    Dao 2023, arXiv:2307.08691, section 3.1.2; Triton tutorial 06
"""

from __future__ import annotations

from dataclasses import dataclass
from math import e, log2, sqrt

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from course_kernels.attention_backward.arguments import HEAD_SIZES, heads_of
from course_kernels.attention_backward.k02_teaching import (
    PRECISION,
    load_numbers,
    load_rows,
    places_of,
    weigh,
)
from course_kernels.cuda.hopper_card import is_hopper
from course_kernels.problem import Workload


@dataclass(frozen=True)
class Tile:
    """Tile shape.

    Attributes:
        keys: keys of a program.
        rows: rows of one step of its loop.
        warps: warps of a program.
        stages: tiles of Q, and of dO, in shared memory at once; the copies run that far ahead.
        tma: whether tiles come, and dQ goes, by the copy engine, or by loads and atomics of the threads.
    """

    keys: int
    rows: int
    warps: int
    stages: int
    tma: bool


# By bytes of an element, then D. float32 must split its operands in registers, so its tiles are small.
IN_FLOAT32 = {
    (4, 64): Tile(32, 32, warps=4, stages=1, tma=False),
    (4, 128): Tile(16, 32, warps=4, stages=1, tma=False),
}

# Two warpgroups of 64 keys each. At D = 128 their two sums take half of all registers: 64 rows pass by at a time, and
# some numbers are spilled; at D = 64 there is room for 128.
HOPPER = IN_FLOAT32 | {
    (2, 64): Tile(128, 128, warps=8, stages=2, tma=True),
    (2, 128): Tile(128, 64, warps=8, stages=2, tma=True),
}

# Everything else, sized for the 99 KB of shared memory that the smallest of them has (sm_86, 89, 120).
GENERIC = IN_FLOAT32 | {
    (2, 64): Tile(64, 64, warps=4, stages=2, tma=False),
    (2, 128): Tile(64, 32, warps=8, stages=2, tma=False),
}

ROWS_AT_ONCE = 64  # rows of a program of the two kernels that only read, add up or round, and write


# --- on the device -----------------------------------------------------------


@triton.jit
def begin_kernel(O, dO, delta, dQ_sum, N, D: tl.constexpr, ROWS: tl.constexpr):
    """delta[m] = sum over d of dO[m, d] * O[m, d], in float32; and zeros, for others to add to."""
    head, first = tl.program_id(1), tl.program_id(0) * ROWS
    o, do = load_rows(O, head, first, N, ROWS, D), load_rows(dO, head, first, N, ROWS, D)
    row = first + tl.arange(0, ROWS)
    sums = tl.sum(o.to(tl.float32) * do.to(tl.float32), 1)
    tl.store(delta + head.to(tl.int64) * N + row, sums, mask=row < N)
    places, there = places_of(head, first, N, ROWS, D)
    tl.store(dQ_sum + places, tl.zeros([ROWS, D], tl.float32), mask=there)


@triton.jit
def end_kernel(dQ_sum, dQ, N, of_scores, D: tl.constexpr, ROWS: tl.constexpr):
    """dQ, once all have added: scaled and rounded."""
    head, first = tl.program_id(1), tl.program_id(0) * ROWS
    places, there = places_of(head, first, N, ROWS, D)
    dq = tl.load(dQ_sum + places, mask=there) * of_scores
    tl.store(dQ + places, dq.to(dQ.dtype.element_ty), mask=there)


@triton.jit
def bring_rows(x, head, first, N, ROWS: tl.constexpr, D: tl.constexpr, TMA: tl.constexpr):
    """Return rows first to first + ROWS of one head, zeros past its end: [ROWS, D]."""
    if TMA:  # x is a descriptor of three dimensions: it ends where the head ends, never in the next one
        rows = x.load([head, first, 0])
        rows = rows.reshape(ROWS, D)
    else:
        rows = load_rows(x, head, first, N, ROWS, D)
    return rows


@triton.jit
def pass_rows(
    dk, dv, k, v, Q, dO, lse_ptr, delta_ptr, dQ_sum, head, col, scale, log2_e, N, first, last,
    MASKED: tl.constexpr, CAUSAL: tl.constexpr, ROWS: tl.constexpr, PRECISION: tl.constexpr, TMA: tl.constexpr,
):  # fmt: skip
    """Let the rows first to last pass by a block of keys, and add to their dQ."""
    D: tl.constexpr = k.shape[1]
    for start in tl.range(first, last, ROWS):
        q, do = bring_rows(Q, head, start, N, ROWS, D, TMA), bring_rows(dO, head, start, N, ROWS, D, TMA)
        lse = load_numbers(lse_ptr, head, start, N, ROWS) * log2_e
        delta = load_numbers(delta_ptr, head, start, N, ROWS)
        row = start + tl.arange(0, ROWS)
        p, ds = weigh(
            k, q, v, do, lse[None, :], delta[None, :], row[None, :], col[:, None], scale, N,
            MASKED, CAUSAL, PRECISION,
        )  # fmt: skip
        dv = tl.dot(p.to(do.dtype), do, dv, input_precision=PRECISION)  # [KEYS, D]
        ds = ds.to(q.dtype)
        dk = tl.dot(ds, q, dk, input_precision=PRECISION)  # [KEYS, D]
        # The tile lies, [KEYS, ROWS]; turned upright it is what this product begins with.
        dq = tl.dot(ds.T, k, input_precision=PRECISION)  # [ROWS, D]
        if TMA:  # rows past N are cut off, as they were read
            dQ_sum.atomic_add([head, start, 0], dq.reshape(1, ROWS, D))
        else:
            places, there = places_of(head, start, N, ROWS, D)
            # Relaxed: nobody looks at the sum before the kernel ends.
            tl.atomic_add(dQ_sum + places, dq, mask=there, sem="relaxed")
    return dk, dv


@triton.jit
def one_pass_kernel(
    Q, K, V, dO, lse_ptr, delta_ptr, dQ_sum, dK, dV, N, scale, log2_e, of_scores,
    D: tl.constexpr, CAUSAL: tl.constexpr, SHORT: tl.constexpr, KEYS: tl.constexpr, ROWS: tl.constexpr,
    PRECISION: tl.constexpr, TMA: tl.constexpr,
):  # fmt: skip
    """One program owns KEYS keys of one head. Q, K, V, dO, dQ_sum: descriptors if TMA, else pointers."""
    head, first_col = tl.program_id(1), tl.program_id(0) * KEYS
    col = first_col + tl.arange(0, KEYS)
    k, v = bring_rows(K, head, first_col, N, KEYS, D, TMA), bring_rows(V, head, first_col, N, KEYS, D, TMA)
    dk, dv = tl.zeros([KEYS, D], tl.float32), tl.zeros([KEYS, D], tl.float32)
    seen = first_col // ROWS * ROWS
    if CAUSAL:  # rows before the block see none of it, those on the diagonal a part, all others all
        masked_last = tl.minimum(tl.cdiv(first_col + KEYS, ROWS) * ROWS, N)
        more, last = masked_last, N
    else:  # from its own place to the end, then from the beginning: neighbours do not add to the same rows at once
        masked_last = N
        more, last = 0, seen
    # SHORT: the last block of keys is. A key past the end must not reach dQ by a k of zero: a P of it that overflows
    # times zero is NaN. Causal, such a key is seen by rows past the end only.
    dk, dv = pass_rows(
        dk, dv, k, v, Q, dO, lse_ptr, delta_ptr, dQ_sum, head, col, scale, log2_e, N, seen, masked_last,
        CAUSAL or SHORT, CAUSAL, ROWS, PRECISION, TMA,
    )  # fmt: skip
    dk, dv = pass_rows(
        dk, dv, k, v, Q, dO, lse_ptr, delta_ptr, dQ_sum, head, col, scale, log2_e, N, more, last,
        SHORT and not CAUSAL, CAUSAL, ROWS, PRECISION, TMA,
    )  # fmt: skip
    places, there = places_of(head, first_col, N, KEYS, D)
    tl.store(dK + places, (dk * of_scores).to(k.dtype), mask=there)
    tl.store(dV + places, dv.to(v.dtype), mask=there)


# --- on the host -------------------------------------------------------------


def supports(w: Workload) -> bool:
    """Return whether this kernel takes a workload: bfloat16, float16 or float32, D = 64 or 128."""
    return w.dtype in ("bfloat16", "float16", "float32") and w.D in HEAD_SIZES


def attention_backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    do: torch.Tensor,
    *,
    causal: bool = False,
    deterministic: bool = False,
    tile: Tile | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of attention.

    Args:
        q, k, v, o, do: (B, H, N, D) bfloat16, float16 or float32, contiguous, D = 64 or 128, B * H <= 65535,
            N <= 1073741824, at addresses divisible by 16 (as torch allocates).
        lse: (B, H, N) float32, contiguous: what the forward pass kept, a natural logarithm.
        causal: row m sees keys 0 to m only.
        deterministic: must be False: dq differs in its last bits from call to call.
        tile: how to cut the work; without it, the tile for this card, type and D.
    Returns:
        dq, dk, dv: (B, H, N, D) of the same type.
    Raises:
        TypeError, ValueError: see `heads_of`; or deterministic is True.
    """
    if deterministic:
        raise ValueError("deterministic: expected False, this kernel adds in no order; k02_teaching has one")
    heads, N, D = heads_of(q, k, v, o, lse, do, tuple(PRECISION))
    tile = tile or (HOPPER if is_hopper(q.device) else GENERIC)[q.element_size(), D]
    delta = torch.empty_like(lse)
    dq_sum = torch.empty(q.shape, dtype=torch.float32, device=q.device)
    dq, dk, dv = (torch.empty_like(x) for x in (q, k, v))

    def rows_of(tensor: torch.Tensor, rows: int) -> torch.Tensor | TensorDescriptor:
        return TensorDescriptor.from_tensor(tensor.view(heads, N, D), [1, rows, D]) if tile.tma else tensor

    of_scores = 1 / sqrt(D)
    by_rows = triton.cdiv(N, ROWS_AT_ONCE), heads
    begin_kernel[by_rows](o, do, delta, dq_sum, N, D=D, ROWS=ROWS_AT_ONCE)
    # exp2 takes the place of exp: scores are scaled by log2(e) as well.
    one_pass_kernel[triton.cdiv(N, tile.keys), heads](
        rows_of(q, tile.rows), rows_of(k, tile.keys), rows_of(v, tile.keys), rows_of(do, tile.rows), lse, delta,
        rows_of(dq_sum, tile.rows), dk, dv, N, log2(e) * of_scores, log2(e), of_scores,
        D=D, CAUSAL=causal, SHORT=N % tile.keys != 0, KEYS=tile.keys, ROWS=tile.rows, PRECISION=PRECISION[q.dtype],
        TMA=tile.tma, num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
    end_kernel[by_rows](dq_sum, dq, N, of_scores, D=D, ROWS=ROWS_AT_ONCE)
    return dq, dk, dv
