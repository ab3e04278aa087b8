"""What the exercise of the page on divergence comes to."""

LANES = 32
LONGEST = LANES
USEFUL = sum(range(1, LANES + 1))

ANSWERS = {
    "Loops of unequal length": [LONGEST * LANES, USEFUL],
}
