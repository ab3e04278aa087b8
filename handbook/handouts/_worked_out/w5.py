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
    """The nearest place on the ruler, with the sign of x."""
    place = min(E2M1, key=lambda value: abs(value - abs(x)))
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
