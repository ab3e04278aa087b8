"""Charts: plain numbers in, one inline SVG out. Nothing here knows a page, a record or a unit.

matplotlib draws with sentinel colours; afterwards every sentinel becomes a CSS colour, so a chart follows the page into
dark mode, onto paper and onto a phone. Text stays text. A series is told apart by its marker, its dashes and a label at
its end, never by colour alone. matplotlib is loaded only when a chart is not in the cache.
"""

from __future__ import annotations

import hashlib
import html
import io
import json
import math
import os
import re
import statistics
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import cache
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

CACHE = Path(".cache/charts")

# One unit of the drawing is one CSS pixel on a 390-pixel phone or a little more, and the room for every label is laid
# out there. On a desk, where the same drawing is larger, the page's `--letters` makes them smaller again.
WIDTH = 345.0
SMALL, TITLE = 11.0, 12.6
LINE = 13.2  # height of a line of small text

# Sentinel -> CSS, with a fallback for readers that know no custom properties (a notebook, an image viewer).
INK, SOFT, RULE, PAPER = "#010203", "#010305", "#010406", "#010407"
COLOURS = ("#010501", "#010502", "#010503", "#010504", "#010505", "#010506", "#010507")
CSS = {
    INK: "currentColor",
    SOFT: "var(--ink-soft,#5f5a52)",
    RULE: "var(--rule,#e3dcd1)",
    PAPER: "var(--paper,#fff)",
    COLOURS[0]: "var(--chart-1,#b3471c)",
    COLOURS[1]: "var(--chart-2,#1f6391)",
    COLOURS[2]: "var(--chart-3,#2f7350)",
    COLOURS[3]: "var(--chart-4,#7a4a9c)",
    COLOURS[4]: "var(--chart-5,#806000)",
    COLOURS[5]: "var(--chart-6,#59606a)",
    COLOURS[6]: "var(--chart-7,#94356b)",
}
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_DASHES: tuple[Any, ...] = (
    "solid", (0, (5, 1.8)), (0, (1.6, 1.5)), (0, (6, 1.6, 1.4, 1.6)), (0, (3, 1.4)), (0, (8, 2, 1.4, 2, 1.4, 2)),
    (0, (1, 2.4)),
)  # fmt: skip


@dataclass(frozen=True)
class Series:
    """One line: `x` and `y` of equal length, `low` and `high` the ends of its spread at each x, or None."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None
    style: str = "line"  # line | reference | ceiling


@dataclass(frozen=True)
class Reference:
    """A straight line across the chart at `value`."""

    label: str
    value: float


@dataclass(frozen=True)
class Bar:
    """One bar or step; `low` and `high` are the ends of its spread, or None; `note` stands beside the label."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Point:
    """A kernel on the roofline: FLOP per byte and TFLOP/s."""

    label: str
    intensity: float
    tflops: float


@dataclass(frozen=True)
class Roof:
    """A ceiling of arithmetic, in TFLOP/s."""

    label: str
    tflops: float


@dataclass(frozen=True)
class Bandwidth:
    """A slope of memory, in GB/s (1e9 bytes)."""

    label: str
    gb_per_s: float


@dataclass(frozen=True)
class Panel:
    """One panel of a trace."""

    y_label: str
    series: tuple[Series, ...]


class Box(NamedTuple):
    """A rectangle in drawing units, y upwards."""

    x0: float
    y0: float
    x1: float
    y1: float


# --- what a page calls ----------------------------------------------------------------------------


def draw_lines(
    title: str, x_label: str, y_label: str, series: tuple[Series, ...], *, x_scale: str = "log2",
    y_scale: str = "linear", references: tuple[Reference, ...] = (), alt: str, key: str,
) -> str:  # fmt: skip
    """Return lines against x, each with its spread as a band and its name at its end.

    Args:
        title: stands in the drawing.
        x_label: what x is, with its unit.
        y_label: what y is, with its unit; stands above the axis, not beside it.
        series: the lines. `style` "reference" is thin and dotted, "ceiling" thin and solid, both without markers.
        x_scale: "log2", "log" or "linear".
        y_scale: "linear" (from zero) or "log".
        references: lines across the chart.
        alt: one sentence that says what the chart shows, for those who cannot see it.
        key: prefix of the ids inside, unique on the page.
    Raises:
        ValueError: an unknown scale or style, no points, x and y of unequal length, or a value a logarithm cannot take.
    """
    _check(series, x_scale, y_scale)
    return cached("lines", title, alt, key, _lines, (x_label, y_label, series, x_scale, y_scale, references))


def draw_bars(
    title: str,
    x_label: str,
    bars: tuple[Bar, ...],
    references: tuple[Reference, ...] = (),
    *,
    alt: str,
    key: str,
) -> str:
    """Horizontal bars from zero, each under its label, with a whisker from `low` to `high`.

    Raises:
        ValueError: no bars, or a negative value.
    """
    _check_bars(bars)
    return cached("bars", title, alt, key, _bars, (x_label, bars, references))


def draw_staircase(
    title: str,
    y_label: str,
    steps: tuple[Bar, ...],
    references: tuple[Reference, ...] = (),
    *,
    alt: str,
    key: str,
) -> str:
    """Return a staircase, one tread per step in the order given; what a step added is the strong part of it.

    Raises:
        ValueError: no steps, or a negative value.
    """
    _check_bars(steps)
    return cached("staircase", title, alt, key, _staircase, (y_label, steps, references))


def draw_roofline(
    title: str, points: tuple[Point, ...], roofs: tuple[Roof, ...], bandwidths: tuple[Bandwidth, ...],
    *, alt: str, key: str,
) -> str:  # fmt: skip
    """Kernels under the roof of a machine: FLOP per byte against TFLOP/s, both logarithmic.

    Raises:
        ValueError: no points, no roof or no bandwidth, or a value that is not above zero.
    """
    if not points or not roofs or not bandwidths:
        raise ValueError("a roofline needs points, roofs and bandwidths")
    numbers = [p.intensity for p in points] + [p.tflops for p in points]
    numbers += [r.tflops for r in roofs] + [b.gb_per_s for b in bandwidths]
    if not all(math.isfinite(n) and n > 0 for n in numbers):
        raise ValueError("a roofline takes values above zero only")
    return cached("roofline", title, alt, key, _roofline, (points, roofs, bandwidths))


