"""Attention backward, kernel 2: P is made again, tile by tile, and each gradient has its own owner. In Triton.

Contract  problem.py
Idea      the log-sum-exp L of a row is all that a tile of P needs: P = exp(S - L). One kernel owns a block of keys,
          lets the rows pass by and sums dK and dV; another owns a block of rows, lets the keys pass by and sums dQ
Against   k01_materialised, whose matrices cross memory 18 times
Cost      seven products of tiles where five are needed: both kernels make S and dP. Nobody shares a sum, so no atomics,
          and the same bits every time
Limits    tiles come by loads of the threads; float32 takes three TF32 products for one
Next      k03_one_pass lets the owner of the keys sum dQ, too
Source    Dao et al. 2022, arXiv:2205.14135, algorithm 4; Triton tutorial 06
"""

from __future__ import annotations

from dataclasses import dataclass
from math import e, log2, sqrt

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.attention_backward.arguments import HEAD_SIZES, heads_of
from course_kernels.cuda.hopper_card import is_hopper
from course_kernels.problem import Workload

# How tl.dot multiplies. Plain TF32 would keep 11 bits of a float32; three products of split numbers keep 21.
PRECISION = {torch.bfloat16: "tf32", torch.float16: "tf32", torch.float32: "tf32x3"}


@dataclass(frozen=True)
class Tile:
    """Tile shape of one of the two kernels.

    Attributes:
        owned: keys, or rows, of a program.
        passing: rows, or keys, of one step of its loop.
        warps: warps of a program.
        stages: how far ahead the loads of the loop run.
    """

    owned: int
    passing: int
    warps: int
    stages: int


# What the tables below hold for bytes of an element and D: the owners of keys first, which keep two sums in registers,
# then those of rows, which keep one.
Tiles = tuple[Tile, Tile]

# float32 must split its operands in registers, so its tiles are small; a warpgroup's multiply has no use for them.
IN_FLOAT32 = {
    (4, 64): (Tile(32, 32, warps=4, stages=1), Tile(32, 32, warps=4, stages=1)),
    (4, 128): (Tile(16, 32, warps=4, stages=1), Tile(32, 32, warps=4, stages=1)),
}

# Two warpgroups of 64 keys, or rows, which share the tiles that pass by.
HOPPER = IN_FLOAT32 | {
    (2, 64): (Tile(128, 64, warps=8, stages=2), Tile(128, 64, warps=8, stages=2)),
    (2, 128): (Tile(128, 64, warps=8, stages=3), Tile(128, 64, warps=8, stages=3)),
}

# Everything else, sized for the 99 KB of shared memory that the smallest of them has (sm_86, 89, 120) and for
# tensor cores that take their operands from registers.
GENERIC = IN_FLOAT32 | {
    (2, 64): (Tile(64, 64, warps=4, stages=2), Tile(64, 64, warps=4, stages=2)),
    (2, 128): (Tile(64, 32, warps=8, stages=2), Tile(64, 32, warps=4, stages=2)),
}

ROWS_OF_DELTA = 64  # rows of a program that only reads, multiplies and adds up


# --- on the device -----------------------------------------------------------


@triton.jit
def places_of(head, first, N, ROWS: tl.constexpr, D: tl.constexpr):
    """Return where rows first to first + ROWS of one head lie, and which of them there are: [ROWS, D], [ROWS, 1]."""
    row = first + tl.arange(0, ROWS)
    return (head.to(tl.int64) * N + row)[:, None] * D + tl.arange(0, D)[None, :], (row < N)[:, None]


@triton.jit
def load_rows(x, head, first, N, ROWS: tl.constexpr, D: tl.constexpr):
    """Return rows first to first + ROWS of one head, zeros past its end: [ROWS, D]."""
    places, there = places_of(head, first, N, ROWS, D)
    return tl.load(x + places, mask=there, other=0.0)


@triton.jit
def load_numbers(x, head, first, N, ROWS: tl.constexpr):
    """Return one number for each of these rows, zeros past the end: [ROWS]."""
    row = first + tl.arange(0, ROWS)
    return tl.load(x + head.to(tl.int64) * N + row, mask=row < N, other=0.0)


@triton.jit
def delta_kernel(O, dO, delta, N, D: tl.constexpr, ROWS: tl.constexpr):
    """delta[m] = sum over d of dO[m, d] * O[m, d], in float32."""
    head, first = tl.program_id(1), tl.program_id(0) * ROWS
    o, do = load_rows(O, head, first, N, ROWS, D), load_rows(dO, head, first, N, ROWS, D)
    row = first + tl.arange(0, ROWS)
    sums = tl.sum(o.to(tl.float32) * do.to(tl.float32), 1)
    tl.store(delta + head.to(tl.int64) * N + row, sums, mask=row < N)


