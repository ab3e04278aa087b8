"""Boxes, windows and a walk of L3."""

STRIDES = (1, 2, 8, 32, 33)
SLIPS = (5, 6, 7, 4, 0, 2, 3, 1)
LANES, WORD, BOX, WINDOWS = 32, 4, 32, 32  # a word and a box in bytes


def words(stride):
    """What the lanes of a warp ask for."""
    return [lane * stride for lane in range(LANES)]


def boxes(stride):
    """Boxes of eight words that are touched."""
    return len({word * WORD // BOX for word in words(stride)})


def used(stride):
    """The share of what is carried that was wanted."""
    share = boxes(stride) * BOX / (LANES * WORD)
    return "all" if share == 1 else f"1 of {share:g}"


def turns(stride):
    """The longest queue behind one window."""
    windows = [word % WINDOWS for word in words(stride)]
    return max(map(windows.count, windows))


def hunt():
    """Boxes, the slip in each, and the walk from box 0 until home."""
    walk, place = [], 0
    for _ in SLIPS:
        walk.append(place)
        place = SLIPS[place]
    assert place == 0
    return [
        ["!box", *(f"!{i}" for i in range(8))],
        ["!slip", *(f"!{s}" for s in SLIPS)],
        ["!walk", *map(str, walk)],
    ]


def tile():
    """A tile of 4 × 4, read by rows."""
    return [[str(4 * m + n + 1) for n in range(4)] for m in range(4)]


def turned():
    """The same, rows and columns exchanged."""
    return [list(row) for row in zip(*tile(), strict=True)]


def _sectors(first, step, size):
    """Boxes of 32 bytes that 32 lanes touch, each with so many bytes, so far from each other."""
    return len(
        {
            (first + lane * step + byte) // BOX
            for lane in range(LANES)
            for byte in range(size)
        }
    )


_BOXES, _TURNS = (
    [boxes(stride) for stride in STRIDES[:4]],
    [turns(stride) for stride in STRIDES],
)
ANSWERS = {
    "Find the caches": ("l1 and l2 are caches", 3),
    "Why at random?": (BOX, BOX // WORD, WORD, BOX // WORD - 1),
    "An older pantry": False,
    "Other people's boxes": (
        ("a", {1: "one."}[_sectors(0, 0, 4)]),
        ("b", _sectors(4, 4, 4), LANES * 4, 4, _sectors(4, 4, 4)),
        ("c", _sectors(0, 8, 8), LANES, 8),
        ("d", _sectors(0, 16, 16), LANES, 16),
        ("c", "d"),
    ),
    "All the same": {1: "one. a queue"}[len({0 for lane in range(LANES)})],
    "Swap the indices": (4 + 32, 32),
    "Three kernels": (
        (2048 * 4 // 1024, 2048 * 4 // 1024 >= 24),
        (1024 * 16 // 1024, 1024 * 16 // 1024 >= 24),
        (512 * 4 * 16 // 1024, 512 * 4 * 16 // 1024 >= 24),
        512 * 16 // 1024,
    ),
    "A block of 1024": (5, 32, 32, 32, 5, 10, 10, 10),
    "Three in a row": (f"2p + 2p + 3p = {2 + 2 + 3}p", 2, "3p"),
    "A second tile": (34 % 32, 16, turns(34), turns(34), 32, 32 // 16, 33, 35, 34),
}
EXIT_ANSWERS = (
    (_sectors(0, 16, 4), _sectors(0, 16, 4) * BOX, LANES * WORD, 1 / 4),
)
BOARDS = {
    "The treasure hunt": [int(place) for place in hunt()[2][1:]],
    "Boxes of eight": (_BOXES, WORD, _BOXES),
    "Queue at the windows": (_TURNS[:4], STRIDES[4], _TURNS[4], _TURNS),
    "Full seats or full hands?": (
        256 * 16 // 1024,
        256,
        16,
        8,
        1,
        1,
        8,
        8 * 256 * 16 // 1024,
    ),
}
CHECK_ANSWERS = {
    "Boxes of eight": (False, 8, 16),
    "Put it in its place, and turn it": False,
    "One more word in each row": (33, 32, 32),
}
BLANKS = {
    "how far, and in which boxes": (LANES, LANES + 1),
    "a tile, and who is walking": (
        8 * 1 * 256 * 16 // 1024,
        1 * 8 * 256 * 16 // 1024,
    ),
}
