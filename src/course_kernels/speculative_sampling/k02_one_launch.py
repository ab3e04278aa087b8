"""Speculative sampling, kernel 2: one program for each sequence decides how far it got, and draws what comes next.

Contract  problem.py
Idea      whoever has found the first draft that does not pass is the one to draw from the row that is left over there:
          nobody else has to know, the host least of all
Against   k01_in_torch, some thirty launches and a trip to the host
Cost      one launch. The numbers of all K drafts are asked for at once. Then the two rows pass by once, and of each
          block only its sum is kept: the token lies in one of them, and that block alone is read again
Limits    one program works on a sequence: with few of them most multiprocessors have nothing to do
Next      share a row out among several programs, as `sampling/k01_gumbel` does; or leave the softmax out, and take
          logits with the sum of their exponentials
Source    Leviathan, Kalman & Matias 2023, arXiv:2211.17192, algorithm 1; Chen et al. 2023, arXiv:2302.01318;
          FlashInfer, include/flashinfer/sampling.cuh, which also has a thread block for each sequence
"""

from __future__ import annotations

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.problem import Workload
from course_kernels.speculative_sampling.arguments import sizes_of

# Numbers of a row that a program looks at together: sixteen for each thread of each of two rows, all on their way at
# once. A longer block would leave fewer sums, and more to read again.
BLOCK = 8192
WARPS = 16

# Blocks of two rows that a program holds: one is added up, the others are on their way. Each of these has 64 KiB of
# shared memory.
AHEAD = tl.constexpr(3)


# --- on the device -----------------------------------------------------------


@triton.jit
def shares(X, start, V, wanted, BLOCK: tl.constexpr):
    """Load a block of probabilities; zero for what is none, and everywhere where the row is not `wanted`, nor read."""
    token = start + tl.arange(0, BLOCK)
    x = tl.load(X + token, mask=(token < V) & wanted, other=0.0)
    return tl.where(x > 0.0, x, 0.0)


@triton.jit
def weights(P, Q, start, V, refused, BLOCK: tl.constexpr):
    """Return what is left of a block of P when min(P, Q) is taken off; all of P where no draft was refused."""
    return tl.maximum(shares(P, start, V, True, BLOCK) - shares(Q, start, V, refused, BLOCK), 0.0)


