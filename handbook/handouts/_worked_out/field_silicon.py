"""What the exercise of the page on a GPU's silicon comes to."""

SMS, LANES, BYTES = 100, 128, 1600  # bytes in each tick
OPERATIONS = SMS * LANES * 2
RIDGE = OPERATIONS // BYTES

ANSWERS = {
    "A card on an envelope": [2, OPERATIONS, RIDGE, RIDGE * 6],
}
