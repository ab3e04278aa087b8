"""Routing of tokens: scores, the best experts of each and their weights, and the choices sorted by expert.

A *choice* is one token's j-th expert; its number is t * TOP_K + j. Nothing here asks the device for a number: all
shapes follow from T, TOP_K and E, and how many choices an expert has stays on the device.
"""

from __future__ import annotations

from typing import NamedTuple

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

# Tokens of a program of the router: the fewest rows that the tensor cores multiply. More would leave multiprocessors
# without a program already at 2048 tokens.
BLOCK_T = 16
# Numbers of the router in one tile, 32 KB: with four on their way a program has as much under way as one
# multiprocessor can wait for.
ROUTER_TILE, ROUTER_STAGES = 128 * 128, 4
LEAST = 16  # numbers along each side of a multiply on tensor cores
LONGEST_BLOCK_D = 256

# Choices that a program of the sort looks at in one step: 16 numbers for each of 256 threads.
CHOICES, SORT_WARPS = 4096, 8

CHOSEN = tl.constexpr(-(2**31))  # below the key of every number


class Routed(NamedTuple):
    """Result of routing: where every choice goes.

    Attributes:
        weights: (T, TOP_K) float32.
        order: (T * TOP_K,) int32: the choices, sorted by expert, those of one expert in their order.
        place: (T * TOP_K,) int32: where in `order` a choice is.
        starts: (E + 1,) int32: the choices of expert e are order[starts[e] : starts[e + 1]].
    """

    weights: torch.Tensor
    order: torch.Tensor
    place: torch.Tensor
    starts: torch.Tensor


# --- on the device -----------------------------------------------------------


@triton.jit
def key_of(score):
    """Return whole numbers in the order of the scores: zeros of either sign are equal, NaN is the largest."""
    bits = tl.where(score == 0, 0.0, score).to(tl.int32, bitcast=True)
    return tl.where(score == score, bits ^ ((bits >> 31) & 0x7FFFFFFF), 0x7FFFFFFF)


