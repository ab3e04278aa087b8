"""The layer without expert parallelism: every card holds all the experts, and nothing travels.

Contract  layer.py, with the experts of a layer on one card
Idea      the opponent: the same multiply for as many tokens a card
Cost      each card has room for all the experts, and reads the weights of every one that its own tokens choose
Next      by_choice.py: half of the experts on each of two cards
"""

from __future__ import annotations

import torch

from course_kernels.expert_parallel.experts import Tokens, check_tokens, multiply
from course_kernels.expert_parallel.layer import Experts
from course_kernels.expert_parallel.rows import sum_rows


def expert_parallel(
    x: torch.Tensor, chosen: torch.Tensor, weights: torch.Tensor, experts: Experts
) -> torch.Tensor:
    """Answers of the layer for this card's tokens.

    Args:
        x, chosen, weights: (T, D), (T, TOP_K), (T, TOP_K), see layer.py.
        experts: all of the layer, as card 0 of 1.
    Returns:
        (T, D) bfloat16.
    Raises:
        TypeError, ValueError: see `check_tokens`; or experts that are only a share of the layer.
    """
    check_tokens(x, chosen, weights, experts)
    if experts.cards != 1:
        raise ValueError(f"experts: expected all of a layer, cards=1, got a share of cards={experts.cards}")
    y, (place,) = multiply(experts, Tokens(x, chosen))
    out = torch.empty_like(x)
    sum_rows(y, place, out, weights=weights)
    return out
