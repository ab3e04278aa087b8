"""Expert parallelism, the plain way: every choice travels as a row of its own, through NCCL.

Contract  layer.py; a call on each card of the group at the same time
Idea      sort the choices by card, exchange the counts, exchange the rows; multiply; exchange the answers back
Against   all the experts on every card: each would read the weights of all
Cost      a token with four experts on another card travels there four times, and four answers come back. The host must
          know the counts before the rows can leave, so it waits for the card
Next      by_card.py: a token travels once to a card, whatever the number of its experts there
Source    DeepSeek-AI 2024, arXiv:2412.19437, section 3.2.2; PyTorch, torch.distributed.all_to_all_single
"""

from __future__ import annotations

import torch
import torch.distributed as dist

from course_kernels.expert_parallel.by_card import Mark, exchanged, unmarked
from course_kernels.expert_parallel.experts import Tokens, check_tokens, multiply
from course_kernels.expert_parallel.layer import Experts


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
    T, TOP_K = chosen.shape
    card = (chosen // experts.held).reshape(-1)
    order = card.sort(stable=True).indices
    counts = torch.stack([(card == other).sum() for other in range(experts.cards)])
    leave, arrive = exchanged(counts, group)
    # Those of this card's own experts go through the exchange as well, from the card to itself.
    arrived = x.new_empty(sum(arrive), x.shape[1])
    dist.all_to_all_single(arrived, x[order // TOP_K], arrive, leave, group=group)
    asked = chosen.new_empty(sum(arrive))
    dist.all_to_all_single(asked, chosen.reshape(-1)[order], arrive, leave, group=group)
    mark("dispatched")

    answers = arrived
    if len(arrived):
        y, (place,) = multiply(experts, Tokens(arrived, asked[:, None]))
        answers = y[place.view(-1)]
    mark("multiplied")

    returned = x.new_empty(T * TOP_K, x.shape[1])
    dist.all_to_all_single(returned, answers, leave, arrive, group=group)
    by_choice = torch.empty_like(returned)
    by_choice[order] = returned
    y = (by_choice.view(T, TOP_K, -1).float() * weights[..., None]).sum(dim=1)
    return y.bfloat16()
