"""Two timelines: a cursor over the cycles of a block without roles and of one with them, and who does what there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from course_site.charts.explorables import Data, Knob, Shown, State, at, box, digits, mark, shape
from course_site.charts.plots import WIDTH

MOST = 8192  # cycles that a slider has room for before the trace is known

KNOBS = {
    "of": Knob("choice", choices={"both": "both", "wide": "k07", "roles": "k08"}),
    "tick": Knob("steps", 0, MOST),
}
# Recorded traces of the columns lane, does, from_cycles and to_cycles. What `does` counts: 0 waits at an mbarrier,
# 1 multiplies, 2 waits for everybody, 3 asks for tiles.
DATA = {"wide": ("wide",), "roles": ("roles",)}
SENTENCES = ("at", "wide", "roles")
CASES = (
    {
        "tile": ("its tiles",), "place": ("free place",), "multiplies": ("multiplies",), "meets": ("everybody",),
        "asks": ("asks for",),
    },
    {"earlier": ("earlier",), "later": ("later",), "between": ("between",)},
    {
        "by_copy": ("copy engine",), "by_consumers": ("consumers",), "by_other": ("other one",),
        "by_both": ("both have",),
    },
    {"wide": ("k07", "0 {w0}", "1 {w1}"), "roles": ("k08", "producer {r0}", "1 {r1}", "2 {r2}")},
)  # fmt: skip
WORDS = (
    "tile", "place", "multiplies", "meets", "asks",  # what somebody does; the first two wait at an mbarrier
    "between", "earlier", "later", "began",  # of where nothing was stamped, and since when it is so
    "by_copy", "by_consumers", "by_other", "by_both", "by_nobody",  # who ends a wait
)  # fmt: skip

WAITS, MULTIPLIES, MEETS, ASKS = range(4)
DOES = ("waits", "multiplies", "meets", "asks")
# Each lane by its name: its trace, its number there, and what stands over it.
LANES = {
    "w0": ("wide", 0, "warpgroup 0, multiplies and asks"),
    "w1": ("wide", 1, "warpgroup 1, multiplies"),
    "r0": ("roles", 0, "warpgroup 0, the producer"),
    "r1": ("roles", 1, "warpgroup 1, a consumer"),
    "r2": ("roles", 2, "warpgroup 2, a consumer"),
}
GROUPS = {"wide": "k07: no roles", "roles": "k08: roles"}

_X, _HIGH, _TOP = 1.0, 14.0, 34.0
# y of every lane's box, and of the name over each kernel's: a line for the name of a kernel, one for that of a lane.
_PLACE = {"w0": 64.0, "w1": 96.0, "r0": 148.0, "r1": 180.0, "r2": 212.0}
_HEAD = {"wide": _TOP + 11, "roles": 130.0}
_FLOOR = 234.0


class Span(NamedTuple):
    """Something that a warpgroup did, in cycles."""

    does: int
    begin: float
    end: float


def given() -> Mapping[str, Any]:
    """Return nothing but what the page records."""
    return {}


def spans(name: str, data: Data) -> list[Span]:
    """Return what a lane did, one thing after the other."""
    trace, number, _ = LANES[name]
    columns = data[trace]["value"]
    rows = zip(*(columns[key] for key in ("lane", "does", "from_cycles", "to_cycles")), strict=True)
    return sorted(
        (Span(int(does), begin, end) for lane, does, begin, end in rows if lane == number),
        key=lambda span: span.begin,
    )


def last(data: Data) -> float:
    """Return the last cycle of both traces."""
    return float(max(max(data[trace]["value"]["to_cycles"]) for trace in GROUPS))


def events(of: str, data: Data) -> list[float]:
    """Return the cycles at which somebody of these kernels begins or ends something, in order."""
    own = [data[trace]["value"] for trace in GROUPS if of in ("both", trace)]
    return sorted({tick for columns in own for key in ("from_cycles", "to_cycles") for tick in columns[key]})


def work(state: State, data: Data) -> Shown:
    """Return what each warpgroup does at this cycle, since when, and who ends it."""
    end = last(data)
    tick = min(state["tick"], int(end))
    seen = events(state["of"], data)
    texts: dict[str, str | list[str]] = {
        "tick": digits(tick), "events": digits(len(seen)), "event": digits(sum(one <= tick for one in seen)),
    }  # fmt: skip
    marks: dict[str, dict[str, str]] = {}
    x = _x(tick, end)
    for name in LANES:
        own = spans(name, data)
        now = next((span for span in own if span.begin <= tick < span.end), None)
        before = max((span.end for span in own if span.end <= tick), default=None)
        if now:
            does = DOES[now.does] if now.does else "place" if name == "r0" else "tile"
        else:
            later = all(span.begin <= tick for span in own)
            does = "earlier" if before is None else "later" if later else "between"
        since = now.begin if now else before
        texts[name] = ["words", does]
        texts[f"{name}_since"] = ["words", "began"] if since is None else digits(since)
        texts[f"{name}_end"] = ["words", _ends(name, now, tick, data)]
        inside = (
            box(_x(now.begin, end), _PLACE[name], (now.end - now.begin) * _unit(end), _HIGH) if now else ""
        )
        marks[name] = {"d": inside}
    marks["cursor"] = {"d": f"M{at(x)} {at(_TOP + 16)}V{at(_FLOOR)}"}
    marks["grip"] = {"cx": at(x), "cy": at(_FLOOR)}
    says = ("at", *(trace for trace in GROUPS if state["of"] in ("both", trace)))
    return Shown(says, texts, marks, {"tick": int(end)})


def _ends(name: str, now: Span | None, tick: int, data: Data) -> str:
    """Return who ends the wait of a warpgroup, by the name of the words for it."""
    if now is None or now.does in (MULTIPLIES, ASKS):
        return "by_nobody"
    if now.does == WAITS:
        return "by_consumers" if name == "r0" else "by_copy"
    # At a barrier for everybody whoever comes last ends the wait. The other's turn at it ends next to mine.
    others = [span for span in spans("w1" if name == "w0" else "w0", data) if span.does == MEETS]
    other = min(others, key=lambda span: abs(span.end - now.end), default=None)
    return "by_other" if other and other.begin > tick else "by_both"


def _unit(end: float) -> float:
    return (WIDTH - 2 * _X) / end


def _x(tick: float, end: float) -> float:
    return _X + tick * _unit(end)


def draw(data: Data, marks: Mapping[str, Mapping[str, str]]) -> tuple[float, str]:
    """Five lanes on one scale of time, and a cursor through all of them; what runs under it has a frame."""
    end = last(data)
    parts = [
        "<defs>"
        + _pattern("meets", 4, "M-1 -1L5 5M-1 5L5 -1")
        + _pattern("asks", 6, "M-1 7L7 -1M-1 1L1 -1M5 7L7 5")
        + "</defs>"
    ]
    said = ("waits at an mbarrier", "multiplies", "waits for everybody", "asks for tiles")
    for n, (does, words) in enumerate(zip(DOES, said, strict=True)):
        left, top = 1 + n % 2 * 150, n // 2 * 16
        parts.append(_box(does, box(left, top + 1, 20, 10)))
        parts.append(shape("text", words, x=left + 26, y=top + 10))
    for trace, words in GROUPS.items():
        parts.append(shape("text", words, css="strong", x=0, y=at(_HEAD[trace])))
    for name, (_, _, words) in LANES.items():
        parts.append(shape("text", words, x=0, y=at(_PLACE[name] - 4)))
        for span in spans(name, data):
            wide = (span.end - span.begin) * _unit(end)
            parts.append(_box(DOES[span.does], box(_x(span.begin, end), _PLACE[name], wide, _HIGH)))
    parts.append(shape("path", css="axis", d=f"M{at(_X)} {at(_FLOOR)}H{at(WIDTH - _X)}"))
    step = next(n for k in range(13) for n in (10**k, 2 * 10**k, 5 * 10**k) if end / n <= 4)
    for tick in range(0, int(end) + 1, step):
        x, anchor = _x(tick, end), "start" if tick == 0 else "middle" if tick < 0.95 * end else "end"
        parts.append(shape("path", css="axis", d=f"M{at(x)} {at(_FLOOR)}v4"))
        parts.append(shape("text", digits(tick), x=at(x), y=at(_FLOOR + 17), text_anchor=anchor))
    parts.append(shape("text", "cycles of the SM", x=at(WIDTH), y=at(_FLOOR + 31), text_anchor="end"))
    parts.append(mark("path", "cursor", marks, css="cursor"))
    parts += [mark("path", name, marks, css="now") for name in LANES]
    parts.append(mark("circle", "grip", marks, css="you", r=6))
    return _FLOOR + 36, "".join(parts)


def _pattern(name: str, size: int, d: str) -> str:
    inside = shape("path", css=f"line {name}", d=d)
    return shape(
        "pattern", id=f"timelines-{name}", width=size, height=size, patternUnits="userSpaceOnUse"
    ).replace("></pattern>", f">{inside}</pattern>")


def _box(does: str, d: str) -> str:
    fill = {"fill": f"url(#timelines-{does})"} if does in ("meets", "asks") else {}
    return shape("path", css=f"span {does}", d=d, **fill)
