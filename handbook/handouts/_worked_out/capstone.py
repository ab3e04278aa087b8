"""The answers of the capstone's page."""

M, N, BYTES = 16384, 8192, 4

ANSWERS = {
    "What can a second read cost?": (
        3,
        BYTES,
        M,
        N,
        3 * BYTES * M * N,
        2 * BYTES * M * N,
    ),
}
