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


class Pair(Protocol):
    """A buffer of bytes on each of two cards, as one of them sees them."""

    card: int
    mine: torch.Tensor
    theirs: torch.Tensor

    def signal(self, what: int) -> None:
        """Tell the neighbour, behind all that was written so far on the current stream."""

    def wait(self, what: int) -> None:
        """Let the current stream wait for the neighbour's signal."""


class SymmetricPair:
    """Buffers in the memory of two GPUs, each mapped by both.

    Args:
        size_bytes: of each.
        group: of the two cards; the default one without it. Both make a pair at the same time.
    Raises:
        ValueError: not two cards.
        RuntimeError: the cards cannot reach each other's memory.
    """

    def __init__(self, size_bytes: int, group: dist.ProcessGroup | None = None) -> None:
        import torch.distributed._symmetric_memory as symmetric_memory

        group = group or dist.group.WORLD
        check_cards(dist.get_world_size(group))
        here = torch.cuda.current_device()
        others = [other for other in range(torch.cuda.device_count()) if other != here]
        if not any(torch.cuda.can_device_access_peer(here, other) for other in others):
            raise RuntimeError(f"cuda:{here}: it reaches the memory of no other card of this machine")
        self.mine = symmetric_memory.empty(size_bytes, dtype=torch.uint8, device=f"cuda:{here}")
        self._handle: Any = symmetric_memory.rendezvous(self.mine, group)
        self.card = self._handle.rank
        # `get_buffer` begins where an allocation does, which tensors of a pool share.
        mapped = getattr(self._handle, "get_remote_tensor", self._handle.get_buffer)
        self.theirs = mapped(1 - self.card, (size_bytes,), torch.uint8)

    def signal(self, what: int) -> None:
        """See `Pair`."""
        self._handle.put_signal(1 - self.card, what, TIMEOUT_MS)

    def wait(self, what: int) -> None:
        """See `Pair`."""
        self._handle.wait_signal(1 - self.card, what, TIMEOUT_MS)


class FilePair:
    """Buffers in two files that two processes on the CPU map.

    Args:
        folder: of the files; both processes have the same.
        size_bytes, group: as in `SymmetricPair`.
    Raises:
        ValueError: not two processes.
    """

    def __init__(self, folder: Path, size_bytes: int, group: dist.ProcessGroup | None = None) -> None:
        check_cards(dist.get_world_size(group))
        self._group, self.card = group, dist.get_rank(group)
        buffers = []
        for card in range(CARDS):
            file = folder / f"box{card}"
            if card == self.card:
                file.write_bytes(bytes(size_bytes))
            dist.barrier(group)
            buffers.append(torch.from_file(str(file), shared=True, size=size_bytes, dtype=torch.uint8))
        self.mine, self.theirs = buffers[self.card], buffers[1 - self.card]
        self._sent: list[Any] = []

    def signal(self, what: int) -> None:
        """See `Pair`."""
        self._sent.append(dist.isend(torch.ones(1), 1 - self.card, group=self._group, tag=what))

    def wait(self, what: int) -> None:
        """See `Pair`."""
        dist.recv(torch.empty(1), 1 - self.card, group=self._group, tag=what)


class _BoxesIn:
    """Boxes in a pair of buffers, and its signals."""

    def __init__(self, pair: Pair, CAPACITY: int, D: int, TOP_K: int) -> None:
        self._pair = pair
        self.mine = box_in(pair.mine, CAPACITY, D, TOP_K)
        self.theirs = box_in(pair.theirs, CAPACITY, D, TOP_K)

    def signal(self, what: int) -> None:
        """See `Mailbox`."""
        self._pair.signal(what)

    def wait(self, what: int) -> None:
        """See `Mailbox`."""
        self._pair.wait(what)


class SymmetricMailbox(_BoxesIn):
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
        size = parts_of(CAPACITY, D, TOP_K)[1]
        super().__init__(SymmetricPair(size, group), CAPACITY, D, TOP_K)


class FileMailbox(_BoxesIn):
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
        size = parts_of(CAPACITY, D, TOP_K)[1]
        super().__init__(FilePair(folder, size, group), CAPACITY, D, TOP_K)
