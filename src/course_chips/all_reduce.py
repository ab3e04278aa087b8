"""An all-reduce among cards, on numbers small enough to follow with a pencil: a ring, and a tree.

Afterwards every card has the sum of what all of them had. In one round a card sends to neighbours, and all do so at
once.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Run:
    """An all-reduce, round by round.

    Attributes:
        rounds: what each card had, before the first round and after each; the last is the answer.
            [rounds + 1][n][numbers]
        sent: numbers that each card sent, in all rounds together. [n]
    """

    rounds: list[list[list[int]]]
    sent: list[int]


def ring(cards: list[list[int]]) -> Run:
    """Send one piece a round to the card on the right: first each adds what it gets, then each keeps it.

    Args:
        cards: n cards, each with as many numbers as there are cards: n pieces of one number.
    Raises:
        ValueError: a card has another number of pieces.
    """
    n = len(cards)
    if any(len(card) != n for card in cards):
        raise ValueError(f"expected {n} numbers on each of {n} cards, got {[len(card) for card in cards]}")
    rounds, sent = [[list(card) for card in cards]], [0] * n
    for step in range(2 * (n - 1)):
        before, after = rounds[-1], [list(card) for card in rounds[-1]]
        for card in range(n):
            right, piece = (card + 1) % n, (card - step) % n
            kept = before[right][piece] if step < n - 1 else 0
            after[right][piece] = kept + before[card][piece]
            sent[card] += 1
        rounds.append(after)
    return Run(rounds, sent)


def tree(cards: list[list[int]]) -> Run:
    """Send all numbers up to a parent, which adds them; then send the sums down again.

    Card 0 is the root, and card c has children 2c + 1 and 2c + 2.
    """
    n = len(cards)
    rounds, sent = [[list(card) for card in cards]], [0] * n
    levels = [
        [c for c in range(1, n) if (c + 1).bit_length() - 1 == depth] for depth in range(1, n.bit_length())
    ]
    for level in reversed(levels):
        after = [list(card) for card in rounds[-1]]
        for card in level:
            after[_parent(card)] = [
                a + b for a, b in zip(after[_parent(card)], rounds[-1][card], strict=True)
            ]
            sent[card] += len(cards[card])
        rounds.append(after)
    for level in levels:
        after = [list(card) for card in rounds[-1]]
        for card in level:
            after[card] = list(rounds[-1][_parent(card)])
            sent[_parent(card)] += len(cards[card])
        rounds.append(after)
    return Run(rounds, sent)


def _parent(card: int) -> int:
    return (card - 1) // 2
