"""Sampling, kernel 2: top-k and top-p without a sort, by two searches for the smallest logit that stays.

Contract  problem.py
Idea      what stays is what is not below a threshold, and the bits of a logit, turned so that they rise with it, are a
          whole number: a search finds two bits of the threshold in one pass, by what is counted above three pivots. For
          top-k a token counts as one, for top-p as its weight. Then the noise decides among what stays
Against   k01_gumbel, which leaves nothing out, and shares a row out; a library sorts the row, and sums it up
Cost      the logits come from memory once. A search takes 8 passes over 16-bit logits, 16 over float32, and the row
          lies in L2 by then, and in part in L1. Only blocks in which something stays are given noise
Limits    one program works on a row: with few rows most multiprocessors have nothing to do. The threshold is exact,
          equals stay together; a sum of weights is one of float32, the same every time
Source    Holtzman et al. 2020, arXiv:1904.09751 (top-p); Fan, Lewis & Dauphin 2018, arXiv:1805.04833 (top-k); Alabi et
          al. 2012, doi:10.1145/2133803.2345676 (selection by the digits of a float)
"""

from __future__ import annotations

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.problem import Workload
from course_kernels.sampling.arguments import sizes_of
from course_kernels.sampling.k01_gumbel import first_best, noise, scale_of_row

# Logits that a program looks at together: 16 for each thread, and three sums of as many.
BLOCK = 8192
WARPS = 16

# The least that a sum of weights must reach: the largest logit has a weight of 1, so one stays however small top_p is.
LEAST_SUM = tl.constexpr(2.0**-100)


# --- on the device -----------------------------------------------------------


@triton.jit
def value_of(key, TYPE: tl.constexpr):
    """Return the logit whose turned bits are `key`, a uint32, as float32: of 16 bits in the lower half, or of 32.

    Keys below that of -inf belong to NaN; as a pivot they stand for -inf, which nothing lies below.
    """
    LEAST: tl.constexpr = 0x007FFFFF if tl.float32 == TYPE else 0x03FF if tl.float16 == TYPE else 0x007F
    key = tl.maximum(key, LEAST)
    if tl.float32 == TYPE:
        bits = tl.where(key >= 0x80000000, key ^ 0x80000000, key ^ 0xFFFFFFFF)
    else:
        bits = tl.where(key >= 0x8000, key ^ 0x8000, key ^ 0xFFFF)
        if tl.float16 == TYPE:
            return bits.to(tl.uint16).to(tl.float16, bitcast=True).to(tl.float32)
        bits = bits << 16
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def logits_at(X, start, V, BLOCK: tl.constexpr):
    """BLOCK logits of a row; what is no number, and what lies past the end, is -inf."""
    token = start + tl.arange(0, BLOCK)
    x = tl.load(X + token, mask=token < V, other=-float("inf")).to(tl.float32)
    return tl.where(x == x, x, -float("inf"))


@triton.jit
def weight_of(x, scale, top):
    """exp of the distance to the largest, after the temperature; equal infinities are no distance."""
    return tl.where(x == top, 1.0, tl.math.exp2((x - top) * scale))


@triton.jit
def amount_of(X, start, V, scale, top, least, WEIGHED: tl.constexpr, BLOCK: tl.constexpr):
    """Return a block of a row: its logits, and what each counts.

    One or its weight, nothing below `least` and past the end.
    """
    x = logits_at(X, start, V, BLOCK)
    counts = (x >= least) & (start + tl.arange(0, BLOCK) < V)
    amount = weight_of(x, scale, top) if WEIGHED else tl.full([BLOCK], 1.0, tl.float32)
    return x, tl.where(counts, amount, 0.0)


