"""Thirteen billion parameters on eight cards, for week 8."""

BYTES, BILLIONS, CARDS, SHORT, GATHERED = 16, 13, 8, 2, 2

ANSWERS = {
    "Thirteen billion on eight cards": (
        BYTES,
        1 / CARDS,
        SHORT * BILLIONS,
        GATHERED,
    ),
}
