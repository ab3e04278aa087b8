"""Rounds and bytes of a ring, for week 20."""


def rounds(cards):
    """A reduce-scatter, and an all-gather."""
    return 2 * (cards - 1)


def sent(cards):
    """Of the message."""
    return round(2 * (cards - 1) / cards, 3)


ANSWERS = {
    "What a ring sends": (
        *(rounds(2), rounds(8), sent(8), rounds(1024), sent(1024)),
        *(sent(2), sent(8), sent(1024)),
    )
}
