"""A step of few tokens, replayed from CUDA graphs: one for each of a few numbers of rows.

A graph has fixed shapes. So every token is a row, that of a prompt as that of an answer, and their number is rounded up
to the next one that is captured; rows that stand for nobody write to page 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from course_models.capture import captured
from course_models.serving.paged import SCRATCH, PagedModel
from course_models.serving.scheduler import Share

# With more rows a kernel runs long enough for the host to launch the next one meanwhile. And as a row each token of a
# prompt reads for itself what stands before it; a piece of a prompt reads it once for all its tokens.
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Graphs:
    """Captured steps of one `PagedModel`, each when it is first needed."""

    def __init__(self, paged: PagedModel, most_tokens: int, rows: Sequence[int] = ROWS) -> None:
        """
        Args:
            most_tokens: of a request: what a block table must have room for.
            rows: numbers of them that are captured.
        """
        device = paged.keys.device
        self.paged, self.sizes = paged, sorted(rows)
        most = self.sizes[-1]
        self._token = torch.zeros(most, dtype=torch.int64, device=device)
        width = -(-most_tokens // paged.page_tokens)
        self._table = torch.full((most, width), SCRATCH, dtype=torch.int32, device=device)
        self._lengths = torch.ones(most, dtype=torch.int32, device=device)
        self._held: dict[int, tuple[torch.cuda.CUDAGraph, Tensor]] = {}

    def takes(self, shares: Sequence[Share]) -> bool:
        """Return whether their tokens are not too many."""
        return 0 < sum(share.tokens for share in shares) <= self.sizes[-1]

    def step(self, shares: Sequence[Share]) -> Tensor:
        """Run `PagedModel.step`; the logits lie in memory of a graph, the next step writes over them."""
        table, lengths = self.paged.tables(shares)
        rows, width = table.shape
        tokens: list[int] = []
        ends: list[int] = []
        for share in shares:
            first = share.running.computed
            tokens += share.running.tokens[first : first + share.tokens]
            if share.ends:
                ends.append(len(tokens) - 1)
        self._table.fill_(SCRATCH)
        self._lengths.fill_(1)
        self._token[:rows] = torch.tensor(tokens)
        self._table[:rows, :width] = table
        self._lengths[:rows] = lengths
        size = next(size for size in self.sizes if size >= rows)
        if size not in self._held:
            self._held[size] = self._captured(size)
        graph, logits = self._held[size]
        graph.replay()
        return logits[:rows] if len(ends) == rows else logits[ends]

    def _captured(self, size: int) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        # What is written while warming up is what the replay writes once more.
        given = self._token[:size], self._table[:size], self._lengths[:size]
        return captured(lambda: self.paged.rows(*given))
