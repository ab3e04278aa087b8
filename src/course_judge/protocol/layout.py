"""Places of tensors in the memory that the judge and a worker share. Needs neither torch nor NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

GUARD_BYTES = 2**20  # on either side of a tensor; whole pages, so that every alignment stays
ALIGNED = 4096


@dataclass(frozen=True)
class Place:
    """A tensor in shared memory.

    Attributes:
        at: byte of its first element.
        span: elements from its first to its last in memory; more than it has where its rows lie apart.
        dtype: torch's name, or NumPy's.
        shape, strides: in elements.
    """

    at: int
    span: int
    item_bytes: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Bytes from the first element to the last."""
        return self.span * self.item_bytes

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Place:
        """Return a place from plain data, unchecked."""
        return cls(**{**data, "shape": tuple(data["shape"]), "strides": tuple(data["strides"])})


def aligned(size: int) -> int:
    """Return bytes, up to where something else may begin."""
    return -(-size // ALIGNED) * ALIGNED


def span_of(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Elements from the first to the last one of a tensor in memory; 0 for an empty one."""
    if not all(shape):
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


class Layout:
    """Places one behind the other, with guards around each."""

    def __init__(self) -> None:
        self._end = 0

    def place(self, shape: Sequence[int], strides: Sequence[int], dtype: str, item_bytes: int) -> Place:
        """Return the next place."""
        at = self._end + GUARD_BYTES
        span = span_of(shape, strides)
        self._end = at + aligned(span * item_bytes)
        return Place(at, span, item_bytes, dtype, tuple(shape), tuple(strides))

    def room(self, size: int) -> int:
        """Return the byte where so many bytes of room begin."""
        at = self._end + GUARD_BYTES
        self._end = at + aligned(size)
        return at

    @property
    def bytes(self) -> int:
        """Bytes of everything, with the last guard."""
        return self._end + GUARD_BYTES