def draw_trace(title: str, panels: tuple[Panel, ...], x_label: str, *, alt: str, key: str) -> str:
    """Panels under each other that share x: what a card did while time went by.

    Raises:
        ValueError: no panels, or a series whose x and y have unequal length.
    """
    if not panels:
        raise ValueError("a trace needs at least one panel")
    for panel in panels:
        _check(panel.series, "linear", "linear")
    return cached("trace", title, alt, key, _trace, (panels, x_label))


def standalone(svg: str) -> str:
    """Return the same drawing on white paper, for a notebook or an image viewer, where no page gives it colours."""
    paper = "background:#fff;color:#24211d;font-family:system-ui,sans-serif;--letters:.87"
    head, rest = svg.split(">", 1)
    own = re.search(r' style="([^"]*)"', head)  # a picture maps its colours there
    head = head.replace(own[0], "") if own else head
    return f'{head} style="{paper};{own[1] if own else ""}">{rest}'


# --- checks -----------------------------------------------------------------------------------------


def _check(series: Sequence[Series], x_scale: str, y_scale: str) -> None:
    if x_scale not in ("log2", "log", "linear") or y_scale not in ("log", "linear"):
        raise ValueError(
            f"unknown scale: x {x_scale!r}, y {y_scale!r}; x knows log2, log, linear; y knows linear, log"
        )
    if not any(s.x for s in series):
        raise ValueError("a chart needs at least one point")
    for s in series:
        if s.style not in ("line", "reference", "ceiling"):
            raise ValueError(
                f"series {s.label!r}: unknown style {s.style!r}; known: line, reference, ceiling"
            )
        if any(len(column) != len(s.x) for column in (s.y, s.low, s.high) if column is not None):
            raise ValueError(f"series {s.label!r}: x, y, low and high differ in length")
        if (x_scale != "linear" and any(x <= 0 for x in s.x)) or (
            y_scale == "log" and any(y <= 0 for y in s.y)
        ):
            raise ValueError(f"series {s.label!r}: a logarithmic scale takes values above zero only")


def _check_bars(bars: Sequence[Bar]) -> None:
    if not bars:
        raise ValueError("a chart needs at least one bar")
    for bar in bars:
        if not math.isfinite(bar.value) or bar.value < 0:
            raise ValueError(f"bar {bar.label!r}: expected a value from zero upwards, got {bar.value}")


# --- the cache ----------------------------------------------------------------------------------------


@cache
def _style() -> str:
    """Return what besides the data decides the bytes: the files that draw and the version of matplotlib."""
    files = (Path(__file__).with_name(name) for name in ("plots.py", "drawings.py", "every_kernel.py"))
    return hashlib.sha256(
        b"".join(f.read_bytes() for f in files) + version("matplotlib").encode()
    ).hexdigest()


def cached(kind: str, title: str, alt: str, key: str, draw: Callable[..., str], data: tuple[Any, ...]) -> str:
    """Return a drawing out of the cache, or drawn; its title, alternative text and ids are put in afterwards."""
    plain = json.dumps([kind, title, data], default=asdict, sort_keys=True)
    path = CACHE / (hashlib.sha256((_style() + plain).encode()).hexdigest()[:32] + ".svg")
    try:
        body = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        body = _alone(draw, title, *data)
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(body)
        os.replace(temporary, path)
    # Title, alternative text and ids are put in here, so that rewording them draws nothing anew.
    key = html.escape(key, quote=True)
    head = (
        f'<title id="{key}-title">{html.escape(title)}</title><desc id="{key}-desc">{html.escape(alt)}</desc>'
    )
    return body.replace("@HEAD@", head).replace("@KEY@", key)


def _alone(draw: Callable[..., str], *data: Any) -> str:
    """Draw with matplotlib's own defaults, whatever the machine has in its settings file."""
    import matplotlib as mpl

    settings: Any = {
        "svg.fonttype": "none", "svg.hashsalt": "percent of peak", "font.family": "DejaVu Sans",
        "text.parse_math": False,
    }  # fmt: skip
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(settings)
        return draw(*data)


# --- layout -------------------------------------------------------------------------------------------


def short(value: float) -> str:
    """Return a number for a label or a tooltip: three significant digits, or all before the point.

    >>> short(1234.5), short(12.345), short(0.0123)
    ('1234', '12.3', '0.0123')
    """
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return grouped(round(value))
    return f"{Decimal(f'{value:.3g}'):f}"


def grouped(count: int) -> str:
    """Return a whole number as the prose of the site types it: 1024, but 65 536."""
    return f"{count:,}".replace(",", "\N{NO-BREAK SPACE}") if abs(count) >= 10_000 else str(count)


_BINARY = ("KiB", "MiB", "GiB", "TiB")


def _in_unit(x_label: str) -> tuple[str, Callable[[float], str]]:
    """Return the label of an axis and how a number on it is written.

    Bytes take their unit with them, as 1 GiB says more than 1 048 576 KiB.
    """
    what, _, unit = x_label.rpartition(", ")
    if unit not in _BINARY:
        return x_label, short

    def written(value: float) -> str:
        power = _BINARY.index(unit)
        while value >= 1024 and power < len(_BINARY) - 1:
            value, power = value / 1024, power + 1
        return f"{short(value)} {_BINARY[power]}"

    return what, written


