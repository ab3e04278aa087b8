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
