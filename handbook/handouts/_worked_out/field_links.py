"""Bytes of an all-reduce whose switch adds, for the field guide's page on interconnects."""


def sent(cards):
    """How often the result leaves a card, when cards add."""
    return 2 * (cards - 1) / cards


def through_a_switch(cards):
    """The same, when the switch adds."""
    return (cards + 1) / cards


ANSWERS = {
    "Faster than the road?": (
        (9, 8, 14, 8),
        (9, 14),
        (5, 4, 6, 4, 1 / 6, 1 / 3),
    )
}
