"""Speculative sampling, kernel 1: torch's operators, one after the other, and the host that asks how far it got.

Contract  problem.py
Idea      write the rule down. How many drafts of a sequence pass decides which row is left over, and a program that
          keeps its tokens in lists asks the device for that number
Cost      some thirty launches; a wait of the host for the device in the middle of them, after which no launch is under
          way; and each row that is left over is written and read again for every operator
Limits    such a wait cannot be captured in a CUDA graph
Next      k02_one_launch decides on the device
Source    Leviathan, Kalman & Matias 2023, arXiv:2211.17192, algorithm 1; Chen et al. 2023, arXiv:2302.01318
"""

from __future__ import annotations

import torch
from torch.nn.functional import pad

from course_kernels.problem import INF
from course_kernels.speculative_sampling.arguments import sizes_of


def shares_of(x: torch.Tensor) -> torch.Tensor:
    """Return probabilities with zero for what is none."""
    return torch.where(x > 0, x, 0.0)


def speculative_sampling(
    target: torch.Tensor,
    draft: torch.Tensor,
    drafted: torch.Tensor,
    temperature: torch.Tensor,
    uniforms: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the tokens of one verification, and how many of them were drafted.

    Args:
        target: (B, K + 1, V) float32, contiguous: probabilities, or any numbers where the temperature is 0.
        draft: (B, K, V) float32, contiguous: probabilities.
        drafted: (B, K) int32, each drawn from its row of `draft`.
        temperature: (B,) float32; 0: accept while a draft is the largest of the target's.
        uniforms: (B, K + 1) float32, from 0 to below 1, independent.
    Returns:
        tokens (B, K + 1) int32, -1 behind the last, and accepted (B,) int32.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    B, K, V = sizes_of(target, draft, drafted, temperature, uniforms)
    cold = temperature <= 0
    best = torch.where(target.isnan(), -INF, target).argmax(-1)  # the first of equals
    x = drafted.long().clamp(0, V - 1)
    p, q = (shares_of(of.gather(-1, x[..., None])[..., 0]).double() for of in (target[:, :K], draft))
    passes = (drafted == x) & (uniforms[:, :K] * q < p)
    passes = torch.where(cold[:, None], drafted == best[:, :K], passes)
    # region trip
    accepted = passes.long().cumprod(-1).sum(-1).tolist()  # the host waits here
    # endregion
    rows = torch.arange(B, device=draft.device)
    at = torch.tensor(accepted, device=draft.device)
    before = at.clamp(max=K - 1)
    refused = (at < K) & (drafted[rows, before] == x[rows, before])
    of_target = shares_of(target[rows, at])
    of_draft = shares_of(draft[rows, before]) * refused[:, None]
    weights = (of_target - of_draft).clamp(min=0)
    weights = torch.where(weights.sum(-1, keepdim=True) > 0, weights, of_target)
    sums = weights.cumsum(-1)
    drawn = torch.searchsorted(sums, uniforms[:, K:] * sums[:, -1:], right=True)[:, 0]
    drawn = torch.where(sums[:, -1] > 0, drawn, 0)
    place = torch.arange(K + 1, device=draft.device)
    tokens = torch.where(place < at[:, None], pad(drafted, (0, 1)), -1)
    tokens[rows, at] = torch.where(cold, best[rows, at], drawn).int()
    return tokens, at.int()
