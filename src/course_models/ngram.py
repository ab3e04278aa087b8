"""Counting instead of learning: n-grams over bytes, the baseline that a model of the same text has to beat.

How likely a byte is, given the few bytes before it, is how often it followed them in the text that was counted. What
was never seen must not be impossible, so every order gives a little to the order below it: *interpolated absolute
discounting*. With c(h b) the count of byte b behind the bytes h, c(h) their sum over b, and t(h) how many different
bytes followed h,

    p(b | h) = (max(c(h b) - D, 0) + D * t(h) * p(b | h without its first byte)) / c(h)

and p(b | h) = p(b | h without its first byte) where h was never seen; below the shortest h stands 1 / 256. The discount
D of each order is the estimate n1 / (n1 + 2 * n2), from how many n-grams occur once and twice: nothing is fitted to
the text that the loss is measured on. Exact, on the CPU, in NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LONGEST = 7  # bytes before the one that is guessed: with it they fill 64 bits
_HALF = 0.5  # the discount where an order has no n-gram that occurs once, or none that occurs twice


@dataclass(frozen=True)
class _Order:
    """Counts of one order, all sorted: of n-grams, and of the contexts they begin with."""

    grams: np.ndarray
    counts: np.ndarray
    contexts: np.ndarray
    totals: np.ndarray
    types: np.ndarray
    discount: float


class NGrams:
    """Counts of all orders up to a context of `context` bytes.

    Args:
        texts: what is counted; no n-gram goes from one text into the next.
        context: how many bytes stand before the one that is guessed, at most 7.
    Raises:
        ValueError: a context that is too long, or nothing to count.
    """

    def __init__(self, texts: Sequence[bytes], context: int = 3) -> None:
        if not 0 <= context <= LONGEST:
            raise ValueError(f"context: expected 0 to {LONGEST} bytes, got {context}")
        if not any(texts):
            raise ValueError("texts: expected at least one byte to count, got none")
        self.context = context
        self._orders = [_count(texts, k) for k in range(context + 1)]

    @property
    def discounts(self) -> tuple[float, ...]:
        """The discount of every order, from the one without a context on."""
        return tuple(order.discount for order in self._orders)

    def chances(self, text: bytes) -> np.ndarray:
        """Return how likely each byte of a text is by what stands before it in that text.

        Returns:
            (context + 1, len(text)) float64: row k looks at k bytes at most.
        """
        rows = np.empty((self.context + 1, len(text)))
        below = np.full(len(text), 1 / 256)
        for k, order in enumerate(self._orders):
            row = below.copy()
            grams = _grams(text, k)  # none of the first k bytes, which have fewer before them
            total, types = _found(order.contexts, grams >> np.uint64(8), order.totals, order.types)
            (count,) = _found(order.grams, grams, order.counts)
            seen = total > 0
            given = order.discount * types[seen] * below[k:][seen]
            row[k:][seen] = (np.maximum(count[seen] - order.discount, 0) + given) / total[seen]
            rows[k], below = row, row
        return rows

    def bits_per_byte(self, texts: Sequence[bytes]) -> tuple[float, ...]:
        """Return the loss on texts: the mean of -log2 of every byte's chance, by how many bytes the guess looks at."""
        size = sum(map(len, texts))
        if not size:
            raise ValueError("texts: expected at least one byte to measure on, got none")
        bits = sum(-np.log2(self.chances(text)).sum(axis=1) for text in texts if text)
        return tuple(float(b) for b in np.asarray(bits) / size)


def _grams(text: bytes, k: int) -> np.ndarray:
    """Return every byte from the k-th on with the k bytes before it, as one number: the byte in the lowest 8 bits."""
    data = np.frombuffer(text, dtype=np.uint8).astype(np.uint64)
    found = np.zeros(max(len(data) - k, 0), dtype=np.uint64)
    for i in range(k + 1):
        found = (found << np.uint64(8)) | data[i : i + len(found)]
    return found


def _count(texts: Sequence[bytes], k: int) -> _Order:
    grams, counts = np.unique(np.concatenate([_grams(text, k) for text in texts]), return_counts=True)
    # Sorted n-grams have those of one context side by side.
    contexts, first, types = np.unique(grams >> np.uint64(8), return_index=True, return_counts=True)
    totals = np.add.reduceat(counts, first) if len(first) else counts
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    discount = once / (once + 2 * twice) if once and twice else _HALF
    return _Order(grams, counts, contexts, totals, types, discount)


def _found(keys: np.ndarray, wanted: np.ndarray, *columns: np.ndarray) -> list[np.ndarray]:
    """Look up every wanted key's entry in each column, 0 where there is no such key."""
    if not len(keys):
        return [np.zeros(len(wanted), dtype=column.dtype) for column in columns]
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    there = keys[places] == wanted
    return [np.where(there, column[places], 0) for column in columns]
