"""Sampling, the contract: from the logits of a row to the token that its seed draws.

    Z[b, v] = X[b, v] / temperature[b]
    the k largest of a row stay       every token whose Z is at least that of the k-th largest; equals stay together
    of these the fewest that hold p   every token for which those of larger Z hold less than top_p of what stays by k
    P[b, :] = softmax(Z[b, :]) over what stays: the distribution that a token is drawn from
    token[b] = argmax over what stays of Z[b, v] - log(E[b, v])         E exponential, from seed, step and v alone

The maximum of Z - log(E) lies at v with just the probability P[b, v] (Gumbel): nothing is summed, sorted or normalised
for it, and what does not stay cannot be drawn. The order is that of Hugging Face and vLLM: temperature, top-k, top-p.
Where the cut of top-p falls among equals, they keep some of them, whichever the sort put first; here all of them stay.

E         Philox4x32 in ten rounds gives four words of 32 bits for the key `seed` and the counter (v // 4, step, 0, 0);
          token v has word v % 4, w, and E = -log((w + 1/2) / 2**32)
Shapes    X (B, V), temperature, seeds, steps, top_k and top_p (B,); tokens (B,). X row-major
Types     X float32 or bfloat16 or float16; temperature and top_p float32, seeds int64, steps and top_k int32; tokens
          int64. A workload's type is that of the tokens; its flag `bf16` says that X is bfloat16, `filtered` that there
          are top_k and top_p
Off       temperature 0: the largest logit, the first of equals, whatever the other arguments. top_k 0, or V and more:
          all stay. top_p 1 and more: all stay. However small top_p is, the largest stays
Odd       a logit of -inf, or NaN, is never drawn; a row of nothing else answers 0. One of +inf is drawn
Cost      read X once, write a number for each row: the floor is bytes

A token hangs on its row, seed and step alone, not on who else is in the batch. Seeds and steps are on the device, so a
captured graph draws anew when they are raised; the lengths of the sequences may serve as steps. How exact: E has 2**32
values, so that a probability is off by some 2**-32 at most, and a kernel's float32 by some 2**-16 of itself.

The truth is the token itself, and an answer is right or wrong. A kernel works in float32, so two candidates that are as
good as equal may change places, and so may a token at the very edge of top_p. `make_inputs` stays away from both: it
raises a step where the best two are closer than MARGIN, and lays top_p into the middle of a token's share.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from course_kernels.problem import INF, NAN, Problem, Workload

# How far the best candidate of a row is ahead of the second, in units of Z: far more than float32 loses in a logit of
# some tens. One row in some five hundred draws another step for it.
MARGIN = 2.0**-9

# top_p is laid into the middle of a share that is at least so large, some hundred roundings of a sum near 1.
LEAST_SHARE = 2.0**-16

# What the rows ask for, in turn; a temperature of 0 is among them.
TEMPERATURES = (0.7, 1.0, 0.0, 1.5, 0.25)
TOP_K = (50, 0, 7, 1, 1000, 2**31 - 1)
TOP_P = (0.9, 0.5, 1.0, 0.99)

TRIES = 3  # steps that are looked at

ROUND_A, ROUND_B, KEY_A, KEY_B = 0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85
WORD = 2**32 - 1


class Given(NamedTuple):
    """Arguments of a kernel; the last two are there together."""

    logits: torch.Tensor
    temperature: torch.Tensor
    seeds: torch.Tensor
    steps: torch.Tensor
    top_k: torch.Tensor | None = None
    top_p: torch.Tensor | None = None


def words_of(seeds: torch.Tensor, steps: torch.Tensor, V: int) -> torch.Tensor:
    """Return the random words of every row and token, (B, V) int64 from 0 to 2**32 - 1.

    Products of 64 bits that pass 2**63 wrap around, and their upper half is right once it is cut to 32 bits.
    """
    groups = -(-V // 4)
    shape = len(seeds), groups
    c0 = torch.arange(groups, device=seeds.device).expand(shape)
    c1 = (steps.long() & WORD)[:, None].expand(shape)
    c2 = c3 = torch.zeros_like(c0)
    k0, k1 = (seeds & WORD)[:, None], (seeds >> 32 & WORD)[:, None]
    for _ in range(10):
        a, b = ROUND_A * c0, ROUND_B * c2
        c0, c1, c2, c3 = (b >> 32 & WORD) ^ c1 ^ k0, b & WORD, (a >> 32 & WORD) ^ c3 ^ k1, a & WORD
        k0, k1 = k0 + KEY_A & WORD, k1 + KEY_B & WORD
    return torch.stack((c0, c1, c2, c3), -1).reshape(len(seeds), -1)[:, :V]


def kept_of(given: Given) -> tuple[torch.Tensor, torch.Tensor]:
    """Z less its maximum, (B, V) float64, and which tokens stay, (B, V). Of rows of temperature 0 the largest stay."""
    x = given.logits.double()
    x = torch.where(x.isnan(), -INF, x)
    top = x.max(-1, keepdim=True).values
    cold = given.temperature[:, None] <= 0
    z = torch.where(x == top, 0.0, (x - top) / torch.where(cold, 1.0, given.temperature[:, None].double()))
    stays = torch.where(cold, x == top, torch.ones_like(x, dtype=torch.bool))
    V = x.shape[1]
    falling = z.sort(-1, descending=True).values
    if given.top_k is not None:
        k = given.top_k.long()[:, None]
        at = torch.where((k > 0) & (k < V), k, V) - 1
        stays = stays & (z >= falling.gather(-1, at))
    if given.top_p is not None:
        p = given.top_p.double()[:, None]
        share = shares_of(z, stays)
        falling, order = z.sort(-1, descending=True)
        above = share.gather(-1, order).cumsum(-1) - share.gather(-1, order)
        # The share of those that are larger, not only before: that of the first among equals.
        first = torch.searchsorted(-falling, -falling.contiguous(), right=False)
        within = torch.zeros_like(stays).scatter(-1, order, above.gather(-1, first) < p)
        stays = stays & (within | (p >= 1) | (z == 0))
    return z, stays


def shares_of(z: torch.Tensor, stays: torch.Tensor) -> torch.Tensor:
    """Return the softmax of z, (B, V), over what stays."""
    weights = torch.where(stays, z.exp(), 0.0)
    return weights / weights.sum(-1, keepdim=True)


def probabilities(given: Given) -> torch.Tensor:
    """Return the distribution that the contract asks for, (B, V) float64."""
    return shares_of(*kept_of(given))


def scores_of(given: Given) -> torch.Tensor:
    """Return what the token has the largest of, (B, V) float64; -inf where nothing can be drawn."""
    z, stays = kept_of(given)
    words = words_of(given.seeds, given.steps, z.shape[1])
    noise = -((-((words.double() + 0.5) / 2**32).log()).log())
    drawn = torch.where(given.temperature[:, None] <= 0, z, z + noise)
    x = given.logits
    return torch.where(stays & (x > -INF), drawn, -INF)


def reference(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    seeds: torch.Tensor,
    steps: torch.Tensor,
    top_k: torch.Tensor | None = None,
    top_p: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the tokens, (B,), as float64: every number of a token is one."""
    scores = scores_of(Given(logits, temperature, seeds, steps, top_k, top_p))
    best = scores == scores.max(-1, keepdim=True).values
    return best.to(torch.int8).argmax(-1).double()  # the first of equals


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, ...]:
    """Logits normal with a standard deviation of 3; temperatures, and where rows are filtered k and p, by turns."""
    of = {"generator": generator, "device": device}
    logits = (3 * torch.randn(w.B, w.V, **of)).to(
        torch.bfloat16 if w.dims.get("bf16", False) else torch.float32
    )
    seeds = torch.randint(-(2**62), 2**62, (w.B,), **of)
    steps = torch.randint(0, 2**30, (w.B,), dtype=torch.int32, **of)
    turn = torch.arange(w.B, device=device)
    temperature, k, p = (torch.tensor(x, device=device)[turn % len(x)] for x in (TEMPERATURES, TOP_K, TOP_P))
    given = Given(logits, temperature, seeds, steps)
    if w.dims.get("filtered", False):
        by_k = given._replace(top_k=k.int())
        shares = probabilities(by_k).sort(-1, descending=True).values
        sums = shares.cumsum(-1)
        # The token at whose share the sum reaches p, or one before it whose share is large enough.
        at = torch.minimum((sums < p[:, None]).sum(-1), (shares >= LEAST_SHARE).sum(-1) - 1)
        at = at.clamp(min=0)[:, None]
        middle = (sums.gather(-1, at) - shares.gather(-1, at) / 2)[:, 0]
        given = by_k._replace(top_p=torch.where(p < 1, middle, 1.0).float())
    for _ in range(TRIES):
        best = scores_of(given).topk(min(2, w.V), -1).values
        close = best[:, 0] - best[:, -1] < MARGIN if w.V > 1 else torch.zeros_like(turn, dtype=torch.bool)
        given = given._replace(steps=torch.where(close & (temperature > 0), given.steps + 1, given.steps))
    return tuple(x for x in given if x is not None)


