"""Instructions, banks and time lines of L5."""

from math import ceil

WINDOWS, LANES, WORDS = 32, 8, 4  # eight lanes of four words each


def share(tall, wide):
    """Multiply-adds of all instructions, for a thread that owns tall × wide numbers of C."""
    return f"{tall * wide} of {tall * wide + tall + wide}"


def read_for_64(tall, wide):
    """Numbers from shared memory for 64 multiply-adds."""
    return (tall + wide) * 64 // (tall * wide)


def windows(step):
    """Which lanes want which bank; a second row where two meet."""
    rows = [[f"!{window}" for window in range(WINDOWS)]]
    standing = _standing(step)
    for place in range(max(map(len, standing))):
        rows.append(
            [str(lanes[place]) if place < len(lanes) else "" for lanes in standing]
        )
    while len(rows) < 3:
        rows.append(["!"] * WINDOWS)
    return rows


def queue(step):
    """Lanes at the fullest bank."""
    return max(map(len, _standing(step)))


def _standing(step):
    at = [[] for _ in range(WINDOWS)]
    for lane in range(LANES):
        for word in range(WORDS):
            at[(lane * step + word) % WINDOWS].append(lane)
    return at


def one_tray():
    """One buffer: fetch, multiply, multiply, three times."""
    return [list("FMMFMMFMM") + ["!"] * 6]


def two_trays():
    """Two buffers: the next tile is fetched while this one is multiplied."""
    return [
        ["!"] + list("MMMMMM") + ["!"] * 8,
        list("F") + list("F") + ["!"] + list("F") + ["!"] * 11,
    ]


def length(grid):
    """Squares until the last one that is filled."""
    return max(
        1 + i for row in grid for i, cell in enumerate(row) if cell.strip("!#")
    )


def _of_one_drawer(*registers):
    """Whether all are even, or all odd."""
    return len({register % 2 for register in registers}) == 1


def _strips(band, blocks=16, across=8):
    """Strips of A and of B that are wanted at a time."""
    rows = max(band, blocks // across)
    return rows + blocks // rows


def _places(tiles, rooms=100):
    """Rounds, and the places in them."""
    return ceil(tiles / rooms), ceil(tiles / rooms) * rooms


def _tiles(tall, wide):
    return 1024 * 1024 // (tall * wide)


_SLOW = [
    letter
    for letter, registers in {
        "a": (8, 2, 5),
        "b": (8, 2, 4),
        "c": (9, 3, 7),
    }.items()
    if _of_one_drawer(*registers)
]
_KIB = 128 * 256 * 4 // 1024
ANSWERS = {
    "A 4 × 4 register tile": (16, 4, 4, 2, 16, 16 + 2, 8 * 4, 16, 8 * 4 // 16),
    "Sixteen bytes need an address": (1023 * 4 % 16 == 0, 1023 * 4, 16, 16),
    "Pad or interleave?": (3, 4, 4, 32, 4, 4 * 8 + 4 - 32, 16),
    "The best seats": (4 * 8, 8 * 8, 32 + 64, 2 * 8 + 16 * 8, 32 * 8, 8, 256 + 8),
    "Why not 16 × 16?": (16 * 16, 16 * 16, 255, 16, 8),
    "Which of these cost an extra tick?": (_SLOW, 3, "a", 2, "d", 2),
    "The last wave": (
        100,
        (101, _places(101)[0], 101, _places(101)[1]),
        (150, 150, _places(150)[1]),
        (1050, _places(1050)[0], 1050, _places(1050)[1]),
        1 / 2,
    ),
    "How wide a band?": [_strips(band) for band in (1, 2, 4, 8)],
    "Pick a tile": (
        (_tiles(128, 256), 32, 132),
        (_tiles(128, 128), 64, 132),
        (_tiles(64, 64), 256, *reversed(_places(256, 132))),
    ),
    "How many pieces?": (
        132 // 12,
        128,
        256,
        4,
        _KIB,
        132 * _KIB / 1024,
        12 * _KIB / 1024,
        132 // 12,
    ),
    "Rehearse": (4 + 16, 8 + 8),
}
EXIT_ANSWERS = ((4 + 4, 8 / 16),)
BOARDS = {
    "Every other instruction costs a multiply-add": (
        (8, 8, 8 * 8, 8 + 8, 64, 64 + 16),
        (16, 64, 64 + 16 // 4),
        8,
    ),
    "A column of eight": (1, 1),
    "Step 6: sixteen bytes in every access": 7,
    "Step 7: eight lanes, thirty-two banks": (WINDOWS, WINDOWS),
    "Step 9: fetch while you multiply": (length(one_tray()), length(two_trays())),
    "The climb, live": 9,
}
CHECK_ANSWERS = {
    "Every other instruction costs a multiply-add": (
        share(1, 1),
        2,
        8,
        share(8, 1),
    ),
    "Three numbers before any code": (
        [read_for_64(*shape) for shape in ((1, 1), (8, 1), (8, 8))],
        (8, 8 + 1, 8, 8 + 8, 8 * 8),
    ),
    "A square of eight by eight": (8 * 8, 8 + 8, 64 + 16),
    "Step 9: fetch while you multiply": 1,
    "Why not faster, and the wall": False,
}
BOARD_ALT = [read_for_64(*shape) for shape in ((1, 1), (8, 1), (8, 8))]
