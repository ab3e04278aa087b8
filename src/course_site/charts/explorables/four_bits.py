"""Four bits and a shared scale: sixteen numbers on their way into NVFP4 and back, one step after the other.

The arithmetic is that of `course_kernels.nvfp4.blocks`, rounded to float32 where that is; a test holds it to it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from course_site.charts.explorables import LEGEND, Data, Knob, Shown, State, at, box, mark, shape

BLOCK = 16
MOST = 1e6  # the largest number that a reader may type
LARGEST_CODE, LARGEST_SCALE = 6, 448
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)  # the code of each is its place
E4M3 = tuple(i / 512 if i < 8 else (8 + i % 8) * 2.0 ** (i // 8 - 10) for i in range(127))
SMALLEST_SECOND, SMALLEST_POWER = 2.0**-126, -127

KNOBS = {
    "numbers": Knob("numbers", BLOCK, BLOCK),
    "scale": Knob("select", choices=dict.fromkeys(("nearest", "second", "power", "plain"), "")),
    "at": Knob("steps", 0, 4),
}
DATA: dict[str, tuple[str, ...]] = {}
SENTENCES = ("too_large", "largest", "nearest", "second", "power", "plain", "codes", "decoded", "error")
CASES = (
    {
        "too_large": ("million",),
        "largest": ("{largest}",),
        "codes": ("{zeros}",),
        "error": ("{off}", "{worst}"),
    },
    {
        "nearest": ("{wanted}", "{scale}"),
        "second": ("whole tensor", "{above}"),
        "power": ("power of two",),
        "plain": ("as they are",),
    },
)

_X, _UNIT, _RULER = 20.0, 48.0, 44.0  # of the ruler: where 0 is, the length of 1, and its line
_TOP, _LINE = 96.0, 14.5  # of the table
_COLUMNS = {"x": 62.0, "q": 122.0, "c": 178.0, "b": 248.0, "m": 320.0}
_FROM = {"x": 0, "q": 2, "c": 2, "b": 3, "m": 4}  # the step from which a column is filled


def given() -> Mapping[str, Any]:
    """Return nothing: all is worked out."""
    return {}


def single(x: float) -> float:
    """Return a number rounded to float32."""
    rounded: float = struct.unpack("f", struct.pack("f", x))[0]
    return rounded


def nearest(numbers: Sequence[float], x: float) -> int:
    """Return the code of the nearest of some numbers, 0 and up; of two that are as near the even one."""
    return min(range(len(numbers)), key=lambda code: (abs(numbers[code] - x), code % 2))


def encoded(numbers: Sequence[float], way: str) -> tuple[float, float, float, list[int]]:
    """Return what the scale should be, the scale, the second scale, and the sixteen codes.

    Args:
        numbers: in float32.
        way: "nearest", an E4M3 scale alone; "second", with a scale for a tensor that is these numbers; "power" of two,
            as MXFP4 has it; "plain", no scale.
    """
    largest = max(map(abs, numbers))
    above = wanted = scale = 1.0
    if way == "power":
        scale = wanted = 2.0 ** (
            max(math.frexp(largest)[1] - 3, SMALLEST_POWER) if largest else SMALLEST_POWER
        )
    elif way != "plain":
        if way == "second" and largest:
            above = max(single(largest / (LARGEST_CODE * LARGEST_SCALE)), SMALLEST_SECOND)
        wanted = single(largest / single(LARGEST_CODE * above))
        scale = E4M3[max(nearest(E4M3, wanted), 1)]
    step = single(scale * above)
    codes = [nearest(E2M1, abs(single(x / step))) + (8 if math.copysign(1, x) < 0 else 0) for x in numbers]
    return wanted, scale, above, codes


def told(x: float) -> str:
    """Return four digits of a number, as JavaScript writes them.

    >>> told(0.27), told(1.0625), told(-448.0), told(2.0**-30)
    ('0.27', '1.063', '−448', '9.313e−10')
    """
    if not x:
        return "0"
    exact = Decimal(x)
    rounded = exact.quantize(Decimal(1).scaleb(exact.adjusted() - 3), ROUND_HALF_UP).normalize()
    power = rounded.adjusted()
    text = f"{rounded.scaleb(-power):f}e{power}" if power < -6 else f"{rounded:f}"
    return text.replace("-", "−")


def work(state: State, data: Data) -> Shown:
    """Return one step of sixteen numbers on their way; see `encoded`."""
    step_at, way = state["at"], state["scale"]
    fits = all(abs(x) <= MOST for x in state["numbers"])
    numbers = [single(x) for x in state["numbers"]] if fits else [0.0] * BLOCK
    wanted, scale, above, codes = encoded(numbers, way)
    step = single(scale * above)
    back = [single((-1 if code > 7 else 1) * E2M1[code % 8] * step) for code in codes]
    misses = [abs(x - y) for x, y in zip(numbers, back, strict=True)]
    sizes = [abs(x) for x in numbers]
    first, worst = sizes.index(max(sizes)), misses.index(max(misses))

    says = ("largest", way, "codes", "decoded", "error")[step_at] if fits else "too_large"
    texts: dict[str, str | list[str]] = {
        "largest": told(sizes[first]), "wanted": told(wanted), "scale": told(scale), "above": told(above),
        "step": told(step), "zeros": str(sum(code % 8 == 0 and x != 0 for code, x in zip(codes, numbers, strict=True))),
        "ends": str(sum(code % 8 == 7 for code in codes)), "off": told(sum(misses)), "worst": told(misses[worst]),
        "which": told(numbers[worst]),
    }  # fmt: skip
    columns = {
        "x": [told(x) for x in numbers],
        "q": [told(single(x / step)) for x in numbers],
        "c": [f"{code >> 3} {code >> 1 & 3:02b} {code & 1}" for code in codes],
        "b": [told(x) for x in back],
        "m": [told(x) for x in misses],
    }
    marks = {
        f"{name}{i}": {"text": column[i] if fits and step_at >= _FROM[name] else ""}
        for name, column in columns.items()
        for i in range(BLOCK)
    }
    places = ""
    if fits and step_at > 1:
        places = "".join(
            f"M{at(_X + _UNIT * min(abs(single(x / step)), 6.5))} {at(_RULER - 13)}v10" for x in numbers
        )
    row = worst if step_at == 4 else first
    marks["places"] = {"d": places}
    marks["now"] = {"d": box(8, _TOP + _LINE * row - 11, 320, _LINE) if fits else ""}
    return Shown((says,), texts, marks)


def draw(data: Data, marks: Mapping[str, Mapping[str, str]]) -> tuple[float, str]:
    """Return the ruler with the sixteen on it, and below it the table of all that becomes of them."""
    parts = [
        shape("text", "the eight numbers of E2M1, and the sixteen over the step", x=0, y=LEGEND),
        shape("path", css="axis", d=f"M{at(_X)} {at(_RULER)}h{at(_UNIT * 6.5)}"),
        shape(
            "path", css="ruler", d="".join(f"M{at(_X + _UNIT * number)} {at(_RULER)}v6" for number in E2M1)
        ),
        mark("path", "places", marks, css="line asks"),
        mark("path", "now", marks, css="now"),
    ]
    for number in E2M1:
        x = at(_X + _UNIT * number)
        parts.append(shape("text", f"{number:g}", x=x, y=at(_RULER + 18), text_anchor="middle"))
    for name, head in (("x", "number"), ("q", "÷ step"), ("c", "code"), ("b", "× step"), ("m", "miss")):
        x = at(_COLUMNS[name])
        parts.append(shape("text", head, x=x, y=at(_TOP - 16), text_anchor="end", css="strong"))
        for i in range(BLOCK):
            y = at(_TOP + _LINE * i)
            parts.append(mark("text", f"{name}{i}", marks, x=x, y=y, text_anchor="end"))
    return _TOP + _LINE * BLOCK, "".join(parts)
