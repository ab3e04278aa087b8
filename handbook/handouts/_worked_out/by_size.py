"""Sizes of the page on the multiply on Hopper."""

ANSWERS = {
    "The course's question": (512, 1024, 128, 8192),
    "The floor of one row": (4096, 4096, 2, 4096 * 4096 * 2, 2, 4096 * 4096 * 2),
    "A size of your own": (
        (
            8 * 128,
            8192,
            16,
            16,
            8 * 128,
            8192,
            16,
            8192,
            8192,
            8 * 128,
            16,
            8 * 128,
        ),
        (2048 // 128, 8 * 128 // 256, 16 * 4, 1 / 2),
    ),
}
