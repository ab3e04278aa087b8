"""A multiply under an A100's roof, for week 1."""

OPERATIONS_A_PAIR, SIDE, GRIDS, BYTES = 2, 4096, 3, 2

ANSWERS = {
    "One multiply under the roof": (
        OPERATIONS_A_PAIR,
        SIDE,
        SIDE,
        SIDE,
        GRIDS,
        BYTES,
    )
}
