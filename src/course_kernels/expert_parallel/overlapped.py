"""Expert parallelism, overlapped: own tokens are multiplied while the others travel.

Contract  as stored.py
Idea      the rows leave on a stream of their own; the multiply of the tokens that stay needs none of what is on its way
Against   stored.py: nothing is multiplied before the last row has arrived
Cost      two multiplies instead of one: the weights of an expert that both parts need are read twice. And the stores
          take multiprocessors from the multiply beside them
Limits    only the way there is hidden; the way back still comes after everything
Source    DeepSeek-AI 2024, arXiv:2412.19437, section 3.4.1: two halves of a batch, one multiplied while one travels
"""

from __future__ import annotations

import contextlib
import functools

import torch

from course_kernels.expert_parallel.by_card import Mark, unmarked
from course_kernels.expert_parallel.experts import Tokens, check_tokens, multiply
from course_kernels.expert_parallel.layer import Experts
from course_kernels.expert_parallel.mailbox import ROWS, SUMS, Mailbox
from course_kernels.expert_parallel.rows import sum_rows
from course_kernels.expert_parallel.stored import arrived, check_box, send, send_back


@functools.cache
def _road(device: torch.device) -> torch.cuda.Stream:
    """Return the stream on which rows leave: before the multiply that waits beside it, or they would come after."""
    return torch.cuda.Stream(device, priority=-1)


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
        x, chosen, weights, experts, mailbox: as in stored.py.
        mark: never called: the stages lie beside each other.
    Returns:
        (T, D) bfloat16.
    Raises:
        TypeError, ValueError: see `check_tokens`, `check_box`.
    """
    check_tokens(x, chosen, weights, experts)
    (T, D), TOP_K = x.shape, chosen.shape[1]
    check_box(mailbox.theirs, T, D, TOP_K)
    is_on_gpu = x.device.type == "cuda"
    road = _road(x.device) if is_on_gpu else None
    if road is not None:
        road.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(road) if is_on_gpu else contextlib.nullcontext():
        place = send(x, chosen, weights, experts, mailbox)

    y, (own_place,) = multiply(experts, Tokens(x, chosen))
    own = torch.empty(T, D, dtype=torch.float32, device=x.device)
    sum_rows(y, own_place, own, weights=weights)

    mailbox.wait(ROWS)
    y, (their_place,) = multiply(experts, arrived(mailbox, TOP_K))
    send_back(y, their_place, mailbox)
    if road is not None:  # `place` and what else was made there
        torch.cuda.current_stream().wait_stream(road)
    mailbox.wait(SUMS)
    out = torch.empty_like(x)
    sum_rows(mailbox.mine.sums, place[:, None], out, base=own)
    return out