def spread(wanted: Sequence[float], heights: Sequence[float], low: float, high: float) -> list[float]:
    """Centres for labels so that none covers another, each as near as can be to where it wants to stand.

    Args:
        wanted: where each label would like its centre.
        heights: the room each label needs.
        low: the lower end of the room they share; it is overrun only when they cannot all fit.
        high: the upper end.
    """
    order = sorted(range(len(wanted)), key=lambda i: (wanted[i], i))
    # Groups of touching labels: members, height, sum over members of where the group's bottom should be for them.
    groups: list[tuple[list[int], float, float]] = []

    def bottom(group: tuple[list[int], float, float]) -> float:
        members, height, total = group
        return max(low, min(total / len(members), high - height))

    for i in order:
        group = ([i], heights[i], wanted[i] - heights[i] / 2)
        while groups and bottom(groups[-1]) + groups[-1][1] > bottom(group):
            members, height, total = groups.pop()
            group = (members + group[0], height + group[1], total + group[2] - height * len(group[0]))
        groups.append(group)
    centres = [0.0] * len(wanted)
    for group in groups:
        edge = bottom(group)
        for i in group[0]:
            centres[i] = edge + heights[i] / 2
            edge += heights[i]
    return centres


@cache
def _advance(character: str, bold: bool) -> float:
    """Width of a character in ems, as DejaVu has it: wider than the fonts of the page, so nothing runs over."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    font = FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal")
    two = TextPath((0, 0), f"|{character}|", size=100, prop=font).get_extents().width
    return float(two - TextPath((0, 0), "||", size=100, prop=font).get_extents().width) / 100


def text_width(text: str, size: float = SMALL, bold: bool = False) -> float:
    """Return how wide a line of text is at most, whatever font the page has."""
    # As a part of DejaVu's width: the page's own font needs less, and a fallback font finds room.
    return 0.88 * size * sum(_advance(c, bold) for c in text)


def letters(size: float) -> str:
    """Return the CSS of a size: so large on a phone, and as the page says where the drawing is larger."""
    return f"calc({size:g}px*var(--letters,1))"


def wrap(text: str, room: float, size: float = SMALL, bold: bool = False) -> list[str]:
    """Return text in lines that are no wider than the room; a no-break space is none to break at."""
    lines: list[str] = []
    for word in re.split(r"[ \n]+", text.strip(" \n")):
        if lines and text_width(f"{lines[-1]} {word}", size, bold) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines or [""]


def _ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Round numbers from `low` to the first at or above `high`."""
    step = 10.0 ** math.floor(math.log10((high - low) / count or 1.0))
    step *= next(m for m in (1, 2, 2.5, 5, 10) if (high - low) / (step * m) <= count)
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    decades = math.log10(high / low)
    steps = (1, 2, 5) if decades < 2.2 else (1,)
    every = max(1, round(decades / 5))
    return [
        m * 10.0**e
        for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for m in steps
        if e % every == 0 and low * 0.999 <= m * 10.0**e <= high * 1.001
    ]


def _sparse(
    ticks: Sequence[float], places: Sequence[float], written: Callable[[float], str] = short
) -> list[float]:
    """Return every n-th tick, counted from the last, so that their labels do not touch."""
    for n in range(1, len(ticks) + 1):
        kept = list(range(len(ticks)))[::-1][::n][::-1]
        gaps = (
            places[b] - places[a] - (text_width(written(ticks[a])) + text_width(written(ticks[b]))) / 2
            for a, b in pairwise(kept)
        )
        if all(gap >= 5 for gap in gaps):
            return [ticks[i] for i in kept]
    return list(ticks[-1:])


# --- the canvas -----------------------------------------------------------------------------------------


class _Canvas:
    """A figure measured in drawing units from its lower left corner, with the title on top."""

    def __init__(self, title: str, body: float) -> None:
        from matplotlib.figure import Figure

        lines = wrap(title, WIDTH, TITLE, bold=True)
        self.height = body + len(lines) * (TITLE + 3.4) + 9
        self.figure = Figure(figsize=(WIDTH / 72, self.height / 72))
        self.tips: dict[str, list[str]] = {}
        for i, line in enumerate(lines):
            self.text(
                0, self.height - (TITLE + 3.4) * i - TITLE, line, size=TITLE, weight="bold", va="baseline"
            )

    def axes(self, box: Box) -> Any:
        """Axes that fill the box, bare but for a line at the bottom."""
        room = (
            box.x0 / WIDTH,
            box.y0 / self.height,
            (box.x1 - box.x0) / WIDTH,
            (box.y1 - box.y0) / self.height,
        )
        axes = self.figure.add_axes(room)
        axes.set_facecolor("none")
        for side in ("left", "top", "right"):
            axes.spines[side].set_visible(False)
        axes.spines["bottom"].set(color=SOFT, linewidth=0.7)
        axes.minorticks_off()
        axes.tick_params(which="both", length=0, labelsize=SMALL, labelcolor=SOFT, pad=4)
        return axes

    def text(self, x: float, y: float, text: str, color: str = INK, size: float = SMALL, **more: Any) -> None:
        """Draw one line of text at a place of the figure."""
        self.figure.text(
            x / WIDTH, y / self.height, text, color=color, fontsize=size, **({"va": "center"} | more)
        )

    def line(self, xs: Sequence[float], ys: Sequence[float], color: str = SOFT, **more: Any) -> None:
        """Draw a thin line between places of the figure."""
        from matplotlib.lines import Line2D

        style: dict[str, Any] = {"linewidth": 0.6, "solid_capstyle": "round"} | more
        self.figure.add_artist(
            Line2D([x / WIDTH for x in xs], [y / self.height for y in ys], color=color, **style)
        )

    def swatch(self, x: float, y: float, color: str, alpha: float) -> None:
        """Draw a small square for a key."""
        from matplotlib.patches import Rectangle

        place, size = (x / WIDTH, y / self.height), (9 / WIDTH, 9 / self.height)
        self.figure.add_artist(Rectangle(place, *size, facecolor=color, alpha=alpha, linewidth=0))

    def place(self, axes: Any, x: float, y: float) -> tuple[float, float]:
        """Convert data to drawing units."""
        px, py = axes.transData.transform((x, y)) / self.figure.dpi * 72
        return float(px), float(py)

    def marks(
        self, axes: Any, gid: str, xs: Sequence[float], ys: Sequence[float], tips: list[str], **style: Any
    ) -> None:
        """Markers, each with its tooltip."""
        axes.plot(xs, ys, linestyle="none", gid=gid, clip_on=False, **style)
        self.tips[gid] = tips

    def svg(self) -> str:
        """Return the finished drawing, with @HEAD@ and @KEY@ still to be filled in."""
        buffer = io.StringIO()
        self.figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
        return _to_css(buffer.getvalue(), self.tips)


