"""Norm, projection and rotary embedding, kernel 1: three kernels in a row.

Contract  problem.py
Idea      one multiply with merged weights, and not three; before it a kernel that normalises, behind it one that turns
          the heads and puts each where it belongs. It is how served models do it
Cost      the weights are read once; h and p go to memory and come back, B * (W + (H + 2 KV) * D) numbers each way
Limits    each kernel waits for the end of the one before it: three launches, and between them the card runs empty
Next      k02_fused
Source    Su et al. 2021, arXiv:2104.09864, section 3.4.2; the merged weights as vLLM's QKVParallelLinear has them
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import torch
import triton
import triton.language as tl

from course_kernels.problem import BYTES_OF
from course_kernels.qkv_rope.arguments import (
    Places,
    Sizes,
    cache_places,
    heads_of_cache,
    new_places,
    sizes_of,
    supports,
)
from course_kernels.qkv_rope.problem import EPSILON

__all__ = ["qkv_rope", "qkv_rope_into_cache", "supports"]

BLOCK = 1024  # numbers of a step of the norm
LEAST_ROWS = 16  # of a multiply on tensor cores

# Rows of the weights of one program, and bytes of its step: 16 KB, of which three are on their way while one is worked
# on. 6144 rows, those of an 8B model, are 192 programs: all of them fit on the card at once and share what it brings.
COLUMNS = 32
STEP_BYTES = 16 * 1024
STAGES = 4
WARPS = 4


# --- on the device -----------------------------------------------------------


@triton.jit
def norm_kernel(X, G, out, W, epsilon, BLOCK: tl.constexpr):
    """Normalise one row of x."""
    row = tl.program_id(0) * W
    squares = tl.zeros([BLOCK], tl.float32)
    for first in tl.range(0, W, BLOCK):
        n = first + tl.arange(0, BLOCK)
        x = tl.load(X + row + n, mask=n < W, other=0.0).to(tl.float32)
        squares += x * x
    scale = tl.rsqrt(tl.sum(squares) / W + epsilon)
    for first in tl.range(0, W, BLOCK):
        n = first + tl.arange(0, BLOCK)
        x = tl.load(X + row + n, mask=n < W, other=0.0).to(tl.float32)
        g = tl.load(G + n, mask=n < W, other=0.0).to(tl.float32)
        tl.store(out + row + n, (x * scale * g).to(out.dtype.element_ty), mask=n < W)


@triton.jit
def product_kernel(
    A, weights, out, B, W, outputs,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """All B rows of a times some rows of the weights."""
    row, column = tl.arange(0, ROWS), tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    rows, columns = (row < B)[:, None], (column < outputs)[:, None]
    acc = tl.zeros([ROWS, COLUMNS], tl.float32)
    for first in tl.range(0, W, STEP):
        n = (first + tl.arange(0, STEP))[None, :]
        w = tl.load(weights + column[:, None].to(tl.int64) * W + n, mask=columns & (n < W), other=0.0)
        a = tl.load(A + row[:, None] * W + n, mask=rows & (n < W), other=0.0)
        acc = tl.dot(a, w.T, acc, input_precision=PRECISION)
    places = row[:, None] * outputs + column[None, :]
    tl.store(out + places, acc.to(out.dtype.element_ty), mask=rows & (column < outputs)[None, :])


@triton.jit
def store_pairs(out, begin, pair, first, second, there, D: tl.constexpr):
    """Both numbers of some pairs of a head whose D numbers begin at `begin`, for every row that is there."""
    at = begin[:, None] + pair[None, :]
    tl.store(out + at, first.to(out.dtype.element_ty), mask=there[:, None])
    tl.store(out + at + D // 2, second.to(out.dtype.element_ty), mask=there[:, None])


@triton.jit
def turn_and_store(
    a, b, head, pair, positions_ptr, cos_ptr, sin_ptr, Q, K, V, B, H, KV, P, N,
    D: tl.constexpr, INTO_CACHE: tl.constexpr,
):  # fmt: skip
    """Turn pairs (a, b) of one head of all sequences, [ROWS, PAIRS] each, and store them where they belong."""
    row = tl.arange(0, a.shape[0])
    there = row < B
    position = tl.load(positions_ptr + row, mask=there, other=0)
    # The host does not look at the positions: one that no table has answers NaN and leaves the cache alone.
    known = there & (position >= 0) & (position < P)
    is_value = head >= H + KV
    angle = position[:, None] * (D // 2) + pair[None, :]
    c = tl.load(cos_ptr + angle, mask=known[:, None], other=float("nan"))
    s = tl.load(sin_ptr + angle, mask=known[:, None], other=float("nan"))
    first = tl.where(is_value, a, a * c - b * s)
    second = tl.where(is_value, b, b * c + a * s)
    if head < H:
        store_pairs(Q, (row * H + head) * D, pair, first, second, there, D)
    else:
        place = (row * KV + (head - H) % KV).to(tl.int64) * N  # times D it passes 2**31
        if INTO_CACHE:
            place += position
            there = known & (position < N)
        if is_value:
            store_pairs(V, place * D, pair, first, second, there, D)
        else:
            store_pairs(K, place * D, pair, first, second, there, D)


@triton.jit
def rope_kernel(
    products, positions_ptr, cos_ptr, sin_ptr, Q, K, V, B, H, KV, P, N,
    ROWS: tl.constexpr, D: tl.constexpr, INTO_CACHE: tl.constexpr,
):  # fmt: skip
    """One head of all sequences."""
    head, pair = tl.program_id(0), tl.arange(0, D // 2)
    row = tl.arange(0, ROWS)[:, None]
    at = (row * tl.num_programs(0) + head) * D + pair[None, :]
    a = tl.load(products + at, mask=row < B, other=0.0).to(tl.float32)
    b = tl.load(products + at + D // 2, mask=row < B, other=0.0).to(tl.float32)
    turn_and_store(a, b, head, pair, positions_ptr, cos_ptr, sin_ptr, Q, K, V, B, H, KV, P, N, D, INTO_CACHE)


# --- on the host -------------------------------------------------------------


def rows_for(B: int) -> int:
    """Return rows of a multiply."""
    return max(LEAST_ROWS, triton.next_power_of_2(B))


def precision_for(element_bytes: int) -> str:
    """Plain TF32 would keep 11 bits of a float32; three products of split numbers keep 21."""
    return "tf32x3" if element_bytes == BYTES_OF["float32"] else "tf32"


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
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the queries, keys and values of one new token for each sequence.

    Args:
        x, g, w_qkv, positions, cos, sin, kv_heads: see `sizes_of`. At a position of no table q and k are NaN.
        eps: added to the mean of squares.
    Returns:
        q (B, H, D), k and v (B, KV, D), the same type; q and k turned.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    sizes = sizes_of(x, g, w_qkv, positions, cos, sin, kv_heads)
    places = new_places(x, sizes)
    _start((x, g, w_qkv, positions, cos, sin), sizes, places, eps)
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
) -> torch.Tensor:
    """Return the queries of one new token for each sequence; its keys and values go into the caches at its position.

    Args:
        k_cache, v_cache: (B, KV, N, D), the type of x, contiguous. Where a position is none of 0 to N - 1, or none of
            the tables', nothing is written. The others: as `qkv_rope`.
    Returns:
        q (B, H, D), the same type, turned.
    Raises:
        TypeError, ValueError: see `sizes_of` and `cache_places`.
    """
    sizes = sizes_of(x, g, w_qkv, positions, cos, sin, heads_of_cache(k_cache))
    places = cache_places(x, k_cache, v_cache, sizes)
    _start((x, g, w_qkv, positions, cos, sin), sizes, places, eps)
    return places.q


def _start(inputs: tuple[torch.Tensor, ...], sizes: Sizes, places: Places, eps: float) -> None:
    x, g, w_qkv, *tables = inputs
    B, W, H, KV, D, P = sizes
    rows, outputs, element_bytes = rows_for(B), w_qkv.shape[0], x.element_size()
    h = torch.empty_like(x)
    products = torch.empty((B, outputs), dtype=x.dtype, device=x.device)
    norm_kernel[(B,)](x, g, h, W, eps, BLOCK=BLOCK, num_warps=WARPS)
    product_kernel[(triton.cdiv(outputs, COLUMNS),)](
        h, w_qkv, products, B, W, outputs,
        ROWS=rows, COLUMNS=COLUMNS, STEP=STEP_BYTES // (COLUMNS * element_bytes),
        PRECISION=precision_for(element_bytes), num_warps=WARPS, num_stages=STAGES,
    )  # fmt: skip
    rope_kernel[(H + 2 * KV,)](
        products, *tables, places.q, places.k, places.v, B, H, KV, P, places.N,
        ROWS=rows, D=D, INTO_CACHE=places.into_cache, num_warps=WARPS,
    )  # fmt: skip
