"""Sampling, kernel 1: noise for every token, and the largest wins; a row is shared out among many programs.

Contract  problem.py, without top-k and top-p
Idea      the maximum of Z - log(E) over a row, E exponential, lies at a token with just the token's probability. So a
          row passes by once, and neither a sum nor a maximum of it has to be known before
Cost      the logits are read once. A group of four tokens costs ten rounds of two wide products, and every token two
          logarithms: with many rows the arithmetic is no less than the bytes
Limits    a launch is one kernel, but finds the tickets at zero: without tickets of your own that is a fill of B numbers
          before it
Next      k02_threshold leaves tokens out
Source    Gumbel 1954, Statistical theory of extreme values; Maddison, Tarlow & Minka 2014, arXiv:1411.0030 (the trick);
          Salmon et al. 2011, doi:10.1145/2063384.2063405 (Philox); the ticket: CUDA samples, threadFenceReduction
"""

from __future__ import annotations

from functools import cache
from math import log

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.arguments import check_tensor
from course_kernels.problem import Workload
from course_kernels.sampling.arguments import sizes_of

# Tokens that a program looks at together: four groups of four for each thread, whose words are all on their way at
# once.
BLOCK = 2048
WARPS = 4

# Programs that a multiprocessor of Hopper holds at once: four times 128 threads of at most 128 registers.
RESIDENT = 4

MOST_PARTS = 1024  # of a row; the last program looks at all of them together

# Below this -log(1 - x) is a sum of four powers of x, to the last bit of a float32; above it 1 - x has bits enough.
SMALL = tl.constexpr(2.0**-6)
LN_2 = tl.constexpr(log(2))
PER_WORD = tl.constexpr(2.0**-32)


# --- on the device -----------------------------------------------------------


