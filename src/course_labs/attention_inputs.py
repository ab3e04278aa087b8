"""Inputs of attention that usual numbers leave out: a head of each kind beside the others, in one case.

For tensors and for arrays of NumPy. Standard library only.
"""

from __future__ import annotations

from typing import Any

KINDS = 5  # of heads
SMALL, LARGE = 2.0**-30, 2.0**30
TINY, HUGE = 2.0**-60, 2.0**60
SLOPE = 64.0


def heads_of_every_kind(q: Any, k: Any, v: Any, slope: Any = None, *, infinite: bool = True) -> None:
    """Change the heads of keys in turn, each with the heads of queries that ask it.

    The scores stay as they are where q is small and k large, or the other way round: who cuts small numbers off, or
    large ones, cuts off all of them. In the third head all keys are alike, and every score is far below 0: who begins
    with a largest score of 0 or of -10 000, or gives such a score to what must not be seen, sees nothing or sees that.
    In the fourth a value of the first tile's last row is infinite. It stays on the tray of a tile that is not full, and
    times 0 it makes NaN, in the next tile and in the next head. In the last the scores lie far apart, and small shares
    count.

    Args:
        slope: takes that times the distance from a score. Where all scores are large it is steep, and every query sees
            its own key alone: how such scores are rounded must not show, as in powers of 2 for those of e.
        infinite: every query sees every key.
    """
    N, D = k.shape[-2:]
    queries, keys, values = (x.reshape(-1, N, D) for x in (q, k, v))
    group = len(queries) // len(keys)
    for head, (key, value) in enumerate(zip(keys, values, strict=True)):
        asks = queries[group * head : group * (head + 1)]
        kind = head % KINDS
        if kind == 0:
            asks *= SMALL
            key *= LARGE
            value *= TINY
        elif kind == 1:
            asks *= LARGE
            key *= SMALL
            value *= HUGE
        elif kind == 2:
            asks *= 0
            key *= 0
            key[:, 0] = 2.0**12
            asks[..., 0] = -(2.0**12)
            if slope is not None:
                asks[..., 0] = -768 * D**0.5 / 2.0**12
                slope[head] = SLOPE
        elif kind == 3 and infinite:
            value[min(N, 16) - 1, 0] = float("inf")
        elif kind == 4:
            asks *= 4


def without_infinity(q: Any, k: Any, v: Any) -> None:
    """Do the same for causal attention, where a value that must not be seen may be multiplied by 0."""
    heads_of_every_kind(q, k, v, infinite=False)
