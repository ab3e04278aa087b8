"""Test of exactness: pairs of tokens of a small language, counted, against what the target says.

A language of V tokens in which each depends on the one before it alone: then the probability of every pair is known,
and a rule of acceptance can be held against it. One token would not do: a rule that forgets where it is in the draft
may have every token right by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

# What answers as `course_kernels.speculative_sampling` does: (target, draft, drafted, temperature, uniforms) to tokens
# and how many were accepted.
Rule = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]

AT_ONCE = 2**17  # sequences of one call
FIRST = 0  # the token before every pair

# A right rule has a smaller p-value than this once in a million runs: its p-values are spread evenly from 0 to 1. And a
# million pairs, each as much as a hundredth of itself off, have one far below.
LEAST_P = 1e-6

LEAST_DUE = 10  # of a pair, in the mean: with fewer the statistic is not spread as Pearson's


@dataclass(frozen=True)
class Chain:
    """Two languages over the same tokens.

    Attributes:
        target, draft: (V, V) float32: row x is the distribution of the token behind x.
        temperature: that they have been divided by.
    """

    target: Tensor
    draft: Tensor
    temperature: float

    @property
    def pairs(self) -> Tensor:
        """The probability of every pair behind the first token: (V, V) float64."""
        rows = self.target.double() / self.target.double().sum(-1, keepdim=True)
        return rows[FIRST][:, None] * rows

    @property
    def passing(self) -> float:
        """The probability that a first drafted token passes: the sum of the smaller of each pair."""
        return float(torch.minimum(self.target[FIRST], self.draft[FIRST]).double().sum())


def chain(temperature: float, V: int = 6, seed: int = 0, device: torch.device | str = "cpu") -> Chain:
    """Return two languages that are somewhat alike, at a temperature; the same ones on every device.

    Args:
        temperature: above 0.
        V: tokens.
        seed: draws the logits.
    """
    generator = torch.Generator().manual_seed(seed)
    # So spread that at a temperature of a half no pair is rare among a million.
    logits = 0.6 * torch.randn(V, V, generator=generator)
    drafts = logits + 1.2 * torch.randn(V, V, generator=generator)
    rows = [torch.softmax(x.double() / temperature, -1).float().to(device) for x in (logits, drafts)]
    return Chain(rows[0], rows[1], temperature)


def pairs(rule: Rule, language: Chain, count: int, generator: torch.Generator, K: int = 2) -> Tensor:
    """Count the first two tokens of so many sequences that a rule writes, K drafted tokens in each round.

    Args:
        rule: what accepts.
        language: two chains, on the generator's device.
        count: sequences.
    Returns:
        (V, V) int64: how often the second token came behind the first.
    """
    V = len(language.target)
    device = language.target.device
    counts = torch.zeros(V * V, dtype=torch.int64, device=device)
    for begin in range(0, count, AT_ONCE):
        rows = min(AT_ONCE, count - begin)
        start = torch.full((rows,), FIRST, device=device)
        tokens = _round(rule, language, start, generator, K)
        first, second = tokens[:, 0], tokens[:, 1]
        # A round that gave one token is followed by another one.
        short = (second < 0).nonzero()[:, 0]
        if len(short):
            again = _round(rule, language, first[short], generator, K)
            second = second.index_copy(0, short, again[:, 0])
        counts += torch.bincount(first * V + second, minlength=V * V)
    return counts.view(V, V)


def _round(rule: Rule, language: Chain, start: Tensor, generator: torch.Generator, K: int) -> Tensor:
    """Draft K tokens behind each start, and accept: (B, K + 1), -1 where nothing was written."""
    device, B = start.device, len(start)
    before = [start]
    for _ in range(K):
        rows = language.draft[before[-1]].double().cumsum(-1)
        goal = torch.rand(B, 1, dtype=torch.float64, generator=generator, device=device) * rows[:, -1:]
        before.append((rows <= goal).sum(-1))
    context = torch.stack(before, -1)  # (B, K + 1)
    temperature = torch.full((B,), language.temperature, device=device)
    uniforms = torch.rand(B, K + 1, generator=generator, device=device)
    tokens, _ = rule(
        language.target[context], language.draft[context[:, :-1]], context[:, 1:].int(), temperature, uniforms
    )
    return tokens.long()


def p_value(counts: Tensor, shares: Tensor) -> float:
    """Return how often a right rule has counts as far from what is due as these, or farther: Pearson's test.

    Args:
        counts: whole numbers, as `pairs` returns them.
        shares: of the same shape, the probability of each, such as `Chain.pairs`.
    Raises:
        ValueError: too few to tell.
    """
    counts, shares = counts.cpu().double(), shares.cpu().double()
    due = shares / shares.sum() * counts.sum()
    if float(due.min()) < LEAST_DUE:
        raise ValueError(
            f"counts: expected {LEAST_DUE} of the rarest pair or more, got {float(due.min()):.2g}: count more"
        )
    statistic = ((counts - due) ** 2 / due).sum()
    freedom = torch.tensor(counts.numel() - 1, dtype=torch.float64)
    return float(torch.special.gammaincc(freedom / 2, statistic / 2))
