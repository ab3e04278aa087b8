"""Small formats worked out from their definitions, with fractions and apart from the code that is held against it."""

from bisect import bisect_left, bisect_right
from fractions import Fraction
from functools import cache
from math import copysign, inf, isfinite, nan

E2M1 = [Fraction(n, 2) for n in (0, 1, 2, 3, 4, 6, 8, 12)]  # by code; eight more are their negatives
NAN = None


@cache
def e4m3(code):
    """Sign, four bits of exponent, three of mantissa."""
    sign, exponent, mantissa = -1 if code >= 128 else 1, code % 128 // 8, code % 8
    if code % 128 == 127:
        return NAN
    if exponent == 0:
        return sign * Fraction(mantissa, 8) * Fraction(2) ** -6
    return sign * (1 + Fraction(mantissa, 8)) * Fraction(2) ** (exponent - 7)


@cache
def e8m0(code):
    """Eight bits of exponent."""
    return NAN if code == 255 else Fraction(2) ** (code - 127)


# What a scale may be: a code and its number.
SCALES = {
    "NVFP4": [(code, e4m3(code)) for code in range(1, 127)],
    "MXFP4": [(code, e8m0(code)) for code in range(255)],
}


def nearest(x, numbers, even=True):
    """Which of some pairs (code, number), by their numbers, is nearest: of two the even code, or else the larger."""
    above = bisect_left(numbers, x, key=lambda pair: pair[1])
    near = numbers[max(above - 1, 0) : above + 1]
    apart = min(abs(number - x) for _, number in near)
    near = [pair for pair in near if abs(pair[1] - x) == apart]
    return min(near, key=lambda pair: pair[0] % 2 if even else -pair[1])[0]


def as_float32(x):
    """The nearest float32 of a fraction >= 0, ties to even, as a fraction; infinity past its end."""
    if x == 0:
        return x
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > x
    unit = Fraction(2) ** (max(exponent, -126) - 23)
    rounded = round(x / unit) * unit  # of halves Python takes the even one
    return inf if rounded >= Fraction(2) ** 128 else rounded


def second_scale(numbers):
    """The second scale of all numbers of a tensor, as a fraction."""
    largest = max((abs(Fraction(x)) for x in numbers if isfinite(x)), default=Fraction(0))
    return max(as_float32(largest / 2688), Fraction(2) ** -126) if largest else Fraction(1)


@cache
def element(x, step):
    """The code of a number, without its sign."""
    quotient = as_float32(abs(Fraction(x)) / step)
    return 7 if quotient == inf else nearest(quotient, list(enumerate(E2M1)))


@cache
def block(numbers, signs, name, second=Fraction(1)):
    """The codes of a block's numbers, a tuple, and of its scale; signs tells -0 from 0, which are equal."""
    scales = SCALES[name]
    if not all(map(isfinite, numbers)):
        return [0] * len(numbers), len(scales) + (name == "NVFP4")
    largest = max(abs(Fraction(x)) for x in numbers)
    if name == "NVFP4":
        wanted = as_float32(largest / as_float32(6 * second))
        scale = scales[-1][0] if wanted == inf else nearest(wanted, scales)
    else:  # the largest power of two that is at most a quarter
        scale = max(bisect_right(scales, largest / 4, key=lambda pair: pair[1]) - 1, 0)
    step = as_float32(dict(scales)[scale] * second)
    return [element(x, step) + 8 * sign for x, sign in zip(numbers, signs, strict=True)], scale


def decoded(code, scale, name, second=Fraction(1)):
    """What a code stands for, as a float that holds a float32."""
    number = (e4m3 if name == "NVFP4" else e8m0)(scale)
    if number is NAN:
        return nan
    minus = (code >= 8) != (name == "NVFP4" and scale >= 128)
    return copysign(as_float32(E2M1[code % 8] * as_float32(abs(number) * second)), -minus or 1)
