"""A systolic array, cycle by cycle: weights stay in a grid of cells, rows of A flow through it from left to right.

Cell (k, n) holds B[k, n]. In each cycle it takes a number of A from its left neighbour and a sum from the cell above,
adds the product of that number and its weight to the sum, and hands both on: the number to the right, the sum down.
Row m of A comes in slanted: its number k enters the grid's row k one cycle after its number k - 1 entered row k - 1, so
that a sum, on its way down, meets the numbers of one and the same row. So work AWS's Tensor Engine and Google's MXU, as
far as their documents tell.

    python -m course_chips.systolic 3 4 4
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

NOBODY = -1  # of a cell that has no number of A


@dataclass(frozen=True)
class Cycle:
    """One cycle: which row each cell works on, and what leaves the grid.

    Attributes:
        number: of the cycle, from 1.
        row: which row of A each cell works on, [K, N]; NOBODY for none.
        left: rows and columns of C that left the grid below, with their sums.
    """

    number: int
    row: np.ndarray
    left: tuple[tuple[int, int, float], ...]

    @property
    def busy(self) -> int:
        """Return how many cells multiply."""
        return int((self.row != NOBODY).sum())


def cycles(a: np.ndarray, b: np.ndarray) -> Iterator[Cycle]:
    """Let the rows of A flow through a grid that holds B, and yield each cycle from the first number to the last sum.

    Args:
        a: [M, K].
        b: [K, N].
    Raises:
        ValueError: shapes that do not fit together, or are empty.
    """
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0] or 0 in (*a.shape, *b.shape):
        raise ValueError(
            f"expected A [M, K] and B [K, N] with something in them, got {a.shape} and {b.shape}"
        )
    (M, K), N = a.shape, b.shape[1]
    number = np.zeros((K, N))
    row = np.full((K, N), NOBODY)
    sums = np.zeros((K, N))
    for t in range(M + K + N - 2):
        number[:, 1:], row[:, 1:] = number[:, :-1].copy(), row[:, :-1].copy()  # to the right
        for k in range(K):
            m = t - k
            inside = 0 <= m < M
            number[k, 0] = a[m, k] if inside else 0.0
            row[k, 0] = m if inside else NOBODY
        sums[1:] = sums[:-1].copy()  # downwards
        sums[0] = 0.0
        sums += number * b
        below = tuple((int(row[-1, n]), n, float(sums[-1, n])) for n in range(N) if row[-1, n] != NOBODY)
        yield Cycle(t + 1, row.copy(), below)


def multiply(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, list[Cycle]]:
    """Return A times B, put together from the sums that left the grid, and all cycles."""
    c = np.full((len(a), b.shape[1]), np.nan)
    seen = []
    for cycle in cycles(a, b):
        for m, n, value in cycle.left:
            c[m, n] = value
        seen.append(cycle)
    return c, seen


def share(seen: Sequence[Cycle]) -> float:
    """Return which part of all cells' cycles went into a product."""
    return sum(cycle.busy for cycle in seen) / (len(seen) * seen[0].row.size)


def drawn(seen: Sequence[Cycle], across: int = 3) -> str:
    """Return the grids of all cycles as text, so many side by side: rows of A as 1, 2, 3, an idle cell as a dot."""
    blocks = [
        [
            f"cycle {one.number}",
            *(" ".join("." if m == NOBODY else str(m + 1) for m in line) for line in one.row),
        ]
        for one in seen
    ]
    width = max(len(line) for block in blocks for line in block)
    rows = [blocks[i : i + across] for i in range(0, len(blocks), across)]
    return "\n\n".join(
        "\n".join(
            "   ".join(line.ljust(width) for line in lines).rstrip() for lines in zip(*row, strict=True)
        )
        for row in rows
    )


def main(arguments: Sequence[str]) -> int:
    """Print the cycles of a product of M rows and a grid of K x N; 3, 4 and 4 without arguments."""
    M, K, N = (int(word) for word in arguments) if arguments else (3, 4, 4)
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 10, (M, K)).astype(float), rng.integers(0, 10, (K, N)).astype(float)
    c, seen = multiply(a, b)
    print(drawn(seen))
    right = np.array_equal(c, a @ b)
    print(
        f"\n{'right' if right else 'WRONG'}: {len(seen)} cycles, {share(seen):.0%} of the cells' cycles in use"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
