"""What the exercise of the short page on the roofline comes to."""

RIDGE = 150


def intensity(columns, weight_bytes):
    """Operations for each byte of the weights."""
    return 2 * columns / weight_bytes


def to_the_ridge(weight_bytes):
    """The fewest columns that are not left of it."""
    return next(
        columns
        for columns in range(1, 1000)
        if intensity(columns, weight_bytes) >= RIDGE
    )


ANSWERS = {
    "Which side?": [2 * 64, intensity(64, 2), to_the_ridge(2), to_the_ridge(1)]
}
