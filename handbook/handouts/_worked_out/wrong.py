"""Blocks, gaps and races of the page on errors."""

from math import ceil


def _harm(N):
    """Spare threads, and how many of them write past the gap that PyTorch leaves."""
    spare = ceil(N / 256) * 256 - N
    return spare, max(0, spare - (ceil(N / 128) * 128 - N))


_HARMFUL = [N for N in (1024, 1152, 1200, 1280) if _harm(N)[1]]
ANSWERS = {
    "Sizes that hide it": (
        (1024, 1024 // 256, 4 * 256, 1280, 1280 // 256),
        (
            _HARMFUL,
            ceil(1152 / 256),
            5 * 256,
            1152,
            1152 // 128,
            128,
            _harm(1152)[1],
        ),
        (1200, ceil(1200 / 128) * 128, _harm(1200)[0], 4 - len(_HARMFUL), 4),
    ),
    "Is an early return a split barrier?": 0,
    "A row that is all minus infinity": 6,
}
