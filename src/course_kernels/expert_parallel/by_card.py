"""Expert parallelism, each token once to each card: through NCCL, with sums made where the experts are.

Contract  layer.py; a call on each card of the group at the same time
Idea      a card gets a token once, with all its choices, and sends back one sum of its experts' answers, weighted
Against   by_choice.py: a row for every choice, there and back
Cost      on two cards a row of D numbers each way for each token that has an expert elsewhere. Rows are packed before
          they leave, a trip to memory more, and the host still waits for the counts
Limits    the sum of a card is rounded to bfloat16 before it travels
Next      stored.py: no packing, and no host
Source    DeepSeek-AI, DeepEP, github.com/deepseek-ai/DeepEP: `is_token_in_rank` of its dispatch
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist

from course_kernels.expert_parallel.experts import Tokens, check_tokens, multiply
from course_kernels.expert_parallel.layer import Experts
from course_kernels.expert_parallel.plan import outgoing
from course_kernels.expert_parallel.rows import place_rows, sum_rows

Mark = Callable[[str], None]


def unmarked(stage: str) -> None:
    """Take no note of a stage."""


def exchanged(counts: torch.Tensor, group: dist.ProcessGroup | None) -> tuple[list[int], list[int]]:
    """Tell every card how many rows it will get; the host waits here for the card.

    Args:
        counts: (CARDS,) int64, rows that leave for each card.
        group: of the cards.
    Returns:
        Rows that leave for each card, and that arrive from each.
    """
    arriving = torch.empty_like(counts)
    dist.all_to_all_single(arriving, counts, group=group)
    leave, arrive = torch.stack([counts, arriving]).tolist()
    return leave, arrive


def expert_parallel(
    x: torch.Tensor,
    chosen: torch.Tensor,
    weights: torch.Tensor,
    experts: Experts,
    *,
    group: dist.ProcessGroup | None = None,
    mark: Mark = unmarked,
) -> torch.Tensor:
    """Answers of the layer for this card's tokens.

    Args:
        x, chosen, weights: (T, D), (T, TOP_K), (T, TOP_K), see layer.py.
        experts: of this card; card and cards are the rank and the size of the group.
        group: of the cards; the default one without it.
        mark: called with "dispatched" and "multiplied" when that much has been asked for.
    Returns:
        (T, D) bfloat16.
    Raises:
        TypeError, ValueError: see `check_tokens`.
    """
    check_tokens(x, chosen, weights, experts)
    (T, D), TOP_K = x.shape, chosen.shape[1]
    plan = outgoing(chosen, experts.card, experts.cards, experts.held)
    place = plan.packed
    leave, arrive = exchanged(plan.counts, group)
    packed = x.new_empty(max(sum(leave), 1), D)
    place_rows(x, place.view(-1), packed, each=experts.cards)
    # What goes with a row: its experts, and their weights as the same 32 bits.
    choices = torch.cat([chosen.int(), weights.view(torch.int32)], dim=1)
    packed_choices = choices.new_empty(max(sum(leave), 1), 2 * TOP_K)
    place_rows(choices, place.view(-1), packed_choices, each=experts.cards)
    arrived = x.new_empty(sum(arrive), D)
    dist.all_to_all_single(arrived, packed[: sum(leave)], arrive, leave, group=group)
    arrived_choices = choices.new_empty(sum(arrive), 2 * TOP_K)
    dist.all_to_all_single(arrived_choices, packed_choices[: sum(leave)], arrive, leave, group=group)
    mark("dispatched")

    parts = [Tokens(x, chosen)]
    if len(arrived):
        parts.append(Tokens(arrived, arrived_choices[:, :TOP_K]))
    y, places = multiply(experts, *parts)
    own = torch.empty(T, D, dtype=torch.float32, device=x.device)
    sum_rows(y, places[0], own, weights=weights)
    sums = torch.empty_like(arrived)
    if len(arrived):
        sum_rows(y, places[1], sums, weights=arrived_choices[:, TOP_K:].view(torch.float32))
    mark("multiplied")

    returned = torch.empty_like(packed)
    dist.all_to_all_single(returned[: sum(leave)], sums, leave, arrive, group=group)
    out = torch.empty_like(x)
    sum_rows(returned, place, out, base=own)
    return out
