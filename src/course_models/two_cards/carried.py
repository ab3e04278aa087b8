"""Bytes that collectives carry, counted where each of them is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# By the name of torch's operator: what it is, which of its arguments is the whole message, and how often a ring sends
# that message but for one piece.
COLLECTIVES = {
    "allreduce_": ("all_reduce", 0, 2),
    "_allgather_base_": ("all_gather", 0, 1),
    "_reduce_scatter_base_": ("reduce_scatter", 1, 1),
}


class Carried(TorchDispatchMode):
    """Counts while it is entered; also what torch asks for in a backward pass.

    Args:
        cards: how many take part.
    Attributes:
        calls: of each kind of collective.
        sent_bytes: that leave a card in a ring, by kind.
    """

    def __init__(self, cards: int) -> None:
        super().__init__()
        self._cards = cards
        self.calls: Counter[str] = Counter()
        self.sent_bytes: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Count a collective, and let everything happen.

        Raises:
            NotImplementedError: a collective that is not in `COLLECTIVES`, whose bytes would be missing.
        """
        if func.namespace == "c10d":
            name = func.overloadpacket.__name__
            if name not in COLLECTIVES:
                raise NotImplementedError(f"c10d.{name}: expected one of {', '.join(COLLECTIVES)}")
            kind, which, times = COLLECTIVES[name]
            whole = sum(x.numel() * x.element_size() for x in _tensors(args[which]))
            self.calls[kind] += 1
            self.sent_bytes[kind] += times * whole * (self._cards - 1) // self._cards
        return func(*args, **(kwargs or {}))


def _tensors(x: torch.Tensor | Iterable[Any]) -> list[torch.Tensor]:
    if isinstance(x, torch.Tensor):
        return [x]
    return [tensor for part in x for tensor in _tensors(part)]