@triton.jit
def weigh(
    a, b, da, db, lse, delta, row, col, scale, N,
    MASKED: tl.constexpr, CAUSAL: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """P and dS of one tile, which stands upright, a and da of rows, b and db of keys, or lies, the other way round.

    lse, delta and row are [M, 1], col is [1, N], or the other way round; P and dS come as the tile stands.
    """
    s = tl.dot(a, b.T, input_precision=PRECISION)
    p = tl.math.exp2(s * scale - lse)
    if MASKED:
        # Past the end nothing is 0 by itself: a score of 0 less a low lse may have no exponential that fits.
        # Causal needs no test against N: keys past the end are seen by rows past the end only.
        p = tl.where(col <= row if CAUSAL else col < N, p, 0.0)
    dp = tl.dot(da, db.T, input_precision=PRECISION)
    return p, p * (dp - delta)


@triton.jit
def pass_rows(
    dk, dv, k, v, Q, dO, lse_ptr, delta_ptr, head, col, scale, log2_e, N, first, last,
    MASKED: tl.constexpr, CAUSAL: tl.constexpr, ROWS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Let the rows first to last pass by a block of keys."""
    D: tl.constexpr = k.shape[1]
    for start in tl.range(first, last, ROWS):
        q, do = load_rows(Q, head, start, N, ROWS, D), load_rows(dO, head, start, N, ROWS, D)
        lse = load_numbers(lse_ptr, head, start, N, ROWS) * log2_e
        delta = load_numbers(delta_ptr, head, start, N, ROWS)
        row = start + tl.arange(0, ROWS)
        # The tile lies, [KEYS, ROWS]: turned in this way P and dS are what the next two products begin with. A row past
        # the end adds nothing, whatever its P is: its q and do are zeros.
        p, ds = weigh(
            k, q, v, do, lse[None, :], delta[None, :], row[None, :], col[:, None], scale, N,
            MASKED, CAUSAL, PRECISION,
        )  # fmt: skip
        dv = tl.dot(p.to(do.dtype), do, dv, input_precision=PRECISION)  # [KEYS, D]
        dk = tl.dot(ds.to(q.dtype), q, dk, input_precision=PRECISION)  # [KEYS, D]
    return dk, dv


@triton.jit
def keys_kernel(
    Q, K, V, dO, lse_ptr, delta_ptr, dK, dV, N, scale, log2_e, of_scores,
    D: tl.constexpr, CAUSAL: tl.constexpr, KEYS: tl.constexpr, ROWS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One program owns KEYS keys of one head: it sums their dK and dV over all rows that see them."""
    head, first_col = tl.program_id(1), tl.program_id(0) * KEYS
    col = first_col + tl.arange(0, KEYS)
    k, v = load_rows(K, head, first_col, N, KEYS, D), load_rows(V, head, first_col, N, KEYS, D)
    dk, dv = tl.zeros([KEYS, D], tl.float32), tl.zeros([KEYS, D], tl.float32)
    # Causal: rows before the block see none of it, those on the diagonal see a part. A key past the end is a row of
    # this tile and touches no other, so full attention needs no mask.
    seen = first_col // ROWS * ROWS if CAUSAL else 0
    unmasked = tl.minimum(tl.cdiv(first_col + KEYS, ROWS) * ROWS, N) if CAUSAL else 0
    dk, dv = pass_rows(
        dk, dv, k, v, Q, dO, lse_ptr, delta_ptr, head, col, scale, log2_e, N, seen, unmasked,
        CAUSAL, CAUSAL, ROWS, PRECISION,
    )  # fmt: skip
    dk, dv = pass_rows(
        dk, dv, k, v, Q, dO, lse_ptr, delta_ptr, head, col, scale, log2_e, N, unmasked, N,
        False, CAUSAL, ROWS, PRECISION,
    )  # fmt: skip
    places, there = places_of(head, first_col, N, KEYS, D)
    tl.store(dK + places, (dk * of_scores).to(k.dtype), mask=there)
    tl.store(dV + places, dv.to(v.dtype), mask=there)


@triton.jit
def pass_keys(
    dq, q, do, lse, delta, K, V, head, row, scale, N, first, last,
    MASKED: tl.constexpr, CAUSAL: tl.constexpr, KEYS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Let the keys first to last pass by a block of rows."""
    D: tl.constexpr = q.shape[1]
    for start in tl.range(first, last, KEYS):
        k, v = load_rows(K, head, start, N, KEYS, D), load_rows(V, head, start, N, KEYS, D)
        col = start + tl.arange(0, KEYS)
        _, ds = weigh(
            q, k, do, v, lse[:, None], delta[:, None], row[:, None], col[None, :], scale, N,
            MASKED, CAUSAL, PRECISION,
        )  # fmt: skip
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision=PRECISION)  # [ROWS, D]
    return dq


@triton.jit
def rows_kernel(
    Q, K, V, dO, lse_ptr, delta_ptr, dQ, N, scale, log2_e, of_scores,
    D: tl.constexpr, CAUSAL: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One program owns ROWS rows of one head: it sums their dQ over all keys that they see."""
    head = tl.program_id(1)
    # Programs start in the order of their number. Causal: the longest rows first, so that short ones fill the end.
    block = tl.num_programs(0) - 1 - tl.program_id(0) if CAUSAL else tl.program_id(0)
    first_row = block * ROWS
    row = first_row + tl.arange(0, ROWS)
    q, do = load_rows(Q, head, first_row, N, ROWS, D), load_rows(dO, head, first_row, N, ROWS, D)
    lse = load_numbers(lse_ptr, head, first_row, N, ROWS) * log2_e
    delta = load_numbers(delta_ptr, head, first_row, N, ROWS)
    # Most tiles need no mask. Those that do come last: the diagonal, or the last tile where it is short.
    if CAUSAL:
        unmasked, last = first_row // KEYS * KEYS, tl.minimum(first_row + ROWS, N)
    else:
        unmasked, last = N // KEYS * KEYS, N
    dq = tl.zeros([ROWS, D], tl.float32)
    dq = pass_keys(
        dq, q, do, lse, delta, K, V, head, row, scale, N, 0, unmasked, False, CAUSAL, KEYS, PRECISION
    )
    dq = pass_keys(
        dq, q, do, lse, delta, K, V, head, row, scale, N, unmasked, last, True, CAUSAL, KEYS, PRECISION
    )
    places, there = places_of(head, first_row, N, ROWS, D)
    tl.store(dQ + places, (dq * of_scores).to(q.dtype), mask=there)


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
    tiles: Tiles | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of attention.

    Args:
        q, k, v, o, do: (B, H, N, D) bfloat16, float16 or float32, contiguous, D = 64 or 128, B * H <= 65535,
            N <= 1073741824, at addresses divisible by 16 (as torch allocates).
        lse: (B, H, N) float32, contiguous: what the forward pass kept, a natural logarithm.
        causal: row m sees keys 0 to m only.
        tiles: how to cut the work of the owners of keys, and of rows; without it, what suits this card, type and D.
    Returns:
        dq, dk, dv: (B, H, N, D) of the same type, the same bits every time.
    Raises:
        TypeError, ValueError: see `heads_of`.
    """
    heads, N, D = heads_of(q, k, v, o, lse, do, tuple(PRECISION))
    of_keys, of_rows = tiles or (HOPPER if is_hopper(q.device) else GENERIC)[q.element_size(), D]
    delta = torch.empty_like(lse)
    dq, dk, dv = (torch.empty_like(x) for x in (q, k, v))
    delta_kernel[triton.cdiv(N, ROWS_OF_DELTA), heads](o, do, delta, N, D=D, ROWS=ROWS_OF_DELTA)
    of_scores = 1 / sqrt(D)
    numbers = N, log2(e) * of_scores, log2(e), of_scores  # exp2 takes the place of exp
    same = {"D": D, "CAUSAL": causal, "PRECISION": PRECISION[q.dtype]}
    keys_kernel[triton.cdiv(N, of_keys.owned), heads](
        q, k, v, do, lse, delta, dk, dv, *numbers, **same,
        KEYS=of_keys.owned, ROWS=of_keys.passing, num_warps=of_keys.warps, num_stages=of_keys.stages,
    )  # fmt: skip
    rows_kernel[triton.cdiv(N, of_rows.owned), heads](
        q, k, v, do, lse, delta, dq, *numbers, **same,
        ROWS=of_rows.owned, KEYS=of_rows.passing, num_warps=of_rows.warps, num_stages=of_rows.stages,
    )  # fmt: skip
    return dq, dk, dv
