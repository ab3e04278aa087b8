"""Multipliers that are shared, for the field guide's page on FPGAs."""

from math import ceil, log2

SLICES, SIDE = 5880, 32


def least(products, slices):
    """The least reuse factor with which so many products fit."""
    return ceil(products / slices)


BASE = 2
TURNS = BASE ** ceil(log2(least(SIDE**3, SLICES)))

ANSWERS = {
    "Twice as large in each direction": (
        SLICES,
        least(SIDE**3, SLICES),
        TURNS,
        BASE,
        TURNS,
    )
}
