"""The partition of kernels whose lanes keep b: blocks that have as many rows, within one, as each other."""

from __future__ import annotations

from typing import NamedTuple

WARP_NUMBERS = 32 * 32  # of a row, what a warp takes: 16 bytes a lane
MOST_WARPS = 16  # of a block; two such blocks leave 64 registers for each lane
BLOCKS = 2  # a multiprocessor
MOST_ROWS = 256  # of a block, as in the .cu files


class Cut(NamedTuple):
    """Partition of the work: blocks of a batch, warps along a row, and rows side by side in a block."""

    blocks: int
    warps: int
    groups: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps * self.groups

    @property
    def defines(self) -> dict[str, int]:
        """Macros of the kernel."""
        return {"WARPS": self.warps, "GROUPS": self.groups}


def cut_of(L: int, M: int, K: int, multiprocessors: int) -> Cut:
    """Return what suits a card with so many multiprocessors.

    As many warps as a row fills, and as many rows side by side as fit into a block. Then as many blocks of each batch
    as are on the card at once, but none without a row for each group, and none with more rows than it has room for.
    """
    warps = min(-(-K // WARP_NUMBERS), MOST_WARPS)
    groups = MOST_WARPS // warps
    blocks = max(min(BLOCKS * multiprocessors // L, -(-M // groups)), -(-M // MOST_ROWS), 1)
    return Cut(blocks, warps, groups)


def check_cut(cut: Cut, M: int) -> None:
    """Refuse a cut that a block has no room for.

    Raises:
        ValueError: more than 16 warps in a block, more than 256 rows, or none of one or the other.
    """
    warps = cut.warps * cut.groups
    if not (0 < warps <= MOST_WARPS and cut.groups > 0 and cut.blocks > 0 and cut.blocks * MOST_ROWS >= M):
        raise ValueError(
            f"cut: expected 1 to {MOST_WARPS} warps and at most {MOST_ROWS} rows a block, got {cut} for M={M}"
        )