@triton.jit
def largest_threshold(
    X, V, scale, top, least, wanted, WEIGHED: tl.constexpr, BLOCK: tl.constexpr, TYPE: tl.constexpr
):
    """Return the largest logit such that what is not below it amounts to at least `wanted`."""
    BITS: tl.constexpr = 32 if tl.float32 == TYPE else 16
    key = tl.full([], 0, tl.uint32)  # the bits found so far, zeros behind them
    unit = tl.full([], 1 << (BITS - 2), tl.uint32)
    for _ in tl.range(BITS // 2):
        low, middle = value_of(key + unit, TYPE), value_of(key + 2 * unit, TYPE)
        high = value_of(key + 3 * unit, TYPE)
        above_low = tl.zeros([BLOCK], tl.float32)
        above_middle, above_high = above_low, above_low
        for start in tl.range(0, V, BLOCK):
            x, amount = amount_of(X, start, V, scale, top, least, WEIGHED, BLOCK)
            # A pivot beyond +inf is NaN, and has nothing above it.
            above_low += tl.where(x >= low, amount, 0.0)
            above_middle += tl.where(x >= middle, amount, 0.0)
            above_high += tl.where(x >= high, amount, 0.0)
        # Sums in one order fall from pivot to pivot, rounded or not.
        key += (tl.sum(above_low, 0) >= wanted).to(tl.uint32) * unit
        key += (tl.sum(above_middle, 0) >= wanted).to(tl.uint32) * unit
        key += (tl.sum(above_high, 0) >= wanted).to(tl.uint32) * unit
        unit = unit >> 2
    return value_of(key, TYPE)


@triton.jit
def threshold_kernel(
    X, temperature_ptr, seeds_ptr, steps_ptr, top_k_ptr, top_p_ptr, tokens_ptr, V,
    HAS_K: tl.constexpr, HAS_P: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One program draws the token of one row."""
    TYPE: tl.constexpr = X.dtype.element_ty
    row = tl.program_id(0).to(tl.int64)
    X += row * V
    scale = scale_of_row(tl.load(temperature_ptr + row))
    seed, step = tl.load(seeds_ptr + row), tl.load(steps_ptr + row)
    largest = tl.full([BLOCK], -float("inf"), tl.float32)
    for start in tl.range(0, V, BLOCK):
        largest = tl.maximum(largest, logits_at(X, start, V, BLOCK))
    top = tl.max(largest, 0)
    least = tl.where(
        scale > 0.0, -float("inf"), top
    )  # at temperature 0 the largest stay, and no noise decides
    if HAS_K:
        k = tl.load(top_k_ptr + row)
        if (scale > 0.0) & (k > 0) & (k < V):
            least = largest_threshold(X, V, scale, top, least, k.to(tl.float32), False, BLOCK, TYPE)
    if HAS_P:
        p = tl.load(top_p_ptr + row)
        if (scale > 0.0) & (p < 1.0):
            whole = tl.zeros([BLOCK], tl.float32)
            for start in tl.range(0, V, BLOCK):
                whole += amount_of(X, start, V, scale, top, least, True, BLOCK)[1]
            wanted = tl.maximum(p * tl.sum(whole, 0), LEAST_SUM)
            least = largest_threshold(X, V, scale, top, least, wanted, True, BLOCK, TYPE)
    best, best_token = tl.full([BLOCK], -float("inf"), tl.float32), tl.arange(0, BLOCK)
    for start in tl.range(0, V, BLOCK):
        x = logits_at(X, start, V, BLOCK)
        stays = (x >= least) & (x > -float("inf"))
        if tl.max(stays.to(tl.int32), 0) > 0:
            score = tl.where(x == top, 0.0, (x - top) * scale)
            if scale > 0.0:
                score += noise(seed, step, start, BLOCK)
            score = tl.where(stays, score, -float("inf"))
            token = start + tl.arange(0, BLOCK)
            better = score > best
            best, best_token = tl.where(better, score, best), tl.where(better, token, best_token)
    _, token = first_best(best, best_token)
    tl.store(tokens_ptr + row, token.to(tl.int64))


# --- on the host -------------------------------------------------------------


def supports(w: Workload) -> bool:
    """Return whether this kernel takes a workload: any."""
    return True


def sampling(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    seeds: torch.Tensor,
    steps: torch.Tensor,
    top_k: torch.Tensor | None = None,
    top_p: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return a token for every row, drawn by its temperature from what top-k and then top-p leave.

    Args:
        logits: (B, V) float32, bfloat16 or float16, contiguous.
        temperature: (B,) float32, on the device; 0: the largest logit, the first of equals.
        seeds: (B,) int64, on the device.
        steps: (B,) int32, on the device: another one for every token of a sequence.
        top_k: (B,) int32, on the device, or None; 0, or V and more: all stay.
        top_p: (B,) float32, on the device, or None; 1 and more: all stay.
    Returns:
        (B,) int64, each from 0 to V - 1; the same for the same row, seed and step. One kernel, no scratch memory.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    B, V = sizes_of(logits, temperature, seeds, steps, top_k, top_p)
    tokens = torch.empty(B, dtype=torch.int64, device=logits.device)
    threshold_kernel[(B,)](
        logits, temperature, seeds, steps, top_k, top_p, tokens, V,
        HAS_K=top_k is not None, HAS_P=top_p is not None, BLOCK=min(BLOCK, max(triton.next_power_of_2(V), 128)),
        num_warps=WARPS,
    )  # fmt: skip
    return tokens
