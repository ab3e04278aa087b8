"""What the exercises of the page on precision come to."""

from math import floor, log2

X, SQUARE = 150.3, 150**2
BITS = {"bf16": 7, "fp16": 10, "e4m3": 3}


def step(x, bits):
    """How far apart the numbers of a type are at x."""
    return 2.0 ** (floor(log2(x)) - bits)


def stored(x, bits):
    """The number of a type that is nearest to x."""
    return round(x / step(x, bits)) * step(x, bits)


def said(kind):
    """Bits of fraction, step and what is stored for X."""
    return [BITS[kind], step(X, BITS[kind]), stored(X, BITS[kind])]


ANSWERS = {
    "One number, three types": [
        *said("bf16"),
        *said("fp16"),
        *said("e4m3"),
        SQUARE,
        448,
        step(SQUARE, BITS["fp16"]),
        stored(SQUARE, BITS["fp16"]),
        step(SQUARE, BITS["bf16"]),
        stored(SQUARE, BITS["bf16"]),
    ],
}
