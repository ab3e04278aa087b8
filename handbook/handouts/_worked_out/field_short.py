"""Four numbers that share a scale, for the field guide's page on short numbers."""

from math import floor, log2

NUMBERS, LARGEST = (0.1, 0.3, 1.0), 60.0
INT8, E4M3, FRACTION = 127, 448, 3

step = LARGEST / INT8
in_int8 = [round(x / step) * step for x in NUMBERS]


def e4m3(x):
    """The nearest number with three bits of fraction."""
    unit = 2.0 ** (floor(log2(x)) - FRACTION)
    return round(x / unit) * unit


scale = LARGEST / E4M3
in_e4m3 = [e4m3(x / scale) * scale for x in NUMBERS]

ANSWERS = {
    "One large number": (
        (step, in_int8[0], in_int8[1], in_int8[2]),
        tuple(in_e4m3),
        (16,),
    )
}
