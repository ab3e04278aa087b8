"""AllReduce of two cards by a ring: a reduce-scatter of halves, then an all-gather of them.

Contract  x: (N,) float32 on each of two cards, N even -> both hold the sum of the two, in place; a call on each at the
          same time
Idea      card c owns half c. Reduce-scatter: each sends the half that it does not own into the neighbour's box, and
          adds what has arrived to its own. All-gather: the kernel that adds stores the sum twice, at home and in the
          neighbour's memory, so no sum is read again to be sent
Against   dist.all_reduce, which is NCCL's
Cost      N numbers leave a card in all, as in every ring of two; the box is as long as a part
Limits    two cards of one host that map each other's memory. x lies in that memory, too. The steps follow each other:
          nobody adds while numbers travel, and the signals between steps are dear for a short message
Source    PyTorch, torch.distributed._symmetric_memory
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import torch
import triton
import triton.language as tl

from course_kernels.expert_parallel.mailbox import Pair

CARDS = 2
HALF, SUM = 0, 1  # what a signal is about: a half has arrived, a sum has
BLOCK = 4096  # numbers of a program: vectors of sixteen bytes, and a grid that the largest message fits
WARPS = 8


# region add_to_both
@triton.jit
def add_to_both_kernel(mine_ptr, arrived_ptr, theirs_ptr, N, BLOCK: tl.constexpr):
    """Add what has arrived to what is here, and store the sum on both cards."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(mine_ptr + i, mask=i < N) + tl.load(arrived_ptr + i, mask=i < N)
    tl.store(mine_ptr + i, total, mask=i < N)
    tl.store(theirs_ptr + i, total, mask=i < N)


# endregion


class Ring:
    """A message on each card, and what a ring of two needs beside it.

    Args:
        pair: buffers of at least `bytes_of(N)`.
        N: numbers of a message.
    Attributes:
        x: (N,) float32, this card's message; the sum, after `all_reduce`.
    Raises:
        ValueError: N is odd or below 2, or the buffers are too small.
    """

    def __init__(self, pair: Pair, N: int) -> None:
        if N < CARDS or N % CARDS:
            raise ValueError(f"N: expected an even number of at least {CARDS}, got {N}")
        if pair.mine.numel() < bytes_of(N):
            raise ValueError(
                f"pair: expected at least {bytes_of(N)} bytes for N={N}, got {pair.mine.numel()}"
            )
        half = N // CARDS
        mine, theirs = (part[: bytes_of(N)].view(torch.float32) for part in (pair.mine, pair.theirs))
        self._pair = pair
        self.x, self._box = mine[:N], mine[N:]
        self._their_box = theirs[N:]
        owned = slice(pair.card * half, (pair.card + 1) * half)
        lent = slice((1 - pair.card) * half, (2 - pair.card) * half)
        self._owned, self._lent = self.x[owned], self.x[lent]
        self._their_copy = theirs[:N][owned]  # where the neighbour wants the half that this card owns

    # region all_reduce
    def all_reduce(self) -> None:
        """Put the sum of both messages into both."""
        self._their_box.copy_(self._lent)  # reduce-scatter: a half over the link
        self._pair.signal(HALF)
        self._pair.wait(HALF)
        self._add_to_both()  # it adds, and its second store is the all-gather
        self._pair.signal(SUM)
        self._pair.wait(SUM)

    # endregion

    def _add_to_both(self) -> None:
        half = self._owned.numel()
        grid = (triton.cdiv(half, BLOCK),)
        add_to_both_kernel[grid](self._owned, self._box, self._their_copy, half, BLOCK=BLOCK, num_warps=WARPS)


def bytes_of(N: int) -> int:
    """Return the bytes of a message of N numbers and of the box beside it."""
    return 4 * (N + N // CARDS)
