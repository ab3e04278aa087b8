"""Our multiply and our attention as hls4ml takes them: small, of whole matrices, and with no loop in them.

Contract  C (M, N) = A (M, K) @ B (K, N); O (D) = softmax(K q) V for one query q (D), already divided by sqrt(D)
Idea      a circuit has a place for every product. So the sizes are part of it, and queries pass one after the other
Against   course_kernels/gemm and attention, whose sizes are arguments, and where a loop goes through tiles
Limits    numbers of fixed point: nothing warns where one does not fit
"""

from __future__ import annotations

import torch
from torch import nn


# region circuits
class Multiply(nn.Module):
    """A product of two matrices."""

    index = "bmk,bkn->bmn"  # b: hls4ml asks for a batch, and it is 1

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Return a @ b, (b, M, N)."""
        return torch.einsum(self.index, a, b)


class Attention(nn.Module):
    """One query against all keys."""

    scores, answer = "bd,bnd->bn", "bn,bnd->bd"

    def __init__(self) -> None:
        super().__init__()
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Return softmax(k q) v, (b, D)."""
        weights = self.softmax(torch.einsum(self.scores, q, k))
        return torch.einsum(self.answer, weights, v)


# endregion


class AttentionOfAllRows(nn.Module):
    """All queries at once: hls4ml takes it, and its softmax goes over the whole matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Return what ought to be softmax(q k^T) v, (b, N, D)."""
        weights = self.softmax(torch.einsum("bmd,bnd->bmn", q, k))
        return torch.einsum("bmn,bnd->bmd", weights, v)


class MultiplyTurned(Multiply):
    """A wrong index: B is read by its columns."""

    index = "bmk,bnk->bmn"


class AttentionTurned(Attention):
    """A wrong index: V is read by its columns."""

    answer = "bn,bdn->bd"