def reads_bytes(w: Workload) -> int:
    """Return the logits, and 16 bytes that every row comes with, 24 where it is filtered."""
    logits = (2 if w.dims.get("bf16", False) else 4) * w.B * w.V
    return logits + (24 if w.dims.get("filtered", False) else 16) * w.B


def _check_on() -> tuple[Workload, ...]:
    sizes = ((1, 1), (7, 5), (3, 31), (13, 1000), (5, 4097), (2, 128256), (300, 257))  # B, V
    return tuple(
        Workload.of("int64", B=B, V=V, **more)
        for more in ({}, {"bf16": True}, {"filtered": True}, {"filtered": True, "bf16": True})
        for B, V in sizes
    )


PROBLEM = Problem(
    name="sampling",
    formula="token[b] = argmax over what top-k and top-p leave of X[b, v] / temperature[b] - log(E[b, v])",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=reads_bytes,
    writes_bytes=lambda w: 8 * w.B,
    flops=lambda w: 4 * w.B * w.V,  # scale, a logarithm, subtract, compare
    math=lambda w: "fp32",
    max_error=lambda w: 0.0,  # a token is the right one or not
    hard=lambda w: ({0: (0.0, -0.0, NAN, INF, -INF)},),
    check_on=_check_on(),
    # The vocabulary of the Llama 3 family, for one sequence and for a batch of them.
    time_on=tuple(
        Workload.of("int64", B=B, V=128256, bf16=True, filtered=filtered)
        for B in (1, 32, 64)
        for filtered in (False, True)
    ),
)
