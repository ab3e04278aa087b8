"""Seats and pixels of L2."""

from math import ceil

NUMBERS, TABLES, SEATS = 10, 3, 4
WIDTH, HEIGHT, BLOCK = 30, 10, (16, 4)
THREAD, IN_GRID = (5, 2), (1, 1)  # x and y


def boxes():
    """The ten boxes, numbered, with the seat that takes each below."""
    seats = [f"{i // SEATS} · {i % SEATS}" for i in range(NUMBERS)]
    return [[f"!{i}" for i in range(NUMBERS)], seats]


def seats():
    """i of every seat, table by table; whoever has no number is shaded."""
    tables = []
    for table in range(TABLES):
        row = [table * SEATS + seat for seat in range(SEATS)]
        tables += [str(i) if i < NUMBERS else f"#({i})" for i in row] + ["!"]
    heads = [
        h
        for table in range(TABLES)
        for h in (f"!{table}·0", "!·1", "!·2", "!·3", "!")
    ]
    return [heads[:-1], tables[:-1]]


def column():
    """Of the thread in the picture."""
    return IN_GRID[0] * BLOCK[0] + THREAD[0]


def row():
    """Of the thread in the picture."""
    return IN_GRID[1] * BLOCK[1] + THREAD[1]


def place():
    """In memory."""
    return row() * WIDTH + column()


def in_block():
    """Threads are numbered like words on a page."""
    return THREAD[1] * BLOCK[0] + THREAD[0]


def picture():
    """All cells; solved, the pixel is marked and its block shaded."""

    def cell(x, y):
        if (x, y) == (column(), row()):
            return "#✗"
        mine = (x // BLOCK[0], y // BLOCK[1]) == IN_GRID
        return "#" if mine else ""

    return [[cell(x, y) for x in range(WIDTH)] for y in range(HEIGHT)]


def _splits(says):
    """How many of the warps of a block of 256 a question splits."""
    warps = [
        {bool(says(thread)) for thread in range(first, first + 32)}
        for first in range(0, 256, 32)
    ]
    return {0: "none", len(warps): "every"}[
        sum(len(answers) == 2 for answers in warps)
    ]


_ACROSS, _DOWN = ceil(1000 / 32), ceil(600 / 8)  # blocks of a picture
_SPARE = _ACROSS * _DOWN * 32 * 8 - 1000 * 600
_LAUNCHED = (32 * 8, _ACROSS * _DOWN * 32 * 8, 1000 * 600, _SPARE)
ANSWERS = {
    "Find the thread": (
        *_LAUNCHED,
        999 // 32,
        599 // 8,
        999 // 32,
        599 // 8,
        (599 % 8) * 32 + 999 % 32,
    ),
    "How many cooks?": (20, 1e6, 2048 / 256, 132 * 8, 1e6, 2**20 / (132 * 8)),
    "Swap two words": (32, 32, 32),
    "The negative": (False, "y[i] = 1.0f - x[i];"),
    "33 threads": (ceil(33 / 32), 2 * 32 - 33, 1 / 2),
    "Which of these splits a warp?": (
        f"(a) splits {_splits(lambda thread: thread % 2)}",
        f"(b) splits {_splits(lambda thread: thread < 128)}",
        (128, 128 // 32 - 1, 128 // 32, 256 // 32 - 1),
        f"(c) splits {_splits(lambda thread: 0)}",
        "(d) splits nearly every",
        ("(e) has no", 31, 31),
    ),
    "What may be captured?": (
        True,
        False,
        False,
        True,
        "(e) it can be captured, but",
    ),
    "Read a load": (16 * 8, 4, 4, 4, 4, 2 * 4, 4),
    "The gradient of a brightening": (
        0,
        "ctx.save_for_backward(output)",
        "output < 1",
    ),
    "Find the typo": (0, 256 - 1, 1000 - 256, 1000 // 256, 3 * 256, 1000 - 3 * 256),
}
EXIT_ANSWERS = (
    (ceil(1000 / 256), 4 * 256, 4 * 256 - 1000),
    (32 // 16, 32),
    ("only the first", 32),
)
BOARDS = {
    "Ten numbers, tables of four": (
        0,
        10,
        11,
        0,
        11,
        10,
        11,
        ceil(NUMBERS / SEATS),
        NUMBERS,
        SEATS,
    ),
    "A pixel, and its place in memory": (
        column(),
        row(),
        place(),
        in_block(),
        *divmod(in_block(), 32),
    ),
    "Find your pixel": (1, 2),
    "Weigh all three": (0.299, 0.587, 0.114),
}
CHECK_ANSWERS = {
    "Ten numbers, tables of four": 2 * 256 + 1,
    "A pixel, and its place in memory": False,
    "One pair, then one table": (1024, 256),
    "Spare seats still, then all the tables": (1024, 2048),
    "Find your pixel": 32,
    "Keep to the picture": (_ACROSS, _DOWN, *_LAUNCHED),
    "Read one colour": (3 * 4, 4, 3 * 4 + 4, 3 * 4 + 4),
    "A word, a thousand orders": (80 * 12, 1e6, 80 * 12),
}
BLANKS = {
    "who am I?": (
        32,
        ceil(NUMBERS / SEATS),
        2 * SEATS + 1,
        2 * 256 + 1,
        ceil(1000 / 256),
        4 * 256 - 1000,
    ),
    "a pixel, a fork, an order": 80 * 12,
}
