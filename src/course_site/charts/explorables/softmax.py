"""Softmax of a row whose scores come tile by tile: what is held after each step, in fp32 as the kernel holds it."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course_site.charts.explorables import Data, Knob, Shown, State, at, box, digits, mark, shape

ROWS = {
    "page": "1, 3, 2, 5, 4, 7, 0, 6",
    "order": "7, 6, 5, 4, 3, 2, 1, 0",
    "large": "998, 1000, 999, 997",
    "small": "-120, -118, -119",
    "masked": "-inf, -inf, 2, 5",
}
MOST = 8  # scores
NEVER = -1e30  # what the kernel that you type has in place of minus infinity
VALUES = tuple(10.0 * (i + 1) for i in range(MOST))

KNOBS = {
    "row": Knob("select", choices={**dict.fromkeys(ROWS, ""), "own": ""}),
    "scores": Knob("numbers", 1, MOST),
    "width": Knob("choice", choices={width: str(width) for width in (1, 2, 4)}),
    "mask": Knob("choice", choices={"infinity": "", "never": ""}),
    "step": Knob("steps", 0, 2 * MOST + 1),
}
DATA: dict[str, tuple[str, ...]] = {}
SENTENCES = (
    "start", "first", "higher", "same", "broken", "add", "still_broken",
    "served", "nothing_served", "agree", "only_plain", "no_softmax",
    "without", "overflow", "underflow", "lost",
)  # fmt: skip
CASES = (
    {"higher": ("{old}", "{factor}"), "same": ("{m}", "{factor}"), "broken": ("masked",), "add": ("added",)},
    {"served": ("divide", "{out}"), "nothing_served": ("not a number", "{out}")},
    {"agree": ("{plain}", "the same"), "only_plain": ("{plain}", "masked"), "no_softmax": ("masked", "{out}")},
    {
        "without": ("{bare}", "enough"), "overflow": ("{bare}", "more than"), "underflow": ("{bare}", "0 / 0"),
        "lost": ("{bare}", "digits"),
    },
)  # fmt: skip

_LOW, _HIGH = -2, 10  # of the line that scores stand on
_X, _UNIT, _Y, _PITCH = 54, 11.5, 30, 17
_BAR, _WIDE = 206, 106


@dataclass(frozen=True)
class Held:
    """State of the running softmax, on the sleeve: the largest score, the sum and the plate.

    `old` and `factor` of the last repair.
    """

    kind: str  # start, repair, add, divide
    start: int
    end: int
    m: float
    l: float
    a: float
    old: float = math.nan
    factor: float = math.nan


def given() -> Mapping[str, Any]:
    """Return rows of scores to begin with."""
    return {"rows": ROWS}


def held(scores: Sequence[float], width: int, never: float) -> list[Held]:
    """Return every state of the row, from nothing seen to the answer."""
    m, total, plate = _fp32(never), 0.0, 0.0
    states = [Held("start", 0, 0, m, total, plate)]
    for start in range(0, len(scores), width):
        end, old = min(start + width, len(scores)), m
        m = max(m, *scores[start:end])
        factor = _exp(old - m)
        total, plate = _fp32(total * factor), _fp32(plate * factor)
        states.append(Held("repair", start, end, m, total, plate, old, factor))
        total, plate = _summed(scores, start, end, m, total, plate)
        states.append(Held("add", start, end, m, total, plate, old, factor))
    return [*states, Held("divide", 0, len(scores), m, total, plate)]


def _summed(
    scores: Sequence[float], start: int, end: int, m: float, total: float = 0.0, plate: float = 0.0
) -> tuple[float, float]:
    for i in range(start, end):
        p = _exp(scores[i] - m)
        total = _fp32(total + p)
        plate = _fp32(plate + _fp32(p * VALUES[i]))
    return total, plate


def work(state: State, data: Data) -> Shown:
    """Return the state after so many steps; at the end, what all scores at once give, the largest taken off or not."""
    never = NEVER if state["mask"] == "never" else -math.inf
    scores = [_fp32(never if s == -math.inf else s) for s in state["scores"]]
    states = held(scores, state["width"], never)
    step = min(state["step"], len(states) - 1)
    now = states[step]
    plain = _ratio(*_summed(scores, 0, len(scores), states[-1].m)[::-1])
    bare_sum, bare_plate = _summed(scores, 0, len(scores), 0.0)
    bare, out = _ratio(bare_plate, bare_sum), _ratio(now.a, now.l)

    if now.kind == "start":
        says = ["start"]
    elif now.kind == "repair":
        broken = math.isnan(now.factor)
        says = ["broken" if broken else "first" if step == 1 else "higher" if now.m > now.old else "same"]
    elif now.kind == "add":
        says = ["still_broken" if math.isnan(now.l) else "add"]
    elif math.isnan(plain):
        says = ["no_softmax"]
    else:
        says = ["nothing_served", "only_plain"] if math.isnan(out) else ["served", "agree"]
        says.append(
            "underflow" if bare_sum == 0
            else "overflow" if not math.isfinite(bare)
            else "without" if abs(bare - plain) <= 1e-4 * abs(plain)
            else "lost"
        )  # fmt: skip

    texts: dict[str, str | list[str]] = {
        "step": digits(step), "steps": digits(len(states) - 1),
        "tile": digits(math.ceil(now.end / state["width"])),
        "tiles": digits((len(states) - 2) / 2),
        "brought": ", ".join(_number(s) for s in scores[now.start : now.end]),
        "old": _number(now.old), "m": _number(now.m), "factor": _number(now.factor, 4),
        "l": _number(now.l, 4), "a": _number(now.a, 3),
        "out": _number(out, 3) if now.kind == "divide" else "",
        "plain": _number(plain, 3), "bare": _number(bare, 3), "bare_sum": _number(bare_sum, 4),
    }  # fmt: skip

    parts = dict.fromkeys(("tiles", "tile", "late", "fresh", "past", "ghost", "kept", "new"), "")
    marks: dict[str, dict[str, str]] = {}
    done = now.end if now.kind in ("add", "divide") else now.start
    for i in range(MOST):
        y, text, weight = _Y + _PITCH * i, "", ""
        if i < len(scores):
            text = _number(scores[i])
            is_fresh = now.kind in ("repair", "add") and now.start <= i < now.end
            if scores[i] > NEVER:
                where = "fresh" if is_fresh else "past" if i < done else "late"
                parts[where] += _dot(_place(scores[i]), y + 6)
            if i % state["width"] == 0:
                rows = min(state["width"], len(scores) - i)
                parts["tile" if is_fresh else "tiles"] += f"M8 {at(y)}h-6v{at(_PITCH * rows - 5)}h6"
            if i < done:
                p = _exp(scores[i] - now.m)
                weight = _number(p, 3)
                if p > 0:
                    parts["new" if is_fresh else "kept"] += box(_BAR, y + 1, p * _WIDE, 10)
            if now.kind == "repair" and i < now.start and _exp(scores[i] - now.old) > 0:
                parts["ghost"] += box(_BAR, y + 1, _exp(scores[i] - now.old) * _WIDE, 10)
        marks[f"s{i}"], marks[f"p{i}"] = {"text": text}, {"text": weight}
    for name, m in (("ruler", now.m), ("before", now.old if now.kind == "repair" else now.m)):
        x = at(_place(m))
        parts[name] = "" if math.isnan(m) or m <= NEVER else f"M{x} {_Y - 6}V{_Y + _PITCH * MOST}"
    moved = now.kind == "repair" and step > 1
    marks |= {name: {"d": d} for name, d in parts.items()}
    marks |= {
        **{name: {"text": str(texts[name])} for name in ("m", "l", "a")},
        "factor": {"text": f"× {texts['factor']}" if moved else ""},
        "out": {"text": f"a / l = {texts['out']}" if texts["out"] else ""},
    }
    return Shown(tuple(says), texts, marks, {"step": len(states) - 1})


def _fp32(x: float) -> float:
    """Round to the nearest fp32 number; too large is infinite."""
    try:
        return float(struct.unpack("f", struct.pack("f", x))[0])
    except OverflowError:
        return math.copysign(math.inf, x)


def _exp(x: float) -> float:
    try:
        return _fp32(math.exp(_fp32(x)))
    except OverflowError:
        return math.inf


def _ratio(a: float, b: float) -> float:
    if b == 0 or (math.isinf(a) and math.isinf(b)):
        return math.nan  # in a softmax what is divided by 0 is 0 itself
    return _fp32(a / b)


def _number(x: float, after: int | None = None) -> str:
    """Format with so many digits behind the point, or as many as it has, two at most."""
    if math.isnan(x):
        return "NaN"
    if math.isinf(x):
        return "∞" if x > 0 else "−∞"
    if x <= NEVER / 2:
        return "−10³⁰"
    if abs(x) >= 1e9:
        return f"{x:.2e}".replace("-", "−")
    text = digits(x, 2 if after is None else after).replace("-", "−")
    return text.rstrip("0").rstrip(".") if after is None else text


def _place(score: float) -> float:
    return _X + _UNIT * (min(max(score, _LOW), _HIGH) - _LOW)


def _dot(x: float, y: float) -> str:
    return f"M{at(x - 4)} {at(y)}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z"


def draw(data: Data, marks: Mapping[str, Mapping[str, str]]) -> tuple[float, str]:
    """Return a row for each score: its tile, its place, and its weight against the largest that was seen."""
    bottom = _Y + _PITCH * MOST
    parts = [
        shape("text", "score", x=38, y=12, text_anchor="end"),
        shape("text", "m, the largest so far", x=_X + 4, y=12),
        shape("text", "its weight, e to the s − m", x=_BAR, y=12),
        shape("path", css="outline", d="".join(f"M{_X} {_Y + _PITCH * i + 6}h{at(_UNIT * (_HIGH - _LOW))}"
                                               for i in range(MOST)) + f"M{_BAR} {_Y - 6}V{bottom}"),
        mark("path", "tiles", marks, css="bracket"),
        mark("path", "tile", marks, css="ruler"),
        mark("path", "before", marks, css="ghost"),
        mark("path", "ruler", marks, css="ruler"),
        mark("path", "ghost", marks, css="ghost"),
        mark("path", "kept", marks, css="cold"),
        mark("path", "new", marks, css="used"),
        mark("path", "late", marks, css="dots"),
        mark("path", "past", marks, css="dots full"),
        mark("path", "fresh", marks, css="dots new"),
    ]  # fmt: skip
    for i in range(MOST):
        y = _Y + _PITCH * i + 9.5
        parts.append(mark("text", f"s{i}", marks, x=38, y=y, text_anchor="end", css="strong"))
        parts.append(mark("text", f"p{i}", marks, x=345, y=y, text_anchor="end"))
    for score in range(_LOW, _HIGH + 1, 2):
        parts.append(shape("text", _number(score), x=at(_place(score)), y=bottom + 10, text_anchor="middle"))
    for name, x in (("m", 0), ("l", 66), ("a", 150)):
        parts.append(shape("text", f"{name} =", x=x, y=bottom + 32))
        parts.append(
            mark("text", name, marks, x=x + (24 if name == "m" else 20), y=bottom + 32, css="strong")
        )
    parts.append(mark("text", "factor", marks, x=_BAR, y=bottom + 10, css="hot"))
    parts.append(mark("text", "out", marks, x=345, y=bottom + 32, text_anchor="end", css="strong"))
    return bottom + 40, "".join(parts)
