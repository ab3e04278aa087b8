"""Cells and cycles of a systolic array, for the field guide's page on AWS's chips."""

SIDE, ROWS, SMALL = 128, 5, 4

ANSWERS = {
    "A peak from a grid": (
        *(SIDE, SIDE, SIDE * SIDE, 2, 2),
        *(ROWS, ROWS, SMALL - 1, SMALL - 1, ROWS + 2 * (SMALL - 1)),
    )
}