def _to_css(svg: str, tips: dict[str, list[str]]) -> str:
    """matplotlib's SVG made small, coloured by CSS, named by key and given its tooltips."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(
        r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>|<defs>\s*</defs>", "", svg, flags=re.DOTALL
    )
    for gid, texts in tips.items():
        start = svg.index(f'<g id="{gid}">')
        parts = re.split(r"<use ([^>]*)/>", svg[start:], maxsplit=len(texts))
        tipped = parts[0]
        for text, use, after in zip(texts, parts[1::2], parts[2::2], strict=True):
            tipped += f"<use {use}><title>{html.escape(text)}</title></use>{after}"
        svg = svg[:start] + tipped
    svg = svg.replace("xlink:href", "href")
    for sentinel, colour in CSS.items():
        svg = svg.replace(sentinel, colour)
    svg = re.sub(r"-?\d+\.\d{3,}", lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), svg)
    # The page decides the family; what is left of a font is its size and its weight.
    svg = re.sub(r"font-family: [^;\"]*; ?", "", svg).replace("font-weight: 700", "font-weight: 600")
    svg = re.sub(r"font-size: ([\d.]+)px", lambda m: f"font-size: {letters(float(m[1]))}", svg)
    svg = re.sub(r' transform="rotate\(-?0 [^"]*"', "", svg)
    svg = re.sub(r"<path [^>]*style=\"fill: none\"/>", "", svg)
    svg = re.sub(r"text-anchor: start; ?|stroke-dashoffset: 0; ?|; stroke-linecap: (?:square|butt)", "", svg)
    svg = re.sub(r"; stroke-linejoin: (?:miter|round)|stroke-miterlimit: \d+;? ?", "", svg)
    svg = re.sub(r' style="[^"]*"', lambda m: m[0].replace(": ", ":").replace("; ", ";"), svg)
    # Ids: only those something points at, numbered in order.
    used = dict.fromkeys(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", svg))
    for i, name in enumerate(used):
        svg = svg.replace(f'id="{name}"', f'ID="@KEY@-{i}"').replace(f"#{name})", f"#@KEY@-{i})")
        svg = svg.replace(f'"#{name}"', f'"#@KEY@-{i}"')
    svg = re.sub(r' id="[^"]*"', "", svg).replace(' ID="', ' id="')
    svg = re.sub(r">\s+<", "><", svg)
    svg = re.sub(r"\s*\n\s*", " ", svg).replace("<defs></defs>", "").replace("<g/>", "")
    svg = re.sub(r'(?<= )d="[^"]*"', lambda m: re.sub(r" ?([MLQCzZ]) ?", r"\1", m[0]), svg)
    while (smaller := re.sub(r"<g>((?:(?!<g[ >]|</g>).)*?)</g>", r"\1", svg)) != svg:
        svg = smaller
    box = re.search(r'viewBox="[^"]*"', svg)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {box[0]} role="img" '  # type: ignore[index]
        'aria-labelledby="@KEY@-title @KEY@-desc" style="width:100%;max-width:600px">@HEAD@'
    )
    return head + svg[svg.index(">") + 1 :].strip()


def _colour(i: int) -> str:
    return COLOURS[i % len(COLOURS)]


# --- the kinds -------------------------------------------------------------------------------------------


class _Label(NamedTuple):
    """A label for the column at the right: its lines, its colour, where its line ends."""

    lines: list[str]
    color: str
    x: float
    y: float
    bold: bool


def _column(canvas: _Canvas, labels: Sequence[_Label], x: float, low: float, high: float) -> None:
    """Labels under each other at x, led to the ends of their lines."""
    centres = spread(
        [label.y for label in labels], [LINE * len(label.lines) + 1.5 for label in labels], low, high
    )
    for label, y in zip(labels, centres, strict=True):
        if abs(y - label.y) > 2.5 or x - label.x > 16:
            canvas.line(
                [label.x + 4, x - 9, x - 3], [label.y, label.y, y], label.color, linewidth=0.5, alpha=0.55
            )
        top = y + LINE * (len(label.lines) - 1) / 2
        for i, line in enumerate(label.lines):
            canvas.text(x, top - LINE * i, line, label.color, weight="bold" if label.bold else "normal")


def _y_axis(canvas: _Canvas, axes: Any, ticks: Sequence[float], label: str, box: Box) -> None:
    axes.set_yticks(list(ticks), [short(t) for t in ticks])
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    canvas.text(0, box.y1 + 13, label, SOFT)


def _broken(canvas: _Canvas, box: Box, low: float) -> str:
    """Return the mark of an axis that does not begin at zero; returns what its label says of it."""
    x, y = box.x0, box.y0
    canvas.line([x, x, x - 3.5, x + 3.5, x, x], [y, y + 3, y + 5, y + 9, y + 11, y + 14], linewidth=0.9)
    return f", the axis begins at {short(low)}"


def _limits(values: Iterable[float], scale: str) -> tuple[float, float, list[float]]:
    """Choose ends and ticks of a y axis: from zero when linear."""
    finite = [v for v in values if math.isfinite(v)]
    low, high = min(finite), max(finite)
    if scale == "log":
        low, high = low / 1.25, high * 1.25
        return low, high, _log_ticks(low, high)
    ticks = _ticks(min(0.0, low), high or 1.0)
    return ticks[0], max(ticks[-1] if ticks[-1] <= high * 1.12 else ticks[-2], high * 1.03), ticks


def _plot(
    canvas: _Canvas, axes: Any, series: Sequence[Series], first: int = 0, prefix: str = "s",
    written: Callable[[float], str] = short,
) -> list[str]:  # fmt: skip
    """Draw the lines; returns the colour of each. One alone needs no dashes, and a switch is filled where it is on."""
    colours, own = [], first
    for n, s in enumerate(series):
        if s.style != "line":
            dashes: Any = (0, (1.5, 2)) if s.style == "reference" else "solid"
            axes.plot(s.x, s.y, color=SOFT, linewidth=0.9, linestyle=dashes, clip_on=False)
            colours.append(SOFT)
            continue
        colour = _colour(own)
        if s.low is not None and s.high is not None:
            axes.fill_between(s.x, s.low, s.high, color=colour, alpha=0.16, linewidth=0)
        many = len(s.x) > 60
        dashes = "solid" if len(series) == 1 else _DASHES[own % len(_DASHES)]
        if _is_switch(s.y) and many:
            axes.fill([*s.x, s.x[-1], s.x[0]], [*s.y, 0, 0], color=colour, alpha=0.3, linewidth=0)
        axes.plot(s.x, s.y, color=colour, linewidth=1.1 if many else 1.5, linestyle=dashes,
                  clip_on=False, solid_joinstyle="round", dash_capstyle="round")  # fmt: skip
        if not many:
            tips = [f"{s.label}: {short(y)} at {written(x)}" for x, y in zip(s.x, s.y, strict=True)]
            canvas.marks(axes, f"{prefix}{n}", s.x, s.y, tips, marker=_MARKERS[own % len(_MARKERS)], markersize=4.4,
                         markerfacecolor=colour, markeredgecolor=PAPER, markeredgewidth=0.7)  # fmt: skip
        colours.append(colour)
        own += 1
    return colours


def _lines(
    title: str, x_label: str, y_label: str, series: tuple[Series, ...], x_scale: str, y_scale: str,
    references: tuple[Reference, ...],
) -> str:  # fmt: skip
    names = [wrap(s.label, 84) for s in series] + [wrap(r.label, 84) for r in references]
    room = min(92.0, max(text_width(line) for name in names for line in name))
    needed = sum(LINE * len(name) + 1.5 for name in names)
    body = max(196.0, needed) + 52
    canvas = _Canvas(title, body)
    values = [v for s in series for v in (*s.y, *(s.low or ()), *(s.high or ()))] + [
        r.value for r in references
    ]
    low, high, ticks = _limits(values, y_scale)
    ticks = [t for t in ticks if low <= t <= high]
    left = max(text_width(short(t)) for t in ticks) + 8
    box = Box(left, 34, WIDTH - room - 14, body - 18)
    axes = canvas.axes(box)
    if x_scale != "linear":
        axes.set_xscale("log", base=2 if x_scale == "log2" else 10)
    if y_scale == "log":
        axes.set_yscale("log")
    xs = sorted({x for s in series for x in s.x})
    pad = 1.0 if xs[0] == xs[-1] else 0.0
    if x_scale == "linear":
        axes.set_xlim(xs[0] - pad - 0.02 * (xs[-1] - xs[0]), xs[-1] + pad + 0.02 * (xs[-1] - xs[0]))
    else:
        axes.set_xlim(xs[0] / (1 + pad) / 1.06, xs[-1] * (1 + pad) * 1.06)
    axes.set_ylim(low, high)
    _y_axis(canvas, axes, ticks, y_label, box)
    x_label, written = _in_unit(x_label)
    x_ticks = _x_ticks(xs, x_scale)
    x_ticks = _sparse(x_ticks, [canvas.place(axes, t, high)[0] for t in x_ticks], written)
    axes.set_xticks(x_ticks, [written(t) for t in x_ticks])
    canvas.text((box.x0 + box.x1) / 2, 8, x_label, SOFT, ha="center")
    axes.minorticks_off()
    for r in references:
        axes.axhline(r.value, color=SOFT, linewidth=0.9, linestyle=(0, (1.5, 2)))
    colours = _plot(canvas, axes, series, written=written)
    labels = []
    for s, name, colour in zip(series, names, colours, strict=False):
        x, y = canvas.place(axes, s.x[-1], s.y[-1])
        labels.append(_Label(name, colour, x, y, s.style == "line"))
    for r, name in zip(references, names[len(series) :], strict=True):
        labels.append(_Label(name, SOFT, box.x1 - 4, canvas.place(axes, xs[0], r.value)[1], False))
    _column(canvas, labels, box.x1 + 13, min(box.y0, 20), body)
    return canvas.svg()


def _x_ticks(xs: Sequence[float], scale: str) -> list[float]:
    if scale == "linear":
        ticks = _ticks(xs[0], xs[-1] if xs[-1] > xs[0] else xs[0] + 1, 5)
        return [t for t in ticks if xs[0] <= t <= xs[-1]] or [xs[0]]
    if scale == "log" and len(xs) > 8:
        return _log_ticks(xs[0], xs[-1]) or list(xs)
    return list(xs)


def _references_above(canvas: _Canvas, axes: Any, references: Sequence[Reference], box: Box) -> None:
    """Upright lines, each labelled above the chart in a row of its own."""
    for i, r in enumerate(sorted(references, key=lambda r: r.value)):
        x, _ = canvas.place(axes, r.value, 0)
        y = box.y1 + 6 + LINE * i
        canvas.line([x, x], [box.y0, y + 3], SOFT, linewidth=0.9, linestyle=(0, (1.5, 2)))
        text = f"{r.label}, {short(r.value)}"
        right = x + 4 + text_width(text) > WIDTH
        canvas.text(x - 4 if right else x + 4, y, text, SOFT, ha="right" if right else "left")


def _bars(title: str, x_label: str, bars: tuple[Bar, ...], references: tuple[Reference, ...]) -> str:
    pitch = 34.0
    body = pitch * len(bars) + LINE * len(references) + 26
    canvas = _Canvas(title, body)
    top = max([b.value for b in bars] + [b.high or 0 for b in bars] + [r.value for r in references]) or 1.0
    values = max(text_width(short(b.value), bold=True) for b in bars)
    box = Box(0.5, 20, WIDTH - values - 10, 20 + pitch * len(bars))
    axes = canvas.axes(box)
    axes.spines["bottom"].set_visible(False)
    axes.set_xlim(0, top)
    axes.set_ylim(0, pitch * len(bars))
    axes.set_xticks([])
    axes.set_yticks([])
    _references_above(canvas, axes, references, box)
    axes.plot([0, 0], [0, pitch * len(bars)], color=SOFT, linewidth=0.7, clip_on=False)
    for i, bar in enumerate(bars):
        base = pitch * (len(bars) - 1 - i) + 5
        note = f" ({bar.note})" if bar.note else ""
        axes.fill_between(
            [0, bar.value], base, base + 9, color=COLOURS[0], alpha=0.85, linewidth=0, gid=f"b{i}"
        )
        canvas.tips[f"b{i}"] = [f"{bar.label}{note}: {short(bar.value)}"]
        end = bar.value
        if bar.low is not None and bar.high is not None and bar.high > bar.low:
            axes.plot([bar.low, bar.high], [base + 4.5] * 2, color=INK, linewidth=0.9, clip_on=False)
            end = max(end, bar.high)
        x, y = canvas.place(axes, end, base + 4.5)
        canvas.text(x + 5, y, short(bar.value), weight="bold")
        canvas.text(3.5, y + 13, bar.label)
        if bar.note:
            canvas.text(3.5 + text_width(bar.label) + 6, y + 13, bar.note, SOFT)
    canvas.text(0, 8, x_label, SOFT)
    return canvas.svg()


def _staircase(title: str, y_label: str, steps: tuple[Bar, ...], references: tuple[Reference, ...]) -> str:
    top = (
        max([s.high or s.value for s in steps] + [s.value for s in steps] + [r.value for r in references])
        or 1.0
    )
    low, high, ticks = _limits([0.0, top * 1.04], "linear")
    ticks = [t for t in ticks if t <= high]
    left = max(text_width(short(t)) for t in ticks) + 8
    tread = (WIDTH - left) / len(steps)
    # Names under the treads where they fit; else numbers there and the names in a list below.
    under = [wrap(s.label, tread - 4) for s in steps]
    fits = all(text_width(line) <= tread - 2 for name in under for line in name) and max(map(len, under)) <= 4
    names = [
        # A label that brings its number along keeps it.
        f"{'' if s.label.startswith(f'{i} ') else f'{i}  '}{s.label}{f', {s.note}' if s.note else ''}"
        for i, s in enumerate(steps, start=1)
    ]
    columns = 2 if max(map(text_width, names)) <= WIDTH / 2 - 8 else 1
    rows = math.ceil(len(steps) / columns)
    values = [s.value for s in steps]
    two_tones = any(value > 0 for value in values[:-1])
    key = LINE + 6 if two_tones else 0.0
    foot = key + (LINE * max(map(len, under)) + 8 if fits else LINE * rows + 26)
    body = foot + 190
    canvas = _Canvas(title, body)
    box = Box(left, foot, WIDTH, body - 20)
    axes = canvas.axes(box)
    axes.set_xlim(0, len(steps))
    axes.set_ylim(low, high)
    axes.set_xticks([])
    _y_axis(canvas, axes, ticks, y_label, box)
    for r in references:
        axes.axhline(r.value, color=SOFT, linewidth=0.9, linestyle=(0, (1.5, 2)))
        _, y = canvas.place(axes, 0, r.value)
        canvas.text(left + 2, y + 7, f"{r.label}, {short(r.value)}", SOFT)
    before = 0.0
    for i, step in enumerate(steps):
        kept = min(before, step.value)
        edges = [i + 0.04, i + 0.96]
        axes.fill_between(edges, 0, kept, color=COLOURS[0], alpha=0.28, linewidth=0)
        axes.fill_between(edges, kept, step.value, color=COLOURS[0], alpha=0.9, linewidth=0)
        axes.fill_between(edges, 0, step.value, color=COLOURS[0], alpha=0.0, linewidth=0, gid=f"b{i}")
        canvas.tips[f"b{i}"] = [f"{step.label}{f' ({step.note})' if step.note else ''}: {short(step.value)}"]
        end = step.value
        if step.low is not None and step.high is not None and step.high > step.low:
            axes.plot([i + 0.5] * 2, [step.low, step.high], color=INK, linewidth=0.9)
            end = max(end, step.high)
        x, y = canvas.place(axes, i + 0.5, end)
        canvas.text(x, y + 8, short(step.value), weight="bold", ha="center")
        for row, line in enumerate(under[i] if fits else [str(i + 1)]):
            canvas.text(x, foot - 11 - LINE * row, line, INK, ha="center")
        before = step.value
    if not fits:
        for i, name in enumerate(names):
            canvas.text(WIDTH / columns * (i // rows), foot - 29 - LINE * (i % rows), name, SOFT)
    if two_tones:
        x = 0.0
        for tone, words in ((0.28, "reached before"), (0.9, "added by this step")):
            canvas.swatch(x, 2, COLOURS[0], tone)
            canvas.text(x + 15, 6, words, SOFT)
            x += 15 + text_width(words) + 18
    return canvas.svg()


def _roofline(
    title: str, points: tuple[Point, ...], roofs: tuple[Roof, ...], bandwidths: tuple[Bandwidth, ...]
) -> str:
    body = 262.0
    canvas = _Canvas(title, body)
    top = max(r.tflops for r in roofs)
    fastest, slowest = (pick(b.gb_per_s for b in bandwidths) / 1000 for pick in (max, min))
    x_low = min(min(p.intensity for p in points) / 2.2, top / fastest / 12)
    x_high = max(max(p.intensity for p in points) * 2.6, top / slowest * 6)
    y_high = top * 2.0
    y_low = min(min(p.tflops for p in points) / 2.4, x_low * fastest * 0.8)
    y_ticks = _log_ticks(y_low, y_high)
    left = max(text_width(short(t)) for t in y_ticks) + 8
    box = Box(left, 34, WIDTH - 1, body - 18)
    axes = canvas.axes(box)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(x_low, x_high)
    axes.set_ylim(y_low, y_high)
    _y_axis(canvas, axes, y_ticks, "TFLOP/s", box)
    x_ticks = _log_ticks(x_low, x_high)
    x_ticks = _sparse(x_ticks, [canvas.place(axes, t, top)[0] for t in x_ticks])
    axes.set_xticks(x_ticks, [short(t) for t in x_ticks])
    axes.minorticks_off()
    canvas.text((box.x0 + box.x1) / 2, 8, "FLOP per byte of slow memory", SOFT, ha="center")

    taken: list[Box] = []
    for n, b in enumerate(sorted(bandwidths, key=lambda b: -b.gb_per_s)):
        slope = b.gb_per_s / 1000
        start = max(x_low, y_low / slope)
        axes.plot([start, top / slope], [start * slope, top], color=INK, linewidth=1.1 if n == 0 else 0.8,
                  linestyle=_DASHES[n % len(_DASHES)])  # fmt: skip
        (x0, y0), (x1, y1) = (canvas.place(axes, x, x * slope) for x in (start, top / slope))
        angle = math.atan2(y1 - y0, x1 - x0)
        text = f"{b.label}, {short(b.gb_per_s)} GB/s"
        along = 0.04 if math.hypot(x1 - x0, y1 - y0) > text_width(text) * 1.2 else 0.0
        x, y = x0 + (x1 - x0) * along + 2, y0 + (y1 - y0) * along + 2
        canvas.text(x - 4 * math.sin(angle), y + 4 * math.cos(angle), text, SOFT, va="baseline",
                    rotation=math.degrees(angle), rotation_mode="anchor")  # fmt: skip
        for i in range(41):  # the slope and the words above it are ground that labels of points avoid
            px, py = x0 + (x1 - x0) * i / 40, y0 + (y1 - y0) * i / 40
            reach = 13 if 40 * along <= i and math.hypot(px - x, py - y) <= text_width(text) else 2
            taken.append(Box(px - reach * 0.8, py - 2, px + 2, py + reach))
    for r in sorted(roofs, key=lambda r: -r.tflops):
        axes.plot(
            [r.tflops / fastest, x_high], [r.tflops] * 2, color=INK, linewidth=1.1 if r.tflops == top else 0.8
        )
        x, y = canvas.place(axes, x_high, r.tflops)
        text = f"{r.label}, {short(r.tflops)} TFLOP/s"
        canvas.text(x, y + 7, text, SOFT, ha="right")
        taken.append(Box(canvas.place(axes, r.tflops / fastest, r.tflops)[0], y - 1.5, x, y + 1.5))
        taken.append(Box(x - text_width(text), y + 1, x, y + 13))
    places = [canvas.place(axes, p.intensity, p.tflops) for p in points]
    taken += [Box(x - 4, y - 4, x + 4, y + 4) for x, y in places]
    for i, p in enumerate(points):
        tip = f"{p.label}: {short(p.tflops)} TFLOP/s at {short(p.intensity)} FLOP per byte"
        canvas.marks(axes, f"p{i}", [p.intensity], [p.tflops], [tip], marker=_MARKERS[i % len(_MARKERS)], markersize=6,
                     markerfacecolor=_colour(i), markeredgecolor=PAPER, markeredgewidth=0.8, zorder=5)  # fmt: skip
    for group in _clusters(places):
        spots = _spots([(*places[i], text_width(points[i].label, bold=True)) for i in group], taken, box)
        taken += spots
        for i, spot in zip(group, spots, strict=True):
            x, y = places[i]
            near = min(max(x, spot.x0), spot.x1), (spot.y0 + spot.y1) / 2
            if math.hypot(near[0] - x, near[1] - y) > 12:
                step = 2.5 if near[0] > x else -2.5 if near[0] < x else 0
                canvas.line([x, near[0] - step], [y, near[1]], _colour(i), linewidth=0.6, alpha=0.7)
            before = spot.x1 <= x
            canvas.text(spot.x1 if before else spot.x0, (spot.y0 + spot.y1) / 2, points[i].label, _colour(i),
                        weight="bold", ha="right" if before else "left")  # fmt: skip
    return canvas.svg()


def _clusters(places: Sequence[tuple[float, float]]) -> list[list[int]]:
    """Points that stand so close that their labels would fight, as groups; lonely ones alone."""
    groups: list[list[int]] = []
    for i in sorted(range(len(places)), key=lambda i: places[i][::-1]):
        near = [
            g for g in groups
            if any(abs(places[i][0] - places[j][0]) < 24 and abs(places[i][1] - places[j][1]) < 20 for j in g)
        ]  # fmt: skip
        groups = [g for g in groups if g not in near] + [[j for g in near for j in g] + [i]]
    return sorted(groups, key=len, reverse=True)


def _spots(labels: Sequence[tuple[float, float, float]], taken: Sequence[Box], room: Box) -> list[Box]:
    """Places for the labels of one group of points, given as x, y and width: a column for several."""
    if len(labels) == 1:
        return [_free_spot(*labels[0], LINE - 1, taken, room)]
    left, right = min(x for x, _, _ in labels) - 15, max(x for x, _, _ in labels) + 15
    best: tuple[float, list[Box]] | None = None
    for shift in (0, -7, 7, -14, 14, -21, -28, -35):
        centres = spread([y + shift for _, y, _ in labels], [LINE] * len(labels), room.y0, room.y1)
        for side in (right, left):
            edges = [
                (side, side + width) if side == right else (side - width, side) for _, _, width in labels
            ]
            spots = [Box(x0, y - 5.5, x1, y + 5.5) for (x0, x1), y in zip(edges, centres, strict=True)]
            price = sum(_crowd(spot, taken, room) for spot in spots) + abs(shift)
            if best is None or price < best[0]:
                best = price, spots
    return best[1] if best else []


def _crowd(spot: Box, taken: Sequence[Box], room: Box) -> float:
    """Return how much of what is there a label would cover, and how far it would stick out."""
    total = 0.0
    for other in taken:
        wide = min(spot.x1, other.x1) - max(spot.x0, other.x0)
        tall = min(spot.y1, other.y1) - max(spot.y0, other.y0)
        total += wide * tall if wide > 0 and tall > 0 else 0.0
    outside = max(0, room.x0 - spot.x0) + max(0, spot.x1 - room.x1)
    return total + 30 * (outside + max(0, room.y0 - spot.y0) + max(0, spot.y1 - room.y1))


def _crossed(x: float, y: float, spot: Box, taken: Sequence[Box]) -> int:
    """Return how many boxes the line from a point to its label would cross, but for those that the point stands in."""
    end = min(max(x, spot.x0), spot.x1), (spot.y0 + spot.y1) / 2
    line = [(x + (end[0] - x) * i / 12, y + (end[1] - y) * i / 12) for i in range(13)]
    return sum(
        any(b.x0 < px < b.x1 and b.y0 < py < b.y1 for px, py in line)
        for b in taken
        if not (b.x0 <= x <= b.x1 and b.y0 <= y <= b.y1)
    )


def _free_spot(x: float, y: float, width: float, height: float, taken: Sequence[Box], room: Box) -> Box:
    """Return the nearest place for a label beside a point where it covers nothing."""
    best: tuple[float, Box] | None = None
    for reach in (7.0, 15.0, 26.0, 40.0, 58.0):
        for dx, dy in ((1, 0), (-1, 0), (1, -1), (-1, -1), (0, -1), (1, 1), (0, 1), (-1, 1)):
            x0 = x + dx * reach if dx > 0 else x + dx * reach - width if dx < 0 else x - width / 2
            middle = y + dy * (reach + (height / 2 if dx == 0 else 2))
            spot = Box(x0, middle - height / 2, x0 + width, middle + height / 2)
            price = _crowd(spot, taken, room) + reach * 0.4 + 20 * _crossed(x, y, spot, taken)
            if best is None or price < best[0] - 1e-9:
                best = price, spot
        if best and best[0] < reach:
            break
    return best[1] if best else Box(x, y, x + width, y + height)


def _is_switch(values: Iterable[float]) -> bool:
    """Return whether these are on and off, and nothing between."""
    return set(values) <= {0.0, 1.0}


def _thin(s: Series, most: int = 240) -> Series:
    """Return a long series with at most `most` points: the smallest and the largest of each stretch stay, in order.

    One of two values only is a switch, and stays whole: without a point of each of its edges they would slope.
    """
    if len(s.x) <= most or len(set(s.y)) <= 2:
        return s
    size = math.ceil(len(s.x) / (most // 2))
    kept: list[int] = []
    for start in range(0, len(s.x), size):
        stretch = range(start, min(start + size, len(s.x)))
        kept += sorted({min(stretch, key=lambda i: s.y[i]), max(stretch, key=lambda i: s.y[i])})
    return Series(s.label, tuple(s.x[i] for i in kept), tuple(s.y[i] for i in kept), None, None, s.style)


def _trace(title: str, panels: tuple[Panel, ...], x_label: str) -> str:
    tall = 84.0 if len(panels) > 1 else 150.0
    pitch = tall + 38
    body = pitch * len(panels) + 32
    canvas = _Canvas(title, body)
    xs = [x for p in panels for s in p.series for x in s.x]
    scales = [_limits([v for s in p.series for v in s.y], "linear") for p in panels]
    # A quantity far from zero that barely moves (a clock, a temperature) is shown over its own range.
    for n, p in enumerate(panels):
        values = [v for s in p.series for v in s.y if math.isfinite(v)]
        if _is_switch(values):
            scales[n] = 0.0, 1.0, [0.0, 1.0]
        elif min(values) > 0.5 * max(values) > 0 and statistics.median(values) > 0:
            gap = max(values) - min(values) or max(values) * 0.1
            ticks = _ticks(min(values) - 0.25 * gap, max(values) + 0.1 * gap, 3)
            scales[n] = ticks[0], ticks[-1], ticks
    left = max(text_width(short(t)) for _, high, ticks in scales for t in ticks if t <= high) + 8
    several = any(len(p.series) > 1 for p in panels)
    names = [[wrap(s.label, 74) for s in p.series] if len(p.series) > 1 else [] for p in panels]
    room = (
        min(80.0, max(text_width(line) for ps in names for name in ps for line in name)) + 14
        if several
        else 2.0
    )
    # The last tick may stand at the very end: half of its number reaches past it.
    room = max(room, text_width(short(_x_ticks(sorted({min(xs), max(xs)}), "linear")[-1])) / 2 + 1)
    for n, (p, (low, high, ticks)) in enumerate(zip(panels, scales, strict=True)):
        bottom = 34 + pitch * (len(panels) - 1 - n)
        box = Box(left, bottom, WIDTH - room, bottom + tall)
        axes = canvas.axes(box)
        axes.set_xlim(min(xs), max(xs) if max(xs) > min(xs) else min(xs) + 1)
        axes.set_ylim(low, high)
        broken = _broken(canvas, box, low) if low > 0 else ""
        _y_axis(canvas, axes, [t for t in ticks if low <= t <= high], p.y_label + broken, box)
        x_ticks = _x_ticks(sorted({min(xs), max(xs)}), "linear")
        x_ticks = _sparse(x_ticks, [canvas.place(axes, t, low)[0] for t in x_ticks])
        last = n == len(panels) - 1
        axes.set_xticks(x_ticks, [short(t) for t in x_ticks] if last else [""] * len(x_ticks))
        axes.minorticks_off()
        thinned = [_thin(s) for s in p.series]
        colours = _plot(canvas, axes, thinned, n if len(p.series) == 1 else 0, f"t{n}-")
        labels = [
            _Label(name, colour, *canvas.place(axes, s.x[-1], s.y[-1]), True)
            for name, colour, s in zip(names[n], colours, thinned, strict=False)
        ]
        _column(canvas, labels, box.x1 + 12, box.y0, box.y1 + 10)
    canvas.text(left + (WIDTH - room - left) / 2, 8, x_label, SOFT, ha="center")
    return canvas.svg()
