"""What the exercise of the page on threads and blocks comes to."""

BLOCK, THREAD, OF_GRID, WARP = (8, 8, 4), (3, 5, 2), (2, 1, 4), 32  # x, y, z
CELL = [b * side + t for b, side, t in zip(OF_GRID, BLOCK, THREAD, strict=True)]
NUMBER = (THREAD[2] * BLOCK[1] + THREAD[1]) * BLOCK[0] + THREAD[0]

ANSWERS = {
    "A cell of a solid": [
        *CELL,
        NUMBER,
        NUMBER // WARP,
        WARP,
        NUMBER % WARP,
        NUMBER // WARP,
        NUMBER % WARP,
    ],
}
