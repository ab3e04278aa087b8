"""Work of a card on the tokens that it has: sort their choices by expert, multiply, gate, multiply.

The same in every way to travel, so that a race between two ways is about the journey. Where the rows of each expert end
is told to the multiply on the card: the host need not know.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from course_kernels.expert_parallel.layer import Experts
from course_kernels.expert_parallel.plan import by_expert
from course_kernels.expert_parallel.rows import gate_rows, place_rows


@dataclass(frozen=True)
class Tokens:
    """Tokens that may meet experts of this card.

    Attributes:
        x: (N, D) bfloat16, contiguous.
        chosen: (N, TOP_K), numbers of experts; those of other cards are left out.
        count: (1,) int64, how many of the N are there; None for all.
    """

    x: torch.Tensor
    chosen: torch.Tensor
    count: torch.Tensor | None = None


def multiply(experts: Experts, *parts: Tokens) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
    """Return the answers of this card's experts, and whose they are.

    Args:
        experts: of this card.
        parts: tokens, its own or from elsewhere; the weights of an expert are read once for all of them.
    Returns:
        (N, D) bfloat16, sorted by expert, N choices of all parts; what belongs to none is not written. And for every
        part a place (N, TOP_K) int64: which row answers a choice; -1 where the expert is elsewhere.
    """
    plan = by_expert([(part.chosen, part.count) for part in parts], experts.first, experts.held)
    choices = sum(place.numel() for place in plan.places)
    D = experts.gate_up.shape[1]
    rows = torch.empty(choices, D, dtype=torch.bfloat16, device=experts.gate_up.device)
    for part, place in zip(parts, plan.places, strict=True):
        place_rows(part.x, place.view(-1), rows, each=place.shape[1])
    h = torch._grouped_mm(rows, experts.gate_up, offs=plan.ends)
    g = gate_rows(h, plan.ends[-1:])
    return torch._grouped_mm(g, experts.down, offs=plan.ends), plan.places


def check_tokens(x: torch.Tensor, chosen: torch.Tensor, weights: torch.Tensor, experts: Experts) -> None:
    """Refuse tokens that do not fit the experts.

    Raises:
        TypeError: another type than the contract's.
        ValueError: another shape, or not contiguous.
    """
    T, D = x.shape[0], experts.gate_up.shape[1]
    for name, tensor, dtype in (
        ("x", x, torch.bfloat16),
        ("chosen", chosen, torch.int64),
        ("weights", weights, torch.float32),
    ):
        if tensor.dtype != dtype:
            expected, got = (str(kind).removeprefix("torch.") for kind in (dtype, tensor.dtype))
            raise TypeError(f"{name}: expected {expected}, got {got}")
        if not tensor.is_contiguous():
            raise ValueError(f"{name}: expected contiguous rows, got strides {tensor.stride()}")
    if x.shape != (T, D) or T < 1:
        raise ValueError(f"x: expected (T, D) with D={D} and at least one token, got {tuple(x.shape)}")
    if chosen.dim() != 2 or chosen.shape[0] != T or chosen.shape != weights.shape:
        raise ValueError(
            f"chosen, weights: expected (T, TOP_K) with T={T}, got {tuple(chosen.shape)}, {tuple(weights.shape)}"
        )
