"""Memory of a card that its neighbour writes into, and the signals that say when it has.

On two GPUs it is symmetric memory: each process maps the other card's buffer, and an address in it is an address like
any other. On the CPU two files stand in for it, so that all the rest can be tried without a card.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.distributed as dist

CARDS = 2
ROWS, SUMS = 0, 1  # what a signal is about: rows have been written, sums have
# A neighbour may still be compiling; one that died must not be waited for without end.
TIMEOUT_MS = 120_000
ALIGNED = 256  # bytes at which a part of the buffer begins


@dataclass(frozen=True)
class Box:
    """Parts of what a card receives: views of one buffer.

    Attributes:
        rows: (CAPACITY, D) bfloat16, the neighbour's tokens.
        choices: (CAPACITY, 2 TOP_K) int32: experts, then weights as 32 bits of float32.
        count: (1,) int64, how many there are.
        sums: (CAPACITY, D) bfloat16: what the neighbour's experts answered to this card's own tokens.
    """

    rows: torch.Tensor
    choices: torch.Tensor
    count: torch.Tensor
    sums: torch.Tensor


class Mailbox(Protocol):
    """Two cards' boxes, as one of them sees them."""

    mine: Box
    theirs: Box

    def signal(self, what: int) -> None:
        """Tell the neighbour, behind all that was written so far on the current stream."""

    def wait(self, what: int) -> None:
        """Let the current stream wait for the neighbour's signal."""


def parts_of(CAPACITY: int, D: int, TOP_K: int) -> tuple[list[tuple[torch.dtype, tuple[int, ...], int]], int]:
    """Return type, shape and first byte of each part of a box, and the bytes of all."""
    parts: list[tuple[torch.dtype, tuple[int, ...], int]] = []
    end = 0
    for dtype, shape in (
        (torch.bfloat16, (CAPACITY, D)),
        (torch.int32, (CAPACITY, 2 * TOP_K)),
        (torch.int64, (1,)),
        (torch.bfloat16, (CAPACITY, D)),
    ):
        parts.append((dtype, shape, end))
        end += -(-torch.Size(shape).numel() * dtype.itemsize // ALIGNED) * ALIGNED
    return parts, end


def box_in(buffer: torch.Tensor, CAPACITY: int, D: int, TOP_K: int) -> Box:
    """Return the parts of a box as views of its bytes.

    Args:
        buffer: (bytes,) uint8.
    """
    views = []
    for dtype, shape, begin in parts_of(CAPACITY, D, TOP_K)[0]:
        length = torch.Size(shape).numel() * dtype.itemsize
        views.append(buffer[begin : begin + length].view(dtype).view(shape))
    return Box(*views)


def check_cards(cards: int) -> None:
    """Refuse any number of cards but two.

    Raises:
        ValueError: it is another.
    """
    if cards != CARDS:
        raise ValueError(f"cards: expected {CARDS}, each the other's only neighbour, got {cards}")


class SymmetricMailbox:
    """Boxes in the memory of two GPUs, each mapped by both.

    Args:
        CAPACITY: tokens of a card at most.
        D, TOP_K: of the layer.
        group: of the two cards; the default one without it. Both make a mailbox at the same time.
    Raises:
        ValueError: not two cards.
        RuntimeError: the cards cannot reach each other's memory.
    """

    def __init__(self, CAPACITY: int, D: int, TOP_K: int, group: dist.ProcessGroup | None = None) -> None:
        import torch.distributed._symmetric_memory as symmetric_memory

        group = group or dist.group.WORLD
        check_cards(dist.get_world_size(group))
        here = torch.cuda.current_device()
        others = [other for other in range(torch.cuda.device_count()) if other != here]
        if not any(torch.cuda.can_device_access_peer(here, other) for other in others):
            raise RuntimeError(f"cuda:{here}: it reaches the memory of no other card of this machine")
        size = parts_of(CAPACITY, D, TOP_K)[1]
        self._buffer = symmetric_memory.empty(size, dtype=torch.uint8, device=f"cuda:{here}")
        self._handle: Any = symmetric_memory.rendezvous(self._buffer, group)
        self._other = 1 - self._handle.rank
        # `get_buffer` begins where an allocation does, which tensors of a pool share.
        mapped = getattr(self._handle, "get_remote_tensor", self._handle.get_buffer)
        theirs = mapped(self._other, (size,), torch.uint8)
        self.mine = box_in(self._buffer, CAPACITY, D, TOP_K)
        self.theirs = box_in(theirs, CAPACITY, D, TOP_K)

    def signal(self, what: int) -> None:
        """See `Mailbox`."""
        self._handle.put_signal(self._other, what, TIMEOUT_MS)

    def wait(self, what: int) -> None:
        """See `Mailbox`."""
        self._handle.wait_signal(self._other, what, TIMEOUT_MS)


class FileMailbox:
    """Boxes in two files that two processes on the CPU map.

    Args:
        folder: of the files; both processes have the same.
        CAPACITY, D, TOP_K, group: as in `SymmetricMailbox`.
    Raises:
        ValueError: not two processes.
    """

    def __init__(
        self, folder: Path, CAPACITY: int, D: int, TOP_K: int, group: dist.ProcessGroup | None = None
    ) -> None:
        check_cards(dist.get_world_size(group))
        self._group, self._card = group, dist.get_rank(group)
        size = parts_of(CAPACITY, D, TOP_K)[1]
        boxes = []
        for card in range(CARDS):
            file = folder / f"box{card}"
            if card == self._card:
                file.write_bytes(bytes(size))
            dist.barrier(group)
            buffer = torch.from_file(str(file), shared=True, size=size, dtype=torch.uint8)
            boxes.append(box_in(buffer, CAPACITY, D, TOP_K))
        self.mine, self.theirs = boxes[self._card], boxes[1 - self._card]
        self._sent: list[Any] = []

    def signal(self, what: int) -> None:
        """See `Mailbox`."""
        self._sent.append(dist.isend(torch.ones(1), 1 - self._card, group=self._group, tag=what))

    def wait(self, what: int) -> None:
        """See `Mailbox`."""
        dist.recv(torch.empty(1), 1 - self._card, group=self._group, tag=what)
