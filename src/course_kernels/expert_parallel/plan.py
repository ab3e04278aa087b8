"""The plan of who sends what where: counts and places, from the choices alone, on the card, without asking the host.

A *place* is a row of some target, or -1: this one does not go there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Outgoing:
    """Rows that leave a card.

    Attributes:
        place: (T, CARDS) int64: in which row of what that card gets a token stands; -1 where no expert of that card is
            chosen, and for the card itself.
        counts: (CARDS,) int64: rows to each card.
    """

    place: torch.Tensor
    counts: torch.Tensor

    @property
    def packed(self) -> torch.Tensor:
        """`place` in one buffer, (T, CARDS): the rows to card 0 first, then those to card 1, and so on."""
        begin = self.counts.cumsum(0) - self.counts
        return torch.where(self.place >= 0, self.place + begin, -1)


def outgoing(chosen: torch.Tensor, card: int, cards: int, held: int) -> Outgoing:
    """Plan one row for each token and each other card that holds an expert of it, in the order of the tokens.

    Args:
        chosen: (T, TOP_K) int64, numbers of experts.
        card, cards: this card, and how many there are.
        held: experts of one card.
    """
    where = chosen // held
    # A row for each card, its tokens side by side: along rows PyTorch adds up with many threads, and down the columns
    # of a tall table with one thread a column.
    goes = torch.stack([(where == other).any(dim=1) for other in range(cards)])
    goes[card] = False
    place = torch.where(goes, goes.cumsum(1) - 1, -1).t().contiguous()
    return Outgoing(place, goes.sum(1))


def rows_for_each_choice(chosen: torch.Tensor, card: int, held: int) -> torch.Tensor:
    """Return how many rows leave a card if every choice of a foreign expert takes a row of its own: 0-d int64."""
    return (chosen // held != card).sum()


@dataclass(frozen=True)
class ByExpert:
    """Choices, sorted by expert.

    Attributes:
        places: for every part its (N, TOP_K) int64: which sorted row belongs to a choice; -1: an expert of elsewhere.
        ends: (held,) int32: behind which row the rows of each expert end.
    """

    places: tuple[torch.Tensor, ...]
    ends: torch.Tensor


def by_expert(parts: Sequence[tuple[torch.Tensor, torch.Tensor | None]], first: int, held: int) -> ByExpert:
    """Sort the choices of all parts by expert; among those of one expert they stay in order.

    Args:
        parts: chosen (N, TOP_K), whole numbers; and how many of the N rows count, (1,) int64, or None for all.
        first, held: the experts of this card.
    """
    keys = []
    for chosen, count in parts:
        own = chosen.long() - first
        is_own = (own >= 0) & (own < held)
        if count is not None:  # what lies behind is of an earlier call
            is_own &= (torch.arange(len(chosen), device=chosen.device) < count)[:, None]
        keys.append(torch.where(is_own, own, held).reshape(-1))
    key = torch.cat(keys)
    order = key.sort(stable=True).indices
    place = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
    place = torch.where(key < held, place, -1)
    per_expert = torch.zeros(held + 1, dtype=torch.int64, device=key.device)
    per_expert.scatter_add_(0, key, torch.ones_like(key))
    shapes = [chosen.shape for chosen, _ in parts]
    split = place.split([shape.numel() for shape in shapes])
    places = tuple(part.view(shape) for part, shape in zip(split, shapes, strict=True))
    return ByExpert(places, per_expert[:held].cumsum(0).int())
