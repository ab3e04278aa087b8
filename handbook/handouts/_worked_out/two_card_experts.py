"""Rows and bytes of the page on experts that two cards share."""

from itertools import combinations

CHOSEN = (
    (0, 2),
    (1, 0),
    (3, 2),
    (2, 1),
    (0, 1),
)  # by tokens a to e of card 0, which has experts 0 and 1
AWAY = [sum(e >= 2 for e in token) for token in CHOSEN]
PAIRS = list(combinations(range(4), 2))
AT_HOME = sum(max(pair) < 2 for pair in PAIRS)
PARTS = ("own tokens, first half", "what has arrived", "own tokens, second half")

ANSWERS = {
    "Rows with a pencil": (
        (sum(map(bool, AWAY)), sum(AWAY), 3, 2),
        (),
        (len(PAIRS), AT_HOME, len(PAIRS)),
    ),
    # Only what was measured is in it: this page's record fills it.
    "What is dear in dispatch?": (),
    # Held back, beside dispatch, beside combine; then the multiplies: now, before, and readings of the weights.
    "Hide the way back": (
        1 / 2,
        1 / 2,
        1 / 2,
        len(PARTS),
        len(PARTS) - 1,
        len(PARTS),
    ),
}
