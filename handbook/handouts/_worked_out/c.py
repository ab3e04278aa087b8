"""What the lines of C on their page come to."""

from math import ceil


def _rounds_up(piece):
    """A piece of Python, where it divides by 256 and rounds up."""
    right = all(eval(piece, {"N": N}) == ceil(N / 256) for N in range(1, 2000))
    return piece if right else f"not {piece}"


_THREAD, _OTHER = 2 * 256 + 5, 2 * 256 + 100
ANSWERS = {
    "Half of x": (1 // 2, 1 // 2, 1.1, 0),
    "House number 37": (
        37,
        8,
        37 // 8,
        37,
        8,
        37 % 8,
        1,
        9,
        1 * 8 + 9,
        17 // 8,
        17 % 8,
    ),
    "Read one aloud": (
        (_THREAD, 600, _THREAD, 0, _THREAD - 1, _THREAD, _THREAD - 1, _THREAD),
        (_OTHER, 600, 0),
    ),
    "Blocks, rounded up": (
        256,
        255,
        1,
        256,
        255,
        2**31 - 1,
        _rounds_up("-(-N // 256)"),
    ),
}
