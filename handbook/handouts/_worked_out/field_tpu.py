"""Tiles of weights, for the field guide's page on TPUs."""

from math import ceil

COLUMNS, V5E, V6E = 300, 128, 256


def across(array):
    """Tiles next to one another that cover the columns."""
    return ceil(COLUMNS / array)


def cells(array):
    """Cells along one side of them."""
    return across(array) * array


ANSWERS = {
    "A matrix of 300 columns": (
        *(across(V5E), across(V5E) ** 2, cells(V5E), cells(V5E), COLUMNS, COLUMNS),
        *(across(V6E), across(V6E) ** 2, cells(V6E), cells(V6E)),
    )
}