@triton.jit
def noise(seed, step, first, BLOCK: tl.constexpr):
    """-log2(E) of the tokens from `first` on, a multiple of 4: [BLOCK]."""
    group = (first // 4 + tl.arange(0, BLOCK // 4)).to(tl.uint32)
    none = tl.zeros_like(group)
    a, b, c, d = tl.philox(seed, group, none + step.to(tl.uint32), none, none)
    # Word 0 of a group, word 1, 2, 3, then those of the next: [BLOCK / 4, 2, 2] in a row.
    word = tl.reshape(tl.join(tl.join(a, c), tl.join(b, d)), [BLOCK])
    # A float32 keeps 24 bits of a word. The winners have a small E, where x = 1 - (word + 1/2) / 2**32 is as small; so
    # x is made from the word's complement, and keeps its bits.
    x = (word ^ 0xFFFFFFFF).to(tl.float32) * PER_WORD + 0.5 * PER_WORD
    y = word.to(tl.float32) * PER_WORD + 0.5 * PER_WORD
    small = x * (1.0 + x * (1.0 / 2 + x * (1.0 / 3 + x * (1.0 / 4))))
    return -tl.math.log2(tl.where(x < SMALL, small, -LN_2 * tl.math.log2(y)))


@triton.jit
def scale_of_row(temperature):
    """Return what a logit is multiplied by, so that it counts in powers of two; 0 where nothing is drawn."""
    return tl.where(
        temperature > 0.0, 1.4426950408889634 / tl.where(temperature > 0.0, temperature, 1.0), 0.0
    )


@triton.jit
def first_best(best, token):
    """Return the largest number, and the least token that has it."""
    largest = tl.max(best, 0)
    return largest, tl.min(tl.where(best == largest, token, 2**31 - 1), 0)


@triton.jit
def look(X, first, last, seed, step, scale, top, least, BLOCK: tl.constexpr):
    """Return the best candidate of the tokens first to last of a row: its score, and which it is, the first of equals.

    Only logits of at least `least` are candidates; `top` is taken off them, which changes no order.
    """
    token = first + tl.arange(0, BLOCK)
    best, best_token = tl.full([BLOCK], -float("inf"), tl.float32), token
    for start in tl.range(first, last, BLOCK):
        token = start + tl.arange(0, BLOCK)
        x = tl.load(X + token, mask=token < last, other=-float("inf")).to(tl.float32)
        score = x
        if scale > 0.0:
            # Equal infinities less each other would be NaN.
            score = tl.where(x == top, 0.0, (x - top) * scale) + noise(seed, step, start, BLOCK)
        # Neither -inf nor NaN is above -inf.
        score = tl.where((x >= least) & (x > -float("inf")), score, -float("inf"))
        better = score > best
        best, best_token = tl.where(better, score, best), tl.where(better, token, best_token)
    return first_best(best, best_token)


@triton.jit
def gumbel_kernel(
    X, temperature_ptr, seeds_ptr, steps_ptr, tokens_ptr, scores, places, tickets, V, each,
    PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One program finds the best of a part of a row; the last one of a row answers for it."""
    part, b, parts = tl.program_id(0), tl.program_id(1), tl.num_programs(0)
    row = b.to(tl.int64)
    scale = scale_of_row(tl.load(temperature_ptr + row))
    seed, step = tl.load(seeds_ptr + row), tl.load(steps_ptr + row)
    first = part * each
    score, token = look(
        X + row * V, first, tl.minimum(first + each, V), seed, step, scale, 0.0, -float("inf"), BLOCK
    )
    if parts == 1:
        tl.store(tokens_ptr + row, token.to(tl.int64))
    else:
        tl.store(scores + row * parts + part, score)
        tl.store(places + row * parts + part, token)
        # All threads have stored before one of them takes the ticket, which orders what lies before and after it.
        tl.debug_barrier()
        ticket = tl.atomic_add(tickets + row, 1, sem="acq_rel")
        if ticket == parts - 1:
            other = tl.arange(0, PARTS)
            # Others wrote these: .cg looks in L2, where all multiprocessors see the same.
            of = tl.load(
                scores + row * parts + other, mask=other < parts, other=-float("inf"), cache_modifier=".cg"
            )
            at = tl.load(
                places + row * parts + other, mask=other < parts, other=2**31 - 1, cache_modifier=".cg"
            )
            _, token = first_best(of, at)
            tl.store(tokens_ptr + row, token.to(tl.int64))
            tl.store(tickets + row, 0)  # as the next launch wants it


# --- on the host -------------------------------------------------------------


def supports(w: Workload) -> bool:
    """Return whether this kernel takes a workload: one whose rows are not filtered."""
    return not w.dims.get("filtered", False)


@cache
def tokens_each(device: torch.device, B: int, V: int) -> int:
    """Return how many tokens of a row a program gets, whole blocks: so many that all programs fit on the card at once.

    Args:
        device: which card.
        B, V: rows, and tokens of a row.
    """
    on_gpu = device.type == "cuda"
    at_once = RESIDENT * torch.cuda.get_device_properties(device).multi_processor_count if on_gpu else 1
    blocks = triton.cdiv(V, BLOCK)
    parts = min(max(at_once // B, 1), blocks, MOST_PARTS)
    return BLOCK * triton.cdiv(blocks, parts)


def sampling(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    seeds: torch.Tensor,
    steps: torch.Tensor,
    *,
    tickets: torch.Tensor | None = None,
    each: int | None = None,
) -> torch.Tensor:
    """Return a token for every row, drawn by its temperature.

    Args:
        logits: (B, V) float32, bfloat16 or float16, contiguous.
        temperature: (B,) float32, on the device; 0: the largest logit, the first of equals.
        seeds: (B,) int64, on the device.
        steps: (B,) int32, on the device: another one for every token of a sequence.
        tickets: (B,) int32, all zero, and zero again when the call is done: calls that come one after the other may
            share them, and then a call is one kernel. Without them each call fills some of its own.
        each: tokens that a program gets, a multiple of BLOCK; without it, what suits the card and the shapes.
    Returns:
        (B,) int64, each from 0 to V - 1; the same for the same logits, temperature, seed and step.
    Raises:
        TypeError, ValueError: see `sizes_of`; tickets of another shape, type or device; or another `each`.
    """
    B, V = sizes_of(logits, temperature, seeds, steps)
    if tickets is not None:
        check_tensor("tickets", tickets, "B", {"B": B}, dtypes=(torch.int32,), device=logits.device)
    each = tokens_each(logits.device, B, V) if each is None else each
    if each < 1 or each % BLOCK or triton.cdiv(V, each) > MOST_PARTS:
        raise ValueError(f"each: expected a multiple of {BLOCK}, at least V / {MOST_PARTS}, got {each}")
    parts = triton.cdiv(V, each)
    if tickets is None:
        tickets = torch.zeros(B, dtype=torch.int32, device=logits.device)
    scores = torch.empty(B * parts, dtype=torch.float32, device=logits.device)
    places = torch.empty(B * parts, dtype=torch.int32, device=logits.device)
    tokens = torch.empty(B, dtype=torch.int64, device=logits.device)
    gumbel_kernel[(parts, B)](
        logits, temperature, seeds, steps, tokens, scores, places, tickets, V, each,
        PARTS=triton.next_power_of_2(parts), BLOCK=BLOCK, num_warps=WARPS,
    )  # fmt: skip
    return tokens
