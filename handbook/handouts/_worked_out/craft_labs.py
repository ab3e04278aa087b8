"""The room of the page on running a lab."""

from math import ceil

_ALONE, _PAIRS = 16 * 40 / 60, 8 * 40 / 60  # minutes
ANSWERS = {
    "Your own room": (
        16,
        40,
        ceil(_ALONE),
        20,
        16 // 2,
        int(_PAIRS),
        int(20 / _PAIRS),
        90,
        90 // 40,
    ),
}
