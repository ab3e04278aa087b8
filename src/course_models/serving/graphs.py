"""A step in which all decode, replayed from CUDA graphs: one for each of a few batch sizes.

A graph has fixed shapes. So a step is rounded up to the next size, and the rows that stand for nobody write to page 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from course_models.capture import captured
from course_models.serving.paged import SCRATCH, PagedModel
from course_models.serving.schedule import Share

BATCHES = (1, 2, 4, 8, 16, 32, 64)


class Graphs:
    """Captured steps of one `PagedModel`, each when it is first needed."""

    def __init__(self, paged: PagedModel, most_tokens: int, batches: Sequence[int] = BATCHES) -> None:
        """
        Args:
            most_tokens: of a request: what a block table must have room for.
            batches: sizes that are captured.
        Raises:
            RuntimeError: the cache is not on a GPU.
        """
        device = paged.keys.device
        if device.type != "cuda":
            raise RuntimeError(f"graphs: expected a cache on a GPU, got {device}: serve without graphs there")
        self.paged, self.batches = paged, sorted(batches)
        most = self.batches[-1]
        self._token = torch.zeros(most, dtype=torch.int64, device=device)
        width = -(-most_tokens // paged.page_tokens)
        self._table = torch.full((most, width), SCRATCH, dtype=torch.int32, device=device)
        self._lengths = torch.ones(most, dtype=torch.int32, device=device)
        self._held: dict[int, tuple[torch.cuda.CUDAGraph, Tensor]] = {}

    def takes(self, shares: Sequence[Share]) -> bool:
        """Whether all decode, and are not too many."""
        return 0 < len(shares) <= self.batches[-1] and all(share.tokens == 1 for share in shares)

    def step(self, shares: Sequence[Share]) -> Tensor:
        """As `PagedModel.step`; the logits lie in memory of a graph, the next step writes over them."""
        table, lengths = self.paged.tables(shares)
        B, width = table.shape
        self._table.fill_(SCRATCH)
        self._lengths.fill_(1)
        self._token[:B] = torch.tensor([share.running.tokens[share.running.computed] for share in shares])
        self._table[:B, :width] = table
        self._lengths[:B] = lengths
        size = next(size for size in self.batches if size >= B)
        if size not in self._held:
            self._held[size] = self._captured(size)
        graph, logits = self._held[size]
        graph.replay()
        ends = [row for row, share in enumerate(shares) if share.ends]
        return logits[:B] if len(ends) == B else logits[ends]

    def _captured(self, size: int) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        # What is written while warming up is what the replay writes once more.
        given = self._token[:size], self._table[:size], self._lengths[:size]
        return captured(lambda: self.paged.decode(*given))
