"""Coalescing: how many sectors of 32 bytes a warp's 32 threads ask for, by the stride of their walk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from course_site.charts.explorables import Data, Knob, Shown, State, Texts, at, digits, legend, mark

LANES, SECTOR, LINE = 32, 32, 128

KNOBS = {
    "stride": Knob("range", 0, 33),
    "offset": Knob("range", 0, 31),
    "size": Knob("choice", choices={size: str(size) for size in (1, 2, 4, 8, 16)}),
}
# By stride, s1 and so on: 4-byte elements from an aligned address, over the time of stride 1.
DATA = {"time": ("stride", "us")}
SENTENCES = ("one", "all", "some", "measured", "near")
CASES = (
    {"one": ("same",), "all": ("just", "{sectors}"), "some": ("{carried}", "{sectors}")},
    {"measured": ("this stride", "{time}"), "near": ("nearest", "{near}", "{time}")},
)

# A sector is a box, a cache line a row of four of them; eight rows under each other, four such columns.
_BOX, _HIGH, _PITCH, _ROWS, _TOP = 20.0, 12.0, 21.0, 8, 24.0


def given() -> Mapping[str, Any]:
    """Return nothing but what the page records."""
    return {}


def work(state: State, data: Data) -> Shown:
    """Return which sectors and lines the elements of a walk lie in, and how much of them is wanted."""
    stride, offset, size = state["stride"], state["offset"], state["size"]
    wanted = sorted({size * (offset + lane * stride) for lane in range(LANES)})
    sectors = sorted({a // SECTOR for a in wanted})
    lines = sorted({a // LINE for a in wanted})
    share = size * len(wanted) / (SECTOR * len(sectors))
    strides = [int(key[1:]) for key in data["time"]]
    near = min(strides, key=lambda s: max(s / stride, stride / s) if stride else s)
    is_measured = size == 4 and offset == 0 and stride == near
    texts: Texts = {
        "stride": digits(stride), "offset": digits(offset), "size": digits(size),
        "sectors": digits(len(sectors)), "lines": digits(len(lines)),
        "wanted": digits(size * len(wanted)), "carried": digits(SECTOR * len(sectors)),
        "share": digits(100 * share, 0 if 100 * share == int(100 * share) else 1),
        "near": digits(near), "time": ["time", f"s{near}"],
    }  # fmt: skip

    def corner(sector: int) -> tuple[float, float]:
        row = lines.index(sector * SECTOR // LINE)
        return 4.2 * _PITCH * (row // _ROWS) + _PITCH * (sector % 4), _TOP + 15 * (row % _ROWS)

    def box(address: int, width: int, inset: float) -> str:
        x, y = corner(address // SECTOR)
        x += address % SECTOR / SECTOR * _BOX
        return (
            f"M{at(x)} {at(y + inset)}h{at(width / SECTOR * _BOX)}v{at(_HIGH - 2 * inset)}"
            f"h{at(-width / SECTOR * _BOX)}z"
        )

    marks = {
        "lines": {"d": "".join(box(LINE * line + SECTOR * i, SECTOR, 0) for line in lines for i in range(4))},
        "carried": {"d": "".join(box(SECTOR * sector, SECTOR, 0) for sector in sectors)},
        "used": {"d": "".join(box(a, size, 1.5) for a in wanted)},
    }
    first = "all" if share == 1 else "one" if stride == 0 else "some"
    return Shown((first, "measured" if is_measured else "near"), texts, marks)


def draw(data: Data, marks: Mapping[str, Mapping[str, str]]) -> tuple[float, str]:
    """Return rows of boxes: which are carried, and what is wanted of them."""
    parts = [
        legend(("used", "wanted"), ("waste", "carried for nothing"), ("outline", "not carried")),
        mark("path", "lines", marks, css="outline"),
        mark("path", "carried", marks, css="waste"),
        mark("path", "used", marks, css="used"),
    ]
    return _TOP + 15 * _ROWS, "".join(parts)
