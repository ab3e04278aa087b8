"""What a second kernel behind a multiply costs beside it, for week 15."""

READ = WRITTEN = 2  # bytes of a number in bf16
BYTES = READ + WRITTEN  # that the second kernel moves for each number of C
OPERATIONS = 2  # of the multiply for each number of C, times K
LONG, SHORT = 4096, 512

ANSWERS = {
    "What is an epilogue worth?": (
        BYTES,
        OPERATIONS,
        BYTES,
        OPERATIONS,
        BYTES // OPERATIONS,
        LONG,
        SHORT,
    )
}