# region router
@triton.jit
def router_kernel(
    X, R, who_ptr, weights_ptr, T, D, E,
    TOP_K: tl.constexpr, K_PAD: tl.constexpr, E_PAD: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """BLOCK_T tokens: all their scores, the best TOP_K one after the other, and a softmax over those."""
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    e = tl.arange(0, E_PAD)
    scores = tl.zeros([BLOCK_T, E_PAD], tl.float32)
    for step in tl.range(0, tl.cdiv(D, BLOCK_D)):
        d = step * BLOCK_D + tl.arange(0, BLOCK_D)
        x = tl.load(X + t[:, None].to(tl.int64) * D + d, mask=(t < T)[:, None] & (d < D), other=0.0)
        r = tl.load(R + e[:, None].to(tl.int64) * D + d, mask=(e < E)[:, None] & (d < D), other=0.0)
        scores = tl.dot(x, r.T, scores)

    keys = tl.where(e < E, key_of(scores), CHOSEN)
    k = tl.arange(0, K_PAD)
    best = tl.full([BLOCK_T, K_PAD], -float("inf"), tl.float32)
    who = tl.zeros([BLOCK_T, K_PAD], tl.int32)
    for j in tl.range(0, TOP_K):
        most = tl.max(keys, axis=1)
        first = tl.min(tl.where(keys == most[:, None], e, E_PAD), axis=1)  # of equals the lower one
        it = e == first[:, None]
        score = tl.sum(tl.where(it, scores, 0.0), axis=1)
        best = tl.where(k == j, score[:, None], best)
        who = tl.where(k == j, first[:, None], who)
        keys = tl.where(it, CHOSEN, keys)
    weights = tl.where(k < TOP_K, tl.exp(best - tl.max(best, axis=1)[:, None]), 0.0)
    weights = weights / tl.sum(weights, axis=1)[:, None]
    at = t[:, None] * TOP_K + k
    there = (t < T)[:, None] & (k < TOP_K)
    tl.store(who_ptr + at, who, mask=there)
    tl.store(weights_ptr + at, weights, mask=there)


# endregion


# region sort
@triton.jit
def sort_kernel(who_ptr, order_ptr, place_ptr, starts_ptr, CHOICES, E, BLOCK: tl.constexpr):
    """One expert: how many choices go to lower ones, which is where its own begin; then its own, in their order.

    Every program reads all choices, and no two have anything to tell each other: no atomics, nothing set to zero
    before, and the same order every time.
    """
    expert = tl.program_id(0)
    lower = tl.zeros([BLOCK], tl.int32)
    for begin in tl.range(0, CHOICES, BLOCK):
        choice = begin + tl.arange(0, BLOCK)
        who = tl.load(who_ptr + choice, mask=choice < CHOICES, other=E)
        lower += (who < expert).to(tl.int32)
    start = tl.sum(lower, axis=0)
    tl.store(starts_ptr + expert, start)
    tl.store(starts_ptr + E, CHOICES)
    for begin in tl.range(0, CHOICES, BLOCK):
        choice = begin + tl.arange(0, BLOCK)
        mine = tl.load(who_ptr + choice, mask=choice < CHOICES, other=E) == expert
        place = start + tl.cumsum(mine.to(tl.int32), axis=0) - 1
        tl.store(order_ptr + place, choice, mask=mine)
        tl.store(place_ptr + choice, place, mask=mine)
        start += tl.sum(mine.to(tl.int32), axis=0)


# endregion


# region tile
@triton.jit
def tile_of(program, starts_ptr, E, ACROSS, E_PAD: tl.constexpr, BLOCK_M: tl.constexpr):
    """Return whose tile a program has: expert, its first row, the end of the expert's rows, tile of columns.

    The tiles of an expert follow each other, first down its rows and then across its ACROSS columns, so that what runs
    together reads the same weights. A program past the last tile finds expert E. The rows of an expert are made up to
    whole tiles by this count alone: in memory nothing lies between two experts.
    """
    e = tl.arange(0, E_PAD)
    starts = tl.load(starts_ptr + e, mask=e < E, other=0)
    rows = tl.load(starts_ptr + e + 1, mask=e < E, other=0) - starts
    ends = tl.cumsum(tl.cdiv(rows, BLOCK_M), axis=0) * ACROSS
    expert = tl.sum(((ends <= program) & (e < E)).to(tl.int32), axis=0)
    before = tl.max(tl.where((ends <= program) & (e < E), ends, 0), axis=0)
    begin = tl.sum(tl.where(e == expert, starts, 0), axis=0)
    mine = tl.sum(tl.where(e == expert, rows, 0), axis=0)
    high = tl.maximum(tl.cdiv(mine, BLOCK_M), 1)
    return expert, begin + (program - before) % high * BLOCK_M, begin + mine, (program - before) // high


# endregion


# --- on the host -------------------------------------------------------------


def padded(size: int) -> int:
    """Return a size made up to a power of two that tensor cores take."""
    return max(LEAST, triton.next_power_of_2(size))


def route(x: torch.Tensor, router: torch.Tensor, top_k: int) -> Routed:
    """Return where every choice goes; x (T, D) and router (E, D) as `sizes_of` has checked them."""
    (T, D), E, device = x.shape, router.shape[0], x.device
    who = torch.empty((T, top_k), dtype=torch.int32, device=device)
    weights = torch.empty((T, top_k), dtype=torch.float32, device=device)
    block_d = max(LEAST, min(ROUTER_TILE // padded(E), LONGEST_BLOCK_D))
    router_kernel[(triton.cdiv(T, BLOCK_T),)](
        x, router, who, weights, T, D, E,
        TOP_K=top_k, K_PAD=triton.next_power_of_2(top_k), E_PAD=padded(E), BLOCK_T=BLOCK_T, BLOCK_D=block_d,
        num_warps=4, num_stages=ROUTER_STAGES,
    )  # fmt: skip
    order, place = (torch.empty(T * top_k, dtype=torch.int32, device=device) for _ in range(2))
    starts = torch.empty(E + 1, dtype=torch.int32, device=device)
    block = min(CHOICES, max(128, triton.next_power_of_2(T * top_k)))
    sort_kernel[(E,)](who, order, place, starts, T * top_k, E, BLOCK=block, num_warps=SORT_WARPS)
    return Routed(weights, order, place, starts)
