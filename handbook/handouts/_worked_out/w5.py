"""Four bits, their scales and a race, for the sheets of W5."""

from math import floor, log2

SIXTEEN = (0.03, -0.11, 0.27, 0.08, -0.02, 0.15, -0.19, 0.05)
SIXTEEN += (0.12, -0.07, 0.01, -0.24, 0.09, 0.18, -0.14, 0.06)
# Dense peaks and bandwidth of a B200's data sheet [^nvidia-b200].
PEAKS, TB_PER_S = {16: 2250, 8: 4500, 4: 9000}, 8
# Yue Zhang's steps and the template, in µs [^zhang2025]; the organisers' floor [^gpumode-nvfp4].
STEPS, TEMPLATE, FLOOR = (2000, 443, 39, 26, 22.9, 22.3), 100, 8.63
SHAPES = ((7168, 16384, 1), (4096, 7168, 8), (7168, 2048, 4))
WAIT, WORK, TILES, DRAWN = 6, 3, 4, 37


def _value(code):
    exponent, fraction = code >> 1, code & 1
    return (
        fraction / 2 if exponent == 0 else (1 + fraction / 2) * 2 ** (exponent - 1)
    )


E2M1 = tuple(_value(code) for code in range(8))


def nearest(x):
    """The nearest place on the ruler, of two the even code, with the sign of x."""
    code = min(range(8), key=lambda code: (abs(E2M1[code] - abs(x)), code % 2))
    place = E2M1[code]
    return place if x >= 0 or place == 0 else -place


def exact():
    """The scale that puts the largest onto 6."""
    return max(map(abs, SIXTEEN)) / 6


def scale():
    """The same as the nearest E4M3: three bits of fraction."""
    step = 2.0 ** (floor(log2(exact())) - 3)
    return round(exact() / step) * step


def back(x):
    """What is left of x."""
    return nearest(x / scale()) * scale()


def misses(scaled):
    """Of all sixteen, added up."""
    return sum(abs(x - (back(x) if scaled else nearest(x))) for x in SIXTEEN)


def peak(bits):
    """TFLOP/s, dense."""
    return PEAKS[bits]


def b200_ridge(bits):
    """Operations a byte."""
    return PEAKS[bits] / TB_PER_S


def megabytes(shape):
    """Millions of bytes: half a byte a weight and a byte of scale for every sixteen."""
    rows, columns, batch = SHAPES[shape]
    return rows * columns * batch * (1 / 2 + 1 / 16) / 1e6


def chains(count):
    """Tiles in chains: a chain loads its next tile when it has worked on its last; one works at a time."""
    rows = [[""] * DRAWN for _ in range(count)]
    free, worked = [0] * count, 0
    for tile in range(TILES):
        chain = tile % count
        ready = free[chain] + WAIT
        start = max(ready, worked)
        for tick in range(free[chain], ready):
            rows[chain][tick] = "#"
        for tick in range(start, start + WORK):
            rows[chain][tick] = str(tile + 1)
        free[chain] = worked = start + WORK
    return rows


def length(rows):
    """Ticks until the last work is done."""
    return max(
        1 + tick
        for row in rows
        for tick, cell in enumerate(row)
        if cell not in ("", "#")
    )


def _quantised(x):
    """The quotient, its place and what is left, as a mentor says them aloud."""
    place = abs(nearest(x / scale()))
    return [abs(x), abs(x / scale()), place, *([abs(back(x))] if place else [])]


ANSWERS = {
    "Rehearse": [_quantised(x) for x in (0.27, -0.24, 0.01, 0.12)],
    "Eight places": (E2M1, 1 / 2, 2, 4, 8, 16, 4 + 8 / 16, 4, 8, 32, 4 + 8 / 32),
    "All sixteen, with a pencil": (max(map(abs, SIXTEEN)), 6, 0.24, 4, 6),
    "Break it": (1 / 4, 1, 4 * 6, 6, 4, 3, 2, 1.5, 0.75),
    "How many tiles?": (
        128,
        512,
        4,
        128 * 512 * 4 // 1024,
        128,
        256,
        4,
        128 * 256 * 4 // 1024,
    ),
    "The bytes of three shapes": (2, 16),
    "What can it bring at most?": (
        16,
        4 + 8 / 16,
        16 / (4 + 8 / 16),
        4,
        16,
        128,
        4 + 16 / 128,
        16,
        4 + 16 / 128,
        16 / (4 + 16 / 128),
    ),
    "Three true sentences": (
        round(STEPS[0] / STEPS[-1], -1),
        4,
        1 / 2,
        round(100 * FLOOR / 22.4),
        22.4,
        FLOOR,
    ),
    "A wrong answer for your neighbour": (5, 2.0**-9, 1),
}
EXIT_ANSWERS = (
    E2M1,
    (4, 8, 16, 4 + 8 / 16),
    (TEMPLATE, TEMPLATE, STEPS[-1], TEMPLATE / STEPS[-1]),
)
BOARDS = {
    "All there is in four bits": (0, 111, E2M1),
    "Sixteen numbers, with and without a scale": (
        6,
        scale(),
        misses(False),
        misses(True),
    ),
    "Half the width, on the card we have": 1,
    "Who gives the order?": (32, 128, 1, 3),
    "Where does the ridge go?": (
        4.5,
        *(b200_ridge(bits) for bits in (16, 8, 4)),
        2 / (4.5 / 8),
    ),
    "First the floor": (1, 16, *(megabytes(shape) for shape in range(3))),
    "Stand side by side": (1, 32, 32, 32, 32, 32, 1),
    "Two ways to read a nibble": (6, 1),
    "A four-bit GEMV of your own": (16, 16),
    "Two chains, one wait": (WAIT, WORK, length(chains(1)), length(chains(2))),
    "Exit, and a bug to take home": (4, 8, 16, 4 + 8 / 16),
}
CHECK_ANSWERS = {
    "All there is in four bits": (6, 4, 6, (4 + 6) / 2, 0.9),
    "Sixteen numbers, with and without a scale": (8, 0.0430, 0.0469),
    "Let Python do the next thousand": 0,
    "Half the width, on the card we have": False,
    "Who gives the order?": 1 / 2,
    "Where does the ridge go?": 2 / (4.5 / 8),
    "First the floor": 3,
}
BLANKS = {
    "sixteen, back": (4, 8, 16, 4 + 8 / 16),
    "steps": (
        128 * 512 * 4 // 1024,
        128 * 256 * 4 // 1024,
        512 // 256,
        32,
        4 * 32,
        2 / (4.5 / 8),
    ),
    "steps, back": (6, 1, 32, 1),
}
