"""Roofline: what a card allows a kernel, by how many operations it does for each byte."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from course_kernels.measure.machine import MACHINES
from course_site.charts.explorables import Data, Knob, Shown, State, at, digits, mark, shape, short

# A place of the knob is an eighth of a doubling.
_EIGHTHS, _LOWEST = 8, -4
KNOBS = {
    "place": Knob("range", 0, 128),
    "card": Knob("select", choices={machine.slug: machine.name for machine in MACHINES}),
    "math": Knob("choice", choices={"fp32": "fp32", "bf16": "bf16"}),
}
# Of the kernels that the page measured, by what they are called; TFLOP/s.
DATA = {"intensity": ("intensity",), "rate": ("tflops",)}
SENTENCES = ("memory", "arithmetic", "job", "also", "elsewhere")
CASES = (
    {
        "memory": ("memory", "left of the ridge", "{rate} TFLOP/s"),
        "arithmetic": ("arithmetic", "right of the ridge"),
    },
    {"job": ("{job0}, {rate0} TFLOP/s",), "also": ("{job1}, {rate1}",)},
)
ALT = {"memory": "on the slope", "arithmetic": "on the flat"}

_LEFT, _RIGHT, _TOP, _FLOOR, _SLOW, _FAST = 36.0, 331.0, 24.0, 194.0, -1.5, 3.5  # powers of ten, TFLOP/s


def given() -> Mapping[str, Any]:
    """Return the data sheets."""

    def said(value: float) -> dict[str, Any]:
        return {"value": value, "html": digits(value, 0 if value == math.floor(value) else 1)}

    return {
        machine.slug: {
            "name": {"html": machine.name},
            "bandwidth": said(machine.bandwidth_gb_per_s),
            "fp32": said(machine.peak_tflops["fp32"]),
            "bf16": said(machine.peak_tflops["bf16"]),
        }
        for machine in MACHINES
    }


def attainable(intensity: float, peak_tflops: float, gb_per_s: float) -> float:
    """TFLOP/s that a card allows at best."""
    return min(peak_tflops, intensity * gb_per_s / 1e3)


def work(state: State, data: Data) -> Shown:
    """Return which of the two roofs is the lower one over a kernel, and the jobs that were measured there."""
    card = data["given"][state["card"]]
    peak, bandwidth = card[state["math"]]["value"], card["bandwidth"]["value"]
    intensity = 2.0 ** (state["place"] / _EIGHTHS + _LOWEST)
    here = data["card"] == state["card"] and state["math"] == "fp32"
    jobs = [
        name
        for name, found in data["intensity"].items()
        if here and abs(math.log2(found["value"] / intensity)) <= 0.5 / _EIGHTHS
    ]
    if jobs:  # a job that was measured has a place of its own
        intensity = data["intensity"][jobs[0]]["value"]
    rate, ridge = attainable(intensity, peak, bandwidth), peak * 1e3 / bandwidth
    texts: dict[str, str | list[str]] = {
        "place": short(intensity), "rate": short(rate), "ridge": short(ridge), "share": digits(100 * rate / peak),
        "card": ["given", state["card"], "name"], "peak": ["given", state["card"], state["math"]],
        "bandwidth": ["given", state["card"], "bandwidth"],
    }  # fmt: skip
    for number, name in enumerate(jobs[:2]):
        texts |= {f"job{number}": ["names", name], f"rate{number}": ["rate", name]}
    x, y = _x(intensity), _y(rate)
    marks = {
        "roof": {
            "d": f"M{at(_LEFT)} {at(_y(attainable(2.0**_LOWEST, peak, bandwidth)))}"
            f"L{at(_x(ridge))} {at(_y(peak))}H{at(_RIGHT)}"
        },
        "ridge": {"transform": f"translate({at(_x(ridge))} 0)"},
        "bend": {"text": short(ridge)},
        "drop": {"d": f"M{at(x)} {at(_FLOOR)}V{at(y)}"},
        "you": {"cx": at(x), "cy": at(y)},
        "jobs": {"visibility": "visible" if here else "hidden"},
    }
    for number in range(2):
        found = data["rate"][jobs[number]]["value"] if number < len(jobs) else rate
        marks[f"met{number}"] = {
            "cx": at(x), "cy": at(_y(found)), "visibility": "visible" if number < len(jobs) else "hidden"
        }  # fmt: skip
    says = ["memory" if intensity < ridge else "arithmetic", *("job", "also")[: len(jobs)]]
    if not here:
        says.append("elsewhere")
    return Shown(tuple(says), texts, marks)


def _x(intensity: float) -> float:
    return _LEFT + (math.log2(intensity) - _LOWEST) / 16 * (_RIGHT - _LEFT)


def _y(rate: float) -> float:
    return _FLOOR - (math.log10(rate) - _SLOW) / (_FAST - _SLOW) * (_FLOOR - _TOP)


def draw(data: Data, marks: Mapping[str, Mapping[str, str]]) -> tuple[float, str]:
    """Return both axes logarithmic: the roof, the jobs that were measured, and where the reader's kernel stands."""
    parts = [shape("text", "TFLOP/s", x=0, y=10)]
    for power in range(-1, 4):
        y = _y(10**power)
        parts.append(shape("path", css="grid", d=f"M{at(_LEFT)} {at(y)}H{at(_RIGHT)}"))
        parts.append(shape("text", f"{10**power:,g}", x=at(_LEFT - 4), y=at(y + 3), text_anchor="end"))
    parts.append(shape("path", css="axis", d=f"M{at(_LEFT)} {at(_FLOOR)}H{at(_RIGHT)}"))
    for power in range(_LOWEST, 13, 4):
        label = f"{2**power:,}" if power >= 0 else f"1/{2**-power}"
        parts.append(shape("text", label, x=at(_x(2.0**power)), y=at(_FLOOR + 13), text_anchor="middle"))
    jobs = "".join(
        f'<circle r="2.8" cx="{at(_x(data["intensity"][name]["value"]))}" cy="{at(_y(rate["value"]))}">'
        f"<title>{data['names'][name]['html']}</title></circle>"
        for name, rate in data["rate"].items()
    )
    ridge = (
        shape("path", css="ridge", d=f"M0 {at(_TOP - 8)}V{at(_FLOOR)}")
        + shape("text", "ridge", x=-4, y=at(_TOP - 2), text_anchor="end")
        + mark("text", "bend", marks, x=4, y=at(_TOP - 2))
    )
    parts += [
        shape("text", "operations for each byte", x=at(_RIGHT), y=at(_FLOOR + 26), text_anchor="end"),
        mark("g", "ridge", marks).replace("</g>", f"{ridge}</g>"),
        mark("path", "roof", marks, css="roof"),
        mark("path", "drop", marks, css="drop"),
        mark("g", "jobs", marks, css="point").replace("</g>", f"{jobs}</g>"),
        mark("circle", "met0", marks, css="met", r=5.5),
        mark("circle", "met1", marks, css="met", r=5.5),
        mark("circle", "you", marks, css="you", r=6),
    ]
    return _FLOOR + 30, "".join(parts)
