"""Norm, projection and rotary embedding, kernel 2: one kernel, one pass over the weights.

Contract  problem.py
Idea      a row's 1 / rms is one number, so it may be multiplied in when the products are summed up: x * g goes into the
          multiply, the squares of x are added up beside it, and the sums are scaled, turned and stored from registers
Against   k01_three_kernels, where the multiply waits for the norm and the rotation for the multiply
Cost      the weights are read once, x by every program, from L2; h and p are never in memory
Limits    it is not the usual fusion: served models join the norm to the addition of the residual before it, and leave
          the multiply to a library. What this one is to gain are two launches, and the two gaps in which a kernel runs
          out and the next one fills the card; no bytes worth the name. So it is for few rows: with many the multiply is
          arithmetic, and every program squares x once more
Next      one for the output projection, and one for gate, up and what is between them
Source    the ticket: CUDA samples, threadFenceReduction; Su et al. 2021, arXiv:2104.09864, section 3.4.2
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from course_kernels.arguments import check_tensor
from course_kernels.dependent_launch import check_early
from course_kernels.qkv_rope.arguments import (
    Places,
    Sizes,
    cache_places,
    heads_of_cache,
    new_places,
    sizes_of,
    supports,
)
from course_kernels.qkv_rope.k01_three_kernels import precision_for, rows_for, turn_and_store
from course_kernels.qkv_rope.problem import EPSILON

__all__ = ["qkv_rope", "qkv_rope_into_cache", "supports"]

# Pairs of a head in one program, by the rows of the multiply: it has 2 * PAIRS rows of the weights. With up to 16
# sequences an 8B model's 48 heads are 192 programs. More rows of x are more for each program to read from L2, so that
# there are fewer and larger ones.
PAIRS = {16: 16, 32: 32}

# Bytes of each row of weights and of x in a step, by those of a number. STAGES - 1 steps are on their way while one is
# worked on: 48 KB of weights for each program of 32 rows and 64 for one of 64, where an H200 delivers some 30 KB for a
# multiprocessor in the time of one latency. With half as many bytes g would come in pieces of 2 for each thread, which
# no asynchronous copy takes. float32 is split for its products, and has no registers for more.
STEP_BYTES = {2: 512, 4: 256}
STAGES = {False: 4, True: 3}  # for more than FEW_ROWS rows together
FEW_ROWS = 48
WARPS = 4

# What a program asks of L2 before the kernel before it ends, of each of its rows of weights: the first two steps.
AHEAD_BYTES = 1024


# --- on the device -----------------------------------------------------------


@triton.jit
def ask_ahead(weights, rows, first, W, BYTES: tl.constexpr):
    """Bring some bytes of some rows into L2, from number `first` of a row on, a line of 128 bytes at a time."""
    LINE: tl.constexpr = 128 * 8 // weights.dtype.element_ty.primitive_bitwidth
    n = tl.minimum(first + tl.arange(0, BYTES // 128) * LINE, W - 1)
    place = (weights + rows[:, None].to(tl.int64) * W + n[None, :]).to(tl.int64)
    tl.inline_asm_elementwise(
        "prefetch.global.L2 [$1]; mov.u32 $0, 0;", "=r,l", [place], dtype=tl.int32, is_pure=False, pack=1
    )


@triton.jit
def finish(
    acc, squares, head, pair, positions_ptr, cos_ptr, sin_ptr, Q, K, V, B, W, H, KV, P, N, epsilon,
    D: tl.constexpr, PAIRS: tl.constexpr, INTO_CACHE: tl.constexpr,
):  # fmt: skip
    """Scale the sums of all K, [ROWS, 2 * PAIRS], by the rows' 1 / rms, turn their two halves and store them."""
    acc *= tl.rsqrt(squares / W + epsilon)[:, None]
    halves = acc.reshape(acc.shape[0], 2, PAIRS).permute(0, 2, 1)
    a, b = tl.split(halves)  # [ROWS, PAIRS] each
    turn_and_store(a, b, head, pair, positions_ptr, cos_ptr, sin_ptr, Q, K, V, B, H, KV, P, N, D, INTO_CACHE)


