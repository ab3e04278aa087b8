"""Coach and bus, played for the exercises of the engine's page."""

SEATS, ROOM, PROMPT, WRITERS = 4, 512, 600, 3
ANSWERS_GIVEN = (10, 10, 10, 50, 10, 10, 10, 50)


def coach(lengths):
    """Steps, batch by batch."""
    return sum(
        max(lengths[first : first + SEATS])
        for first in range(0, len(lengths), SEATS)
    )


def bus(lengths):
    """Steps, a free seat taken at once."""
    free = [0] * SEATS
    for length in lengths:
        seat = free.index(min(free))
        free[seat] += length
    return max(free)


_FIRST = ROOM - WRITERS
_SORTED = sorted(ANSWERS_GIVEN, reverse=True)
_MORE = (*ANSWERS_GIVEN, *[10] * 8)
ANSWERS = {
    "What is in a step?": (
        WRITERS,
        _FIRST,
        ROOM,
        _FIRST,
        WRITERS,
        PROMPT - _FIRST,
        WRITERS + PROMPT - _FIRST,
    ),
    "A queue of your own": (
        (
            50,
            50,
            coach(ANSWERS_GIVEN),
            3,
            10,
            [10] * 3,
            2 * 10,
            50,
            2 * 10,
            50,
            bus(ANSWERS_GIVEN),
        ),
        (_SORTED[:SEATS], 10, 50, 10, coach(_SORTED), 2, 2, 6, bus(_SORTED)),
        (3, bus(_MORE), 10, coach(ANSWERS_GIVEN), 2 * 10, coach(_MORE)),
        (coach(_MORE), bus(_MORE), coach(ANSWERS_GIVEN), bus(ANSWERS_GIVEN)),
    ),
}
