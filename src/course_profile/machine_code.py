"""Machine code of a kernel: PTX and SASS, line beside line, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from course_kernels.line_info import MachineLine, Place


@dataclass(frozen=True)
class Kernel:
    """One kernel's machine code.

    Attributes:
        name: as the machine code has it.
        arch: what it was compiled for, such as "sm_90a".
        registers: of a thread; 0 where the machine code does not say.
        shared_bytes: of a block, known before it is launched.
        asks_for_more: whether its launch says how much shared memory it has besides.
        local_bytes: of a thread: spilled registers, and arrays that are indexed at run time.
        sass, ptx: its lines.
    """

    name: str
    arch: str
    registers: int
    shared_bytes: int
    asks_for_more: bool
    local_bytes: int
    sass: tuple[MachineLine, ...]
    ptx: tuple[MachineLine, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Kernel:
        """Return the inverse of `as_json`."""
        return cls(**{**data, "sass": _lines(data["sass"]), "ptx": _lines(data["ptx"])})


def _lines(data: Sequence[Mapping[str, Any]]) -> tuple[MachineLine, ...]:
    return tuple(
        MachineLine(one["text"], one["name"], tuple(Place(**place) for place in one["places"]))
        for one in data
    )
