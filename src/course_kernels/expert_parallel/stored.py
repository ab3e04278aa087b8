"""Expert parallelism by plain stores: a kernel writes each row straight into the neighbour's memory.

Contract  layer.py, on two cards; a call on each at the same time
Idea      the target of `place_rows` is the neighbour's box, so rows leave in one kernel, and a signal follows; the sums
          go back the same way, from the kernel that makes them
Against   by_card.py: rows are packed first, and the host waits for the counts. Here the count travels beside the rows,
          and only cards read it
Cost      the box has room for all tokens of the neighbour, whether they come or not. Stores keep multiprocessors busy
Limits    two cards of one host that map each other's memory. No box is written before it was read: who sends again has
          received the sums, and those were made behind the last read
Next      overlapped.py: own tokens are multiplied while the others travel
Source    DeepSeek-AI, DeepEP, github.com/deepseek-ai/DeepEP; PyTorch, torch.distributed._symmetric_memory
"""

from __future__ import annotations

import torch

from course_kernels.expert_parallel.by_card import Mark, unmarked
from course_kernels.expert_parallel.experts import Tokens, check_tokens, multiply
from course_kernels.expert_parallel.layer import Experts
from course_kernels.expert_parallel.mailbox import ROWS, SUMS, Box, Mailbox
from course_kernels.expert_parallel.plan import outgoing
from course_kernels.expert_parallel.rows import place_rows, sum_rows


def check_box(box: Box, T: int, D: int, TOP_K: int) -> None:
    """Refuse tokens that the neighbour's box has no room for.

    Raises:
        ValueError: more of them, or wider ones, or with other choices.
    """
    CAPACITY, width = box.rows.shape
    if T > CAPACITY:
        raise ValueError(f"x: expected at most {CAPACITY} tokens, which a box has room for, got {T}")
    if width != D or box.choices.shape[1] != 2 * TOP_K:
        raise ValueError(
            f"mailbox: expected D={D}, TOP_K={TOP_K}, got D={width}, TOP_K={box.choices.shape[1] // 2}"
        )


# region send
def send(
    x: torch.Tensor, chosen: torch.Tensor, weights: torch.Tensor, experts: Experts, mailbox: Mailbox
) -> torch.Tensor:
    """Write the tokens that have an expert on the other card into its box, and tell it.

    Returns:
        (T,) int64: the row of the box that each went to; -1 for those that stay.
    """
    plan = outgoing(chosen, experts.card, experts.cards, experts.held)
    other = 1 - experts.card
    place = plan.place[:, other].contiguous()
    box = mailbox.theirs
    place_rows(x, place, box.rows)
    place_rows(torch.cat([chosen.int(), weights.view(torch.int32)], dim=1), place, box.choices)
    box.count.copy_(plan.counts[other : other + 1])
    mailbox.signal(ROWS)
    return place


# endregion


def arrived(mailbox: Mailbox, TOP_K: int) -> Tokens:
    """Return what the neighbour has sent; the stream must have waited for it."""
    box = mailbox.mine
    return Tokens(box.rows, box.choices[:, :TOP_K], box.count)


def send_back(y: torch.Tensor, place: torch.Tensor, mailbox: Mailbox) -> None:
    """Write the sums for the neighbour's tokens into its box, and tell it.

    Args:
        y, place: of the tokens that `arrived`, from `multiply`.
    """
    weights = mailbox.mine.choices[:, place.shape[1] :].view(torch.float32)
    sum_rows(y, place, mailbox.theirs.sums, weights=weights, count=mailbox.mine.count)
    mailbox.signal(SUMS)


def expert_parallel(
    x: torch.Tensor,
    chosen: torch.Tensor,
    weights: torch.Tensor,
    experts: Experts,
    *,
    mailbox: Mailbox,
    mark: Mark = unmarked,
) -> torch.Tensor:
    """Answers of the layer for this card's tokens.

    Args:
        x, chosen, weights: (T, D), (T, TOP_K), (T, TOP_K), see layer.py; T at most the mailbox's CAPACITY.
        experts: of this card, one of two.
        mailbox: of both cards.
        mark: called with "dispatched" and "multiplied" when that much has been asked for.
    Returns:
        (T, D) bfloat16.
    Raises:
        TypeError, ValueError: see `check_tokens`, `check_box`.
    """
    check_tokens(x, chosen, weights, experts)
    (T, D), TOP_K = x.shape, chosen.shape[1]
    check_box(mailbox.theirs, T, D, TOP_K)
    place = send(x, chosen, weights, experts, mailbox)
    mailbox.wait(ROWS)
    mark("dispatched")

    y, (own_place, their_place) = multiply(experts, Tokens(x, chosen), arrived(mailbox, TOP_K))
    own = torch.empty(T, D, dtype=torch.float32, device=x.device)
    sum_rows(y, own_place, own, weights=weights)
    mark("multiplied")

    send_back(y, their_place, mailbox)
    mailbox.wait(SUMS)
    out = torch.empty_like(x)
    sum_rows(mailbox.mine.sums, place[:, None], out, base=own)
    return out
