"""What a warp of a transpose asks for, for week 2."""

WORDS = 32  # of a row of the tile, and banks of shared memory
PADDED = WORDS + 1
OPERATIONS = 0

ANSWERS = {"The transpose, explained": (OPERATIONS, WORDS, PADDED)}
