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


def _tile(n):
    """Words, multiply-adds, their quotient and registers of a register tile of n × n."""
    return 2 * n, n * n, 2 / n, n * n


_RUNG = {rung: (words(rung), fmas(rung)) for rung in RUNGS}
_BANKS = sorted({lane * 1000 % WINDOWS for lane in range(32)})
_ASKED = 2 * 4096 * 4  # bytes for one number of C
ANSWERS = {
    "A flat multiply": (2, 4096**2, 4, 4096**2, 1 / 2),
    "The sixth": (
        16 + 8,
        128,
        24,
        128,
        24 / 128,
        32 / (24 / 128),
        128,
        128,
        128,
        24,
        128 * 128 / (128 + 24),
    ),
    "Not for bytes": (8, 32, 32, 4),
    "Block of 16": (16, 16 * 4, 16 * 4 // 32, 1, 2, 4096, 2, 2, 1 + 2, 2),
    "A longer column": (17, 16, 33, 32, 1),
    "4 × 4 or 16 × 16?": (_tile(4), _tile(8), _tile(16)),
    "And at 1000?": (32, 1000 % WINDOWS, _BANKS, 32 // len(_BANKS), 8, 8 + 1),
    "How many SMs have work?": (
        8,
        8,
        8 * 8,
        132 - 64,
        1 / 2,
        (1024 // 64) ** 2,
        2,
        2 * 132 - 256,
    ),
    "The same sum, a different error": (4096, 512),
    "Which tile?": (
        "(a) the register",
        "(b) the block",
        "(c) the register",
        "(d) the block",
    ),
    "Before they ask": (64 * 64, 1024, 4, 2, 4),
}
EXIT_ANSWERS = ((), (4 + 4, 4 * 4, 8 / 16))
BOARDS = {
    "What the patient cook asks for": (
        2,
        4096,
        4,
        32,
        32,
        _ASKED,
        _ASKED // 32,
        32,
        3,
        4096**2,
        4,
    ),
    "Wavefronts: the forecast for two rungs": (
        32,
        1,
        32,
        1,
        1,
        32,
        32 + 1,
        32 / 2,
        33,
        32 / 33,
        2,
        32 / 2,
    ),
    "The plain sum": (1, 1, 1),
    "Mind the edges, note the time": 4096,
    "Swap two words, and bet": (2, 32 + 1),
    "Paper tiles that walk": (0, 0, 0, 1, 0, 1, 1, 1),
    "Tiles": 1,
    "One hand, then both hands": (
        *(_RUNG[rung] for rung in ("naive", "register_column", "register_tile")),
        *(_RUNG[rung] for rung in ("register_column", "register_tile")),
    ),
}
CHECK_ANSWERS = {
    "One hand, then both hands": (33, 32, 1),
    "Exit ticket, and the boxed question": (32, 32 + 1, 32, 2),
}
BLANKS = {
    "the ladder": (_ASKED, _ASKED // 32, 3 * 4096**2 * 4, 32, 32 + 1, 32),
    "tiles that walk": ((0, 0), (0, 1), (0, 1), (1, 1), 2, 32),
}