@triton.jit
def fused_kernel(
    X, G, weights, positions_ptr, cos_ptr, sin_ptr, Q, K, V, parts, tickets,
    B, W, H, KV, P, N, epsilon,
    D: tl.constexpr, ROWS: tl.constexpr, PAIRS: tl.constexpr, STEP: tl.constexpr, SPLITS: tl.constexpr,
    AHEAD_BYTES: tl.constexpr, PRECISION: tl.constexpr, TURNED: tl.constexpr, INTO_CACHE: tl.constexpr,
    PDL: tl.constexpr,
):  # fmt: skip
    """Compute some pairs of one head of all sequences, over a part of the row.

    The last part to end answers for them.
    """
    tile, part = tl.program_id(0), tl.program_id(1)
    head, pair = tile // (D // 2 // PAIRS), tile % (D // 2 // PAIRS) * PAIRS + tl.arange(0, PAIRS)
    row, column = tl.arange(0, ROWS), tl.arange(0, 2 * PAIRS)
    # The first numbers of the pairs, then the second ones: D / 2 rows of the weights further down.
    output = head * D + tile % (D // 2 // PAIRS) * PAIRS + column % PAIRS + column // PAIRS * (D // 2)
    each = tl.cdiv(tl.cdiv(W, STEP), SPLITS) * STEP
    first = part * each
    last = tl.minimum(first + each, W)
    if PDL:
        gdc_launch_dependents()  # whoever comes next waits for the end of this kernel by itself
        ask_ahead(weights, output, first, W, AHEAD_BYTES)  # weights: no kernel before this one wrote them
        gdc_wait()
    acc = tl.zeros([2 * PAIRS, ROWS] if TURNED else [ROWS, 2 * PAIRS], tl.float32)
    squares = tl.zeros([ROWS, STEP], tl.float32)
    for start in tl.range(first, last, STEP):
        n = (start + tl.arange(0, STEP))[None, :]
        w = tl.load(weights + output[:, None].to(tl.int64) * W + n, mask=n < last, other=0.0)
        x = tl.load(X + row[:, None] * W + n, mask=(row < B)[:, None] & (n < last), other=0.0).to(tl.float32)
        g = tl.load(G + n, mask=n < last, other=0.0).to(tl.float32)
        squares += x * x
        h = (x * g).to(w.dtype)
        if TURNED:
            acc = tl.dot(w, h.T, acc, input_precision=PRECISION)
        else:
            acc = tl.dot(h, w.T, acc, input_precision=PRECISION)
    of_rows = tl.sum(squares, 1)
    if TURNED:
        acc = acc.T
    if SPLITS > 1:
        # A part is its sums, and behind them the squares of its rows.
        mine = parts + (tile.to(tl.int64) * SPLITS + part) * (ROWS * (2 * PAIRS + 1))
        places = row[:, None] * (2 * PAIRS) + column[None, :]
        tl.store(mine + places, acc)
        tl.store(mine + ROWS * 2 * PAIRS + row, of_rows)
        # All threads have stored before one of them takes the ticket, which orders what lies before and after it.
        tl.debug_barrier()
        ticket = tl.atomic_add(tickets + tile, 1, sem="acq_rel")
        if ticket == SPLITS - 1:
            acc = tl.zeros([ROWS, 2 * PAIRS], tl.float32)
            of_rows = tl.zeros([ROWS], tl.float32)
            begin = parts + tile.to(tl.int64) * SPLITS * (ROWS * (2 * PAIRS + 1))
            for number in tl.static_range(SPLITS):
                # Others wrote these: .cg looks in L2, where all multiprocessors see the same.
                that = begin + number * ROWS * (2 * PAIRS + 1)
                acc += tl.load(that + places, cache_modifier=".cg")
                of_rows += tl.load(that + ROWS * 2 * PAIRS + row, cache_modifier=".cg")
            finish(
                acc, of_rows, head, pair, positions_ptr, cos_ptr, sin_ptr, Q, K, V, B, W, H, KV, P, N, epsilon,
                D, PAIRS, INTO_CACHE,
            )  # fmt: skip
            tl.store(tickets + tile, 0)  # as the next launch wants it
    else:
        finish(
            acc, of_rows, head, pair, positions_ptr, cos_ptr, sin_ptr, Q, K, V, B, W, H, KV, P, N, epsilon,
            D, PAIRS, INTO_CACHE,
        )  # fmt: skip


# --- on the host -------------------------------------------------------------


def constants_of(
    element_bytes: int, B: int, D: int, pairs: int | None = None, turned: bool = False
) -> dict[str, int | str]:
    """Return what the kernel is compiled for, besides the parts and the places."""
    rows = rows_for(B)
    pairs = pairs or PAIRS[rows]
    # Turned, a product reads shared memory while the next step is asked for: the widest has no room for one more.
    stages = 2 if turned and pairs == 64 else STAGES[2 * pairs + rows > FEW_ROWS]
    return {
        "D": D,
        "ROWS": rows,
        "PAIRS": pairs,
        "STEP": STEP_BYTES[element_bytes] // element_bytes,
        "AHEAD_BYTES": AHEAD_BYTES,
        "PRECISION": precision_for(element_bytes),
        "TURNED": turned,
        "num_warps": WARPS,
        "num_stages": stages,
    }


@cache
def splits_for(device: torch.device, tiles: int, steps: int) -> int:
    """Into how many parts every row is cut: as many as give each multiprocessor a program, and no more than steps."""
    on_gpu = device.type == "cuda"
    multiprocessors = torch.cuda.get_device_properties(device).multi_processor_count if on_gpu else 1
    return max(1, min(triton.cdiv(multiprocessors, tiles), steps))


def tickets_for(heads: int, D: int) -> int:
    """Return how many tickets serve any call with so many heads, H + 2 KV, of D numbers."""
    return heads * D // 2 // min(PAIRS.values())


def qkv_rope(
    x: torch.Tensor,
    g: torch.Tensor,
    w_qkv: torch.Tensor,
    positions: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    *,
    kv_heads: int,
    eps: float = EPSILON,
    **how: Any,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the queries, keys and values of one new token for each sequence.

    Args:
        x, g, w_qkv, positions, cos, sin, kv_heads: see `sizes_of`. At a position of no table q and k are NaN.
        eps: added to the mean of squares.
        how: tickets, splits, pairs, turned, pdl: see `start`.
    Returns:
        q (B, H, D), k and v (B, KV, D), the same type; q and k turned. The same bits every time on one kind of card.
    Raises:
        TypeError, ValueError: see `sizes_of` and `start`.
    """
    sizes = sizes_of(x, g, w_qkv, positions, cos, sin, kv_heads)
    places = new_places(x, sizes)
    start((x, g, w_qkv, positions, cos, sin), sizes, places, eps, **how)
    return places.q, places.k, places.v


def qkv_rope_into_cache(
    x: torch.Tensor,
    g: torch.Tensor,
    w_qkv: torch.Tensor,
    positions: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    *,
    eps: float = EPSILON,
    **how: Any,
) -> torch.Tensor:
    """Return the queries of one new token for each sequence; its keys and values go into the caches at its position.

    Args:
        k_cache, v_cache: (B, KV, N, D), the type of x, contiguous. Where a position is none of 0 to N - 1, or none of
            the tables', nothing is written. The others: as `qkv_rope`.
    Returns:
        q (B, H, D), the same type, turned.
    Raises:
        TypeError, ValueError: see `sizes_of`, `cache_places` and `start`.
    """
    sizes = sizes_of(x, g, w_qkv, positions, cos, sin, heads_of_cache(k_cache))
    places = cache_places(x, k_cache, v_cache, sizes)
    start((x, g, w_qkv, positions, cos, sin), sizes, places, eps, **how)
    return places.q


def start(
    inputs: tuple[torch.Tensor, ...],
    s: Sizes,
    places: Places,
    eps: float,
    *,
    tickets: torch.Tensor | None = None,
    splits: int | None = None,
    pairs: int | None = None,
    turned: bool = False,
    pdl: bool = False,
) -> None:
    """Start the kernel.

    Args:
        inputs, s, places: of a call that was looked at.
        eps: added to the mean of squares.
        tickets: (T,) int32, at least `tickets_for(H + 2 KV, D)`, all zero, and zero again when the call is done: calls
            that come one after the other may share them. Without them a call whose rows are cut fills some of its own.
        splits: into how many parts a row is cut, at least 1; without it, what suits the card and the shapes.
        pairs: of a head in one program, 16, 32 or 64, no more than D/2; without it, what suits B.
        turned: multiply the weights by the rows, and not the rows by the weights: from 32 pairs on that is a product
            of a warpgroup on Hopper, which reads the weights where they lie, and takes room for a step more.
        pdl: begin while the kernel before this one on the stream ends (Hopper and later): the weights are asked for
            ahead, and must not be what that kernel writes.
    Raises:
        TypeError, ValueError: tickets that are too few, of another type, or elsewhere; pairs that do not cut a head; no
            card on which a kernel can begin early.
    """
    x, _, w_qkv, positions, *_ = inputs
    check_early(pdl, x.device)
    if pairs is not None and (pairs not in (16, 32, 64) or pairs > s.D // 2):
        raise ValueError(f"pairs: expected 16, 32 or 64, at most D/2={s.D // 2}, got {pairs}")
    constants = constants_of(x.element_size(), s.B, s.D, pairs, turned)
    columns = 2 * int(constants["PAIRS"])
    tiles = w_qkv.shape[0] // columns
    splits = splits or splits_for(x.device, tiles, triton.cdiv(s.W, int(constants["STEP"])))
    if tickets is not None:
        check_tensor("tickets", tickets, "T", {}, dtypes=(torch.int32,), device=x.device)
        if tickets.numel() < tiles:
            raise ValueError(f"tickets: expected (T,) with T >= {tiles}, got {tuple(tickets.shape)}")
    parts = x  # nobody writes where nothing is cut
    if splits > 1:
        if tickets is None:
            tickets = torch.zeros(tiles, dtype=torch.int32, device=x.device)
        of_part = int(constants["ROWS"]) * (columns + 1)
        parts = torch.empty(tiles * splits * of_part, dtype=torch.float32, device=x.device)
    fused_kernel[(tiles, splits)](
        *inputs, places.q, places.k, places.v, parts, positions if tickets is None else tickets,
        s.B, s.W, s.H, s.KV, s.P, places.N, eps,
        **constants, SPLITS=splits, INTO_CACHE=places.into_cache, PDL=pdl, launch_pdl=pdl,
    )  # fmt: skip
