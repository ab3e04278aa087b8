"""What the exercise of the page on a fused bias and GELU comes to."""

COLUMNS, LARGEST = 16_384, 2_147_483_647
FEW, MANY = 50_000 * COLUMNS, 150_000 * COLUMNS
assert FEW <= LARGEST < MANY

ANSWERS = {"Where is the limit?": [FEW, 2 * FEW / 1e9, MANY]}
