"""The receipts of L1."""

WANTS = ((3, 2), (1, 4))  # loaves and cheeses, for Ann and Ben
ASKS = ((2, 5), (4, 3))  # a loaf and a cheese, at the market and at the corner shop


def receipt(who, shop):
    """The lines of one receipt and their sum."""
    lines = [(count, ASKS[item][shop]) for item, count in enumerate(WANTS[who])]
    total = sum(count * price for count, price in lines)
    return (
        " + ".join(f"{count} × {price}" for count, price in lines) + f" = {total}"
    )


def _total(who, shop):
    """The sum alone."""
    return sum(count * ASKS[item][shop] for item, count in enumerate(WANTS[who]))


_WORK, _CARRIED = 2 * 1000**3, 3 * 4 * 1000**2  # of 1000 × 1000 in fp32
ANSWERS = {
    "Three receipts": (
        3 * 5 * 4,
        2**3,
        2**2,
        1000**3,
        _WORK,
        1000**2,
        _CARRIED,
        _WORK / _CARRIED,
    ),
    "Omelette or banquet?": (
        "latency: little",
        "throughput: each",
        "latency. the job is long",
        "the carrying decides",
        "throughput. the weights",
    ),
    "Hands": ("not in itself",),
    "A hundred short steps": (False, 1 / 2),
    "How many cooks for one stove?": (32, 1 / 8, 1 / 4),
    "One token, one reader": (1e9,),
    "Left or right?": (
        (_WORK / _CARRIED, "right of the ridge"),
        (60**3, 3, 4, 60**2, 2 * 60**3 / (3 * 4 * 60**2), "left of the ridge"),
        (8, 1 / 8, "far to the left"),
        2 / 2,
    ),
    "Your own prices": (3, 2, 1, 5, 3 * 2 + 1 * 5, 3, 2, 1, 5, 3 + 2 + 1 + 5),
}
EXIT_ANSWERS = ((3 * 5 * 4,), (2 * 4, 1 / 8, "memory"))
BOARDS = {
    "You are here, and a guess": 70e9,
    "Two shoppers, two shops, four receipts": [
        _total(who, shop) for who in (0, 1) for shop in (0, 1)
    ],
    "How many lines are there?": (3 * 4 * 5, 2**3, 2**2),
    "Can you get the peak?": 2,
    "Draw the roof, put four jobs under it": (
        1,
        3 * 4,
        2,
        4,
        2 * 16,
        4,
        4096,
        2 * 3,
    ),
    "Type it: bytes": (3, 4),
}
CHECK_ANSWERS = {
    "Type it: operations": (_WORK, _CARRIED, _WORK / _CARRIED),
    "Type it: which roof, what percent": 75,
}
BLANKS = {
    "receipts and bets": (3 * 4 * 5, 2**3, 2**2),
    "the roof": (
        (3 * 4, 1, 1 / (3 * 4), 4, 2, 2 / 4, 4, 16 * 2, 16 * 2 / 4),
        (3, 4, 2, 2 * 4096 / (3 * 4)),
    ),
}
