"""What the exercise on a grid in WGSL comes to."""

SIDE = 65_535  # workgroups along one side of a grid, as every adapter has them
NUMBERS, THREADS = 20_000_000, 256

GROUPS = -(-NUMBERS // THREADS)
ROWS = -(-GROUPS // SIDE)
WIDE = -(-GROUPS // ROWS)
IDLE = (WIDE * ROWS - GROUPS) * THREADS

ANSWERS = {"Fold a grid": [GROUPS, SIDE, ROWS, WIDE, IDLE]}