@triton.jit
def sums_of(P, Q, V, refused, BLOCK: tl.constexpr, BLOCKS: tl.constexpr):
    """Return the sum of each block of a row: [BLOCKS]."""
    block = tl.arange(0, BLOCKS)
    sums = tl.zeros([BLOCKS], tl.float32)
    for start in tl.range(0, V, BLOCK, num_stages=AHEAD):
        sums = tl.where(block == start // BLOCK, tl.sum(weights(P, Q, start, V, refused, BLOCK), 0), sums)
    return sums


@triton.jit
def first_past(amounts, before, goal, SIZE: tl.constexpr):
    """Return the first place at which the running sum is above the goal, and the sum ahead of it.

    Sums of another order may end a rounding below it: then it is the last place with an amount.
    """
    place = tl.arange(0, SIZE)
    there = amounts > 0.0
    sums = before + tl.cumsum(amounts, 0)
    last = tl.max(tl.where(there, place, 0), 0)
    found = tl.minimum(tl.min(tl.where(there & (sums > goal), place, SIZE), 0), last)
    # Not `sums` of that place less its amount: to take off what was added is one rounding more.
    return found, tl.max(tl.where(place < found, sums, before), 0)


@triton.jit
def draw(P, Q, V, refused, uniform, BLOCK: tl.constexpr, BLOCKS: tl.constexpr):
    """Return a token from what is left over, by its running sum."""
    sums = sums_of(P, Q, V, refused, BLOCK, BLOCKS)
    less = refused & (tl.sum(sums, 0) > 0.0)
    if refused & (tl.sum(sums, 0) == 0.0):  # rounding alone can leave nothing
        sums = sums_of(P, Q, V, less, BLOCK, BLOCKS)
    goal = uniform * tl.sum(sums, 0)
    block, before = first_past(sums, 0.0, goal, BLOCKS)
    token, _ = first_past(weights(P, Q, block * BLOCK, V, less, BLOCK), before, goal, BLOCK)
    return block * BLOCK + token


@triton.jit
def first_largest(X, V, BLOCK: tl.constexpr):
    """Return where a row has its largest number, the first of equals; 0 where all is NaN or -inf."""
    token = tl.arange(0, BLOCK)
    best, at = tl.full([BLOCK], -float("inf"), tl.float32), tl.zeros([BLOCK], tl.int32)
    for start in tl.range(0, V, BLOCK, num_stages=AHEAD):
        x = tl.load(X + start + token, mask=start + token < V, other=-float("inf"))
        better = x > best  # a NaN is above nothing
        best, at = tl.where(better, x, best), tl.where(better, start + token, at)
    return tl.min(tl.where(best == tl.max(best, 0), at, 2**31 - 1), 0)


@triton.jit
def speculative_sampling_kernel(
    target, draft, drafted, temperature, uniforms, tokens, accepted, V,
    K: tl.constexpr, PLACES: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """One program for each sequence."""
    b = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, PLACES)
    is_draft = place < K
    x = tl.load(drafted + b * K + place, mask=is_draft, other=-1)
    P, Q = target + b * (K + 1) * V, draft + b * K * V
    if tl.load(temperature + b) > 0.0:
        there = (x >= 0) & (x < V)  # where not, nothing is read, and zero is not below zero
        number = place.to(tl.int64) * V + x
        p = tl.load(P + number, mask=there, other=0.0)
        q = tl.load(Q + number, mask=there, other=0.0)
        u = tl.load(uniforms + b * (K + 1) + place, mask=is_draft, other=0.0)
        # In float64 the product has all its digits: the edge is where the contract has it.
        passes = u.to(tl.float64) * tl.where(q > 0.0, q, 0.0).to(tl.float64) < p
        a = tl.min(tl.where(passes, K, place), 0).to(tl.int64)
        at = tl.minimum(a, K - 1)
        refused = (a < K) & (tl.max(tl.where((place == at) & there, 1, 0), 0) > 0)
        y = draw(P + a * V, Q + at * V, V, refused, tl.load(uniforms + b * (K + 1) + K), BLOCK, BLOCKS)
    else:
        a = tl.full((), 0, tl.int64)
        y = first_largest(P, V, BLOCK)
        while (a < K) & (tl.max(tl.where((place == a) & (x == y), 1, 0), 0) > 0):
            a += 1
            y = first_largest(P + a * V, V, BLOCK)
    found = tl.where(place < a, x, tl.where(place == a, y, -1))
    tl.store(tokens + b * (K + 1) + place, found, mask=place <= K)
    tl.store(accepted + b, a.to(tl.int32))


# --- on the host -------------------------------------------------------------


def supports(w: Workload) -> bool:
    """Return whether this kernel takes a workload: any."""
    return True


def speculative_sampling(
    target: torch.Tensor,
    draft: torch.Tensor,
    drafted: torch.Tensor,
    temperature: torch.Tensor,
    uniforms: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the tokens of one verification, and how many of them were drafted. One kernel, no scratch memory.

    Args:
        target: (B, K + 1, V) float32, contiguous: probabilities, or any numbers where the temperature is 0.
        draft: (B, K, V) float32, contiguous: probabilities.
        drafted: (B, K) int32, each drawn from its row of `draft`; -1 ends a draft that is shorter.
        temperature: (B,) float32, on the device; 0: accept while a draft is the largest of the target's.
        uniforms: (B, K + 1) float32, from 0 to below 1, independent.
    Returns:
        tokens (B, K + 1) int32, -1 behind the last, and accepted (B,) int32.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    B, K, V = sizes_of(target, draft, drafted, temperature, uniforms)
    tokens = torch.empty((B, K + 1), dtype=torch.int32, device=draft.device)
    accepted = torch.empty(B, dtype=torch.int32, device=draft.device)
    block = min(BLOCK, max(triton.next_power_of_2(V), 128))
    speculative_sampling_kernel[(B,)](
        target, draft, drafted, temperature, uniforms, tokens, accepted, V,
        K=K, PLACES=triton.next_power_of_2(K + 1), BLOCK=block,
        BLOCKS=triton.next_power_of_2(triton.cdiv(V, block)), num_warps=WARPS,
    )  # fmt: skip
    return tokens, accepted
