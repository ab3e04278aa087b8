"""Bank conflicts: how long the longest queue at the 32 banks of shared memory is, by the stride of a warp's walk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from course_site.charts.explorables import Data, Knob, Shown, State, Texts, at, digits, legend, mark, shape

LANES = BANKS = 32  # a bank hands out one word of 4 bytes in each turn

KNOBS = {"stride": Knob("range", 0, 66)}
# By stride, s1 and so on: the time over that of stride 1, the turns by the counters.
DATA = {"time": ("bank", "us"), "counted": ("bank", "turns")}
SENTENCES = ("same", "free", "queue", "measured", "near")
CASES = (
    {"same": ("same",), "free": ("nobody waits",), "queue": ("{busy} of 32", "{queue} turns")},
    {
        "measured": ("this stride", "{counted}", "{time}"),
        "near": ("{near}", "{counted}", "{time}"),
    },
)

_PITCH, _WIDE, _RISE, _HIGH, _FLOOR = 10.78, 8.8, 3.8, 3.0, 150.0


def given() -> Mapping[str, Any]:
    """Return nothing but what the page records."""
    return {}


def work(state: State, data: Data) -> Shown:
    """Return how many words wait behind each bank, and the measured stride whose longest queue is as long."""
    stride = state["stride"]
    queues = queues_of(stride)
    longest = max(queues)
    measured = [int(key[1:]) for key in data["time"]]
    near = stride if stride in measured else next(s for s in measured if max(queues_of(s)) == longest)
    texts: Texts = {
        "stride": digits(stride), "busy": digits(sum(map(bool, queues))), "queue": digits(longest),
        "near": digits(near), "time": ["time", f"s{near}"], "counted": ["counted", f"s{near}"],
    }  # fmt: skip

    def word(bank: int, turn: int) -> str:
        x, y = at(_PITCH * bank), at(_FLOOR - _RISE * (turn + 1))
        return f"M{x} {y}h{at(_WIDE)}v{at(_HIGH)}h{at(-_WIDE)}z"

    tallest = queues.index(longest)
    marks = {
        "first": {"d": "".join(word(bank, 0) for bank in range(BANKS) if queues[bank])},
        "waits": {"d": "".join(word(b, turn) for b in range(BANKS) for turn in range(1, queues[b]))},
        "longest": {
            "x": at(_PITCH * tallest + _WIDE / 2), "y": at(_FLOOR - _RISE * longest - 4), "text": digits(longest)
        },
    }  # fmt: skip
    first = "queue" if longest > 1 else "free" if stride else "same"
    return Shown((first, "measured" if near == stride else "near"), texts, marks)


def queues_of(stride: int) -> list[int]:
    """Return how many different words the lanes of a warp want behind each bank."""
    words = {lane * stride for lane in range(LANES)}
    return [sum(word % BANKS == bank for word in words) for bank in range(BANKS)]


def draw(data: Data, marks: Mapping[str, Mapping[str, str]]) -> tuple[float, str]:
    """Return the banks side by side, and over each the words that are wanted behind it."""
    parts = [
        legend(("used", "handed out in the first turn"), ("waste", "waits")),
        shape("path", css="axis", d=f"M0 {at(_FLOOR + 0.5)}H345"),
        *(
            shape("text", str(b), x=at(_PITCH * b + _WIDE / 2), y=at(_FLOOR + 12), text_anchor="middle")
            for b in (0, 8, 16, 24, 31)
        ),
        shape("text", "number of the bank (the window)", x=345, y=at(_FLOOR + 25), text_anchor="end"),
        mark("path", "waits", marks, css="waste"),
        mark("path", "first", marks, css="used"),
        mark("text", "longest", marks, css="strong", text_anchor="middle"),
    ]
    return _FLOOR + 30, "".join(parts)
