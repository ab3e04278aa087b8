"""Little's law: the bytes in flight on a multiprocessor, and the bandwidth of a copy that they allow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from course_site.charts.explorables import Data, Knob, Shown, State, Texts, at, digits, mark, shape

SEATS, LANES = 64, 32  # warps that a multiprocessor holds, threads of a warp

KNOBS = {
    "warps": Knob("range", 1, SEATS),
    "bytes": Knob("choice", choices={size: str(size) for size in (4, 8, 16, 32, 64, 128)}),
}
# rate and seats: by v1.r1 and so on, GB/s of a copy with V vectors of 16 bytes in each thread, and how much of its room
# for threads the multiprocessor had filled. trip in ticks, clock in MHz, sheet in GB/s.
DATA = {
    "rate": ("gb_per_s",), "seats": ("seats",), "trip": ("hbm",), "clock": ("clock",), "sms": ("sms",),
    "sheet": ("bandwidth",),
}  # fmt: skip
SENTENCES = ("few", "enough", "measured", "near")
CASES = (
    {"few": ("few", "{allowed} GB/s"), "enough": ("enough", "{would} GB/s", "{sheet} GB/s")},
    {"measured": ("just these", "{rate} GB/s"), "near": ("nearest", "{near} KiB", "{rate} GB/s")},
)

_LEFT, _RIGHT, _TOP, _FLOOR, _LOW, _OCTAVES = 36.0, 337.0, 24.0, 174.0, -3, 11


def given() -> Mapping[str, Any]:
    """Return nothing but what the page records."""
    return {}


def allowed(kib: float, data: Data) -> float:
    """GB/s of a copy, read and written, when so much comes back on each multiprocessor after every trip."""
    ticks = data["trip"]["value"]
    return 2 * kib * 1024 * data["sms"]["value"] * data["clock"]["value"] / ticks / 1e3


def work(state: State, data: Data) -> Shown:
    """Return what the law allows, and the nearest that was measured."""
    warps, size, sheet = state["warps"], state["bytes"], data["sheet"]["value"]
    kib = warps * LANES * size / 1024
    rate = allowed(kib, data)

    def far(key: str) -> tuple[float, float]:
        there, vectors = _place(key, data), 16 * int(key[1])
        return max(there / kib, kib / there), max(vectors / size, size / vectors)

    near = min(data["rate"], key=far)
    least = min(rate, sheet)
    texts: Texts = {
        "warps": digits(warps), "bytes": digits(size), "kib": _short(kib),
        "allowed": digits(least), "would": digits(rate), "share": digits(100 * least / sheet),
        "seats": digits(100 * warps / SEATS), "sheet": ["sheet"], "near": _short(_place(near, data)),
        "rate": ["rate", near],
    }  # fmt: skip
    marks = {
        "drop": {"d": f"M{at(_x(kib))} {at(_FLOOR)}V{at(_y(least, sheet))}"},
        "you": {"cx": at(_x(kib)), "cy": at(_y(least, sheet))},
        "met": {
            "cx": at(_x(_place(near, data))), "cy": at(_y(data["rate"][near]["value"], sheet)),
        },
    }  # fmt: skip
    says = ("few" if rate < sheet else "enough", "measured" if far(near) == (1, 1) else "near")
    return Shown(says, texts, marks)


def _place(key: str, data: Data) -> float:
    """KiB in flight on each multiprocessor where it was measured."""
    return float(16 * int(key[1]) * LANES * SEATS * data["seats"][key]["value"] / 1024)


def _short(kib: float) -> str:
    return digits(kib, 0 if kib == math.floor(kib) else 3 if kib < 1 else 1)


def _x(kib: float) -> float:
    return _LEFT + (math.log2(kib) - _LOW) / _OCTAVES * (_RIGHT - _LEFT)


def _y(rate: float, sheet: float) -> float:
    return _FLOOR - rate / (1.05 * sheet) * (_FLOOR - _TOP)


def draw(data: Data, marks: Mapping[str, Mapping[str, str]]) -> tuple[float, str]:
    """Return the law's curve under the data sheet's roof, the measured points, and where the reader stands."""
    sheet = data["sheet"]["value"]
    law = [2 ** (n / 4 + _LOW) for n in range(4 * _OCTAVES + 1)]
    below = [kib for kib in law if allowed(kib, data) < sheet]
    bend = sheet / allowed(1, data)
    curve = "L".join(f"{at(_x(kib))} {at(_y(allowed(kib, data), sheet))}" for kib in [*below, bend])
    step = 1000 if sheet < 6000 else 2000
    parts = [shape("text", "GB/s, read and written", x=0, y=10)]
    for rate in range(0, int(1.05 * sheet), step):
        y = at(_y(rate, sheet))
        parts.append(shape("path", css="grid" if rate else "axis", d=f"M{at(_LEFT)} {y}H{at(_RIGHT)}"))
        parts.append(
            shape("text", f"{rate:,}", x=at(_LEFT - 4), y=at(_y(rate, sheet) + 3), text_anchor="end")
        )
    for n in range(_LOW + 1, _LOW + _OCTAVES + 1, 2):
        label = f"{2**n:g}" if n >= 0 else f"1/{2**-n}"
        parts.append(shape("text", label, x=at(_x(2**n)), y=at(_FLOOR + 13), text_anchor="middle"))
    parts += [
        shape("text", "KiB in flight on each SM", x=at(_RIGHT), y=at(_FLOOR + 26), text_anchor="end"),
        shape("path", css="roof", d=f"M{curve}H{at(_RIGHT)}"),
        shape(
            "text",
            "what the law allows",
            x=at(_x(bend) - 8),
            y=at(_y(0.86 * sheet, sheet)),
            text_anchor="end",
        ),
        mark("path", "drop", marks, css="drop"),
        *(
            shape("circle", css="point", r=2.6, cx=at(_x(_place(k, data))), cy=at(_y(v["value"], sheet)))
            for k, v in data["rate"].items()
        ),
        shape("text", "measured", x=at(_RIGHT), y=at(_y(0.7 * sheet, sheet)), text_anchor="end"),
        mark("circle", "met", marks, css="met", r=5.5),
        mark("circle", "you", marks, css="you", r=5.5),
    ]
    return _FLOOR + 30, "".join(parts)
