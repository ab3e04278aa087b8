"""Words, multiply-adds and wavefronts of the five rungs of L4."""

WINDOWS = 32
# Words from shared memory and multiply-adds for one step along k; wavefronts for one word of A, and of B, for 32 lanes.
LADDER = {
    "naive": ("naive", 2, 1, (32, 1), "shared memory: one bank"),
    "coalesced": ("coalesced", 2, 1, (1, 1), "shared memory"),
    "shared_tiles": ("shared tiles", 2, 1, (1, 1), "shared memory"),
    "register_column": ("register column", 9, 8, (8, 1), "shared memory"),
    "register_tile": ("register tile", 16, 64, (8, 8), "issue slots"),
}
RUNGS = tuple(LADDER)


def called(rung):
    """In words."""
    return LADDER[rung][0]


def words(rung):
    """From shared memory."""
    return LADDER[rung][1]


def fmas(rung):
    """Multiply-adds that they serve."""
    return LADDER[rung][2]


def turns(rung):
    """Wavefronts for 32 multiply-adds."""
    return sum(LADDER[rung][3]) / fmas(rung)


def allowed(rung):
    """Multiply-adds in a tick that shared memory allows; an SM has 128 lanes."""
    return min(32 / turns(rung), 128)


def roof(rung):
    """What holds it."""
    return LADDER[rung][4]


def empty():
    """A grid of 4 × 4."""
    return [["!"] * 4] * 4


def tile_of_c():
    """The same with its tile of 2 × 2, top right."""
    return [["!", "!", "!#", "!#"]] * 2 + [["!"] * 4] * 2
