"""Sums over all chips of a box in which every pair has a link of its own: straight to the owner, or round a ring.

Every chip begins with a list of numbers, and every chip ends with the sum of all lists. The lists are cut into as many
pieces as there are chips; piece j belongs to chip j. Nothing here is a network: numbers are added in NumPy, and what
would cross a link is counted.

    python -m course_chips.straight_or_ring 8
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Exchange:
    """Sums of all chips, and what crossed the links for them.

    Attributes:
        sums: what each chip has at the end, [chips, numbers].
        sent: bytes from each chip to each other one, [chips, chips].
        steps: rounds in which a chip waited for a piece of the round before.
    """

    sums: np.ndarray
    sent: np.ndarray
    steps: int

    def least_us(self, gb_per_s: float) -> float:
        """Return the microseconds that the busiest link needs, each of so many GB/s in each direction."""
        return float(self.sent.max()) / gb_per_s / 1e3

    @property
    def links_used(self) -> float:
        """Return which part of the links, each way counted for itself, carried anything."""
        chips = len(self.sent)
        return float((self.sent > 0).sum()) / (chips * (chips - 1))


def _pieces(lists: np.ndarray) -> list[slice]:
    """Return where each chip's piece lies.

    Raises:
        ValueError: not one list for each of two chips or more, or lists that do not divide evenly.
    """
    if lists.ndim != 2 or len(lists) < 2 or lists.shape[1] % len(lists):
        raise ValueError(f"lists: expected [chips, a multiple of chips] for two or more, got {lists.shape}")
    size = lists.shape[1] // len(lists)
    return [slice(j * size, (j + 1) * size) for j in range(len(lists))]


def straight(lists: np.ndarray) -> Exchange:
    """Add up by sending piece j of every list to chip j at once, and then j's sums to all.

    Args:
        lists: [chips, numbers], numbers divisible by chips.
    Returns:
        The sums of all chips, and what crossed each link.
    """
    pieces = _pieces(lists)
    chips = len(lists)
    have, sent = lists.copy(), np.zeros((chips, chips))
    for owner, piece in enumerate(pieces):  # each adds up its own piece
        have[owner, piece] = lists[:, piece].sum(axis=0)
        sent[:, owner] += lists[:, piece].nbytes / chips
    for owner, piece in enumerate(pieces):  # and tells the others
        have[:, piece] = have[owner, piece]
        sent[owner, :] += have[owner, piece].nbytes
    np.fill_diagonal(sent, 0)  # what stays at home crosses no link
    return Exchange(have, sent, steps=2)


def round_a_ring(lists: np.ndarray) -> Exchange:
    """Add up by handing each piece on to the next chip, round once with sums that grow and once more with whole sums.

    Args:
        lists: [chips, numbers], numbers divisible by chips.
    Returns:
        The sums of all chips, and what crossed each link.
    """
    pieces = _pieces(lists)
    chips = len(lists)
    have, sent = lists.copy(), np.zeros((chips, chips))
    for step in range(2 * (chips - 1)):
        grows = step < chips - 1
        before = have.copy()  # all send at the same time
        for chip in range(chips):
            piece, to = pieces[(chip - step) % chips], (chip + 1) % chips
            have[to, piece] = before[chip, piece] + (before[to, piece] if grows else 0)
            sent[chip, to] += before[chip, piece].nbytes
    return Exchange(have, sent, steps=2 * (chips - 1))


WAYS: dict[str, Callable[[np.ndarray], Exchange]] = {"straight": straight, "round a ring": round_a_ring}


def main(arguments: Sequence[str]) -> int:
    """Print both ways for so many chips, 8 without an argument."""
    chips = int(arguments[0]) if arguments else 8
    lists = np.arange(chips * chips * 1024, dtype=np.float64).reshape(chips, -1)
    for name, way in WAYS.items():
        done = way(lists)
        right = np.array_equal(done.sums, np.broadcast_to(lists.sum(axis=0), lists.shape))
        print(
            f"{name}: {'right' if right else 'WRONG'}, {done.steps} steps, {done.links_used:.0%} of the links used, "
            f"{done.sent.sum(axis=1).max() / lists[0].nbytes:.2f} lists sent by a chip, "
            f"{done.sent.max() / lists[0].nbytes:.3f} of them over its busiest link"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
