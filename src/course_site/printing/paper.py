"""Paper to draw on, as SVG in millimetres: axes, squares, a ruler. Solved, what belongs on it is drawn too.

The name of a line lies along it, the name of a cross beside it, each at the first place that is clear of all other
lines, crosses and names.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

WIDTH = 186.0  # of a page between its margins
_LEFT, _RIGHT, _TOP, _BOTTOM = 17.0, 7.0, 3.0, 12.0
_LETTER, _ABOVE = 1.5, 2.5  # of a name in millimetres: a letter's width, and how far it rises over its foot
_ARM = 1.6  # of a cross
_GRID = ((0.12, "fine"), (0.35, ""))  # a line of squared paper, and one with a number
_Place = tuple[float, float]


@dataclass(frozen=True)
class Axis:
    """One axis: its ends, and whether a step is a power of ten."""

    low: float
    high: float
    title: str
    is_log: bool = True

    def at(self, number: float) -> float:
        """Return the place of a number on the axis, from 0 to 1."""
        if self.is_log:
            return math.log(number / self.low) / math.log(self.high / self.low)
        return (number - self.low) / (self.high - self.low)

    def ticks(self) -> list[tuple[float, bool]]:
        """Return numbers with a line, each with whether it is labelled."""
        if not self.is_log:
            return [(n, True) for n in range(math.ceil(self.low), math.floor(self.high) + 1)]
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        found = [(m * 10.0**e, m == 1) for e in range(first, last + 1) for m in range(1, 10)]
        return [(n, whole) for n, whole in found if self.low * 0.999 <= n <= self.high * 1.001]


@dataclass(frozen=True)
class Line:
    """A straight line of a drawing, from (x, y) to (x, y); `given` is printed on the blank sheet too."""

    x: tuple[float, float]
    y: tuple[float, float]
    label: str = ""
    dashed: bool = False
    given: bool = False


@dataclass(frozen=True)
class Point:
    """A cross of a drawing with its name."""

    x: float
    y: float
    label: str
    given: bool = False


def axes(
    x: Axis,
    y: Axis,
    height: float,
    lines: Iterable[Line],
    points: Iterable[Point],
    solved: bool,
    width: float = WIDTH,
) -> str:
    """Squared paper between two axes; solved, with its lines and crosses."""
    inside, rise = width - _LEFT - _RIGHT, height - _TOP - _BOTTOM

    def px(number: float) -> float:
        return _LEFT + inside * x.at(number)

    def py(number: float) -> float:
        return _TOP + rise * (1 - y.at(number))

    drawn = []
    for number, labelled in x.ticks():
        drawn.append(_line(px(number), _TOP, px(number), _TOP + rise, *_GRID[labelled]))
        if labelled:
            drawn.append(_text(px(number), _TOP + rise + 4.2, _number(number, x.is_log), "middle"))
    for number, labelled in y.ticks():
        drawn.append(_line(_LEFT, py(number), _LEFT + inside, py(number), *_GRID[labelled]))
        if labelled:
            drawn.append(_text(_LEFT - 1.2, py(number) + 1.2, _number(number, y.is_log), "end"))
    drawn.append(_text(_LEFT + inside / 2, height - 1.6, x.title, "middle"))
    drawn.append(_text(3.4, _TOP + rise / 2, y.title, "middle", turned=-90))
    shown = [line for line in lines if solved or line.given]
    crosses = [point for point in points if solved or point.given]
    ends = [((px(e.x[0]), py(e.y[0])), (px(e.x[1]), py(e.y[1]))) for e in shown]
    arms = [
        ((px(e.x) - _ARM, py(e.y) + d), (px(e.x) + _ARM, py(e.y) - d)) for e in crosses for d in (_ARM, -_ARM)
    ]
    frame = (_LEFT, _TOP, _LEFT + inside, _TOP + rise)
    names: list[_Name] = []
    for line, (one, other) in zip(shown, ends, strict=True):
        css = "" if line.given else "answer"
        drawn.append(_line(*one, *other, 0.7, css, line.dashed))
        if line.label:
            names.append(_first_clear(_along(line.label, one, other), [*ends, *arms], names, frame))
            drawn.append(names[-1].svg(css))
    for point in crosses:
        css = "" if point.given else "answer"
        cx, cy = px(point.x), py(point.y)
        drawn += [_line(cx - _ARM, cy + d, cx + _ARM, cy - d, 0.6, css) for d in (_ARM, -_ARM)]
        beside = _beside(point.label, cx, cy, right_first=cx <= _LEFT + 0.72 * inside)
        names.append(_first_clear(beside, [*ends, *arms], names, frame))
        drawn.append(names[-1].svg(css))
    return _svg(width, height, "Paper with axes", drawn)


def squares(width: float = WIDTH, height: float = 253, size: float = 5) -> str:
    """Squared paper, as much as its frame shows."""
    lines = [_line(0, size * i, width, size * i, 0.1) for i in range(int(height / size) + 1)]
    lines += [_line(size * i, 0, size * i, height, 0.1) for i in range(int(width / size) + 1)]
    return _svg(width, height, "Squared paper", lines).replace('class="paper"', 'class="paper ground"')


def ruler(
    low: float, high: float, marks: Iterable[float], answers: Iterable[tuple[float, str]], solved: bool
) -> str:
    """Return a number line with marks at its whole numbers; solved, with the answers on it."""
    inside, y, height = WIDTH - 16, 9.0, 19.0

    def px(number: float) -> float:
        return 8 + inside * (number - low) / (high - low)

    drawn = [_line(px(low), y, px(high), y, 0.5)]
    for number in marks:
        drawn += [
            _line(px(number), y - 2, px(number), y + 2, 0.3),
            _text(px(number), y + 7, f"{number:g}", "middle"),
        ]
    for number, label in answers if solved else ():
        drawn += [_line(px(number), y - 3.4, px(number), y + 3.4, 0.9, "answer")]
        drawn.append(_text(px(number), y - 4.6, label, "middle", css="answer"))
    return _svg(WIDTH, height, "A ruler", drawn)


@dataclass(frozen=True)
class _Name:
    """A name at a possible place: the foot of its middle, and its rotation in degrees."""

    text: str
    x: float
    y: float
    turned: float = 0.0

    def covers(self) -> list[_Place]:
        """Points all over the name, a millimetre or so apart."""
        half, angle = _LETTER * len(self.text) / 2, math.radians(self.turned)
        count = max(2, math.ceil(2 * half))
        return [
            (
                self.x + a * math.cos(angle) + b * math.sin(angle),
                self.y + a * math.sin(angle) - b * math.cos(angle),
            )
            for i in range(count + 1)
            for a in [half * (2 * i / count - 1)]
            for b in (0.0, _ABOVE / 2, _ABOVE)
        ]

    def svg(self, css: str) -> str:
        return _text(self.x, self.y, self.text, "middle", turned=self.turned, css=css)


def _along(text: str, one: _Place, other: _Place) -> Iterator[_Name]:
    """Yield a name along its line, above it or below it, from the middle outwards."""
    (x1, y1), (x2, y2) = sorted((one, other))
    angle = math.degrees(math.atan2(y2 - y1, x2 - x1))
    across = math.radians(angle)
    for step in (0, 1, -1, 2, -2, 3, -3, 4, -4):
        t = 0.5 + 0.1 * step
        for off in (1.4, -1.4 - _ABOVE):
            x, y = x1 + t * (x2 - x1), y1 + t * (y2 - y1)
            yield _Name(text, x + off * math.sin(across), y - off * math.cos(across), angle)


def _beside(text: str, x: float, y: float, *, right_first: bool) -> Iterator[_Name]:
    """Yield a name beside its cross, then over and under it."""
    half = _LETTER * len(text) / 2
    sides = (1, -1) if right_first else (-1, 1)
    for side in sides:
        for down in (4.8, -2.4):
            yield _Name(text, x + side * (2.2 + half), y + down)
    for down in (-_ARM - 1.2, _ARM + 1.2 + _ABOVE):
        yield _Name(text, x, y + down)
    for side in sides:  # further off, where much stands close together
        for down in (8.0, -6.0):
            yield _Name(text, x + side * half, y + down)


def _first_clear(
    places: Iterable[_Name], lines: list[tuple[_Place, _Place]], names: list[_Name], frame: tuple[float, ...]
) -> _Name:
    """Return the first place on which nothing else lies; the one with the least on it where there is none."""
    taken = [point for name in names for point in name.covers()]
    left, top, right, bottom = frame
    top -= 1.5  # there is white paper above

    def hidden(name: _Name) -> int:
        return sum(
            not (left <= x <= right and top <= y <= bottom)
            or any(_distance((x, y), *line) < 0.7 for line in lines)
            or any(math.dist((x, y), point) < 1.6 for point in taken)
            for x, y in name.covers()
        )

    least: tuple[int, _Name] | None = None
    for place in places:
        found = hidden(place)
        if least is None or found < least[0]:
            least = (found, place)
        if not found:
            break
    assert least is not None
    return least[1]


def _distance(point: _Place, one: _Place, other: _Place) -> float:
    """Return the distance from a point to a line segment."""
    (x, y), (x1, y1), (x2, y2) = point, one, other
    length = (x2 - x1) ** 2 + (y2 - y1) ** 2
    t = 0.0 if not length else max(0.0, min(1.0, ((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / length))
    return math.dist(point, (x1 + t * (x2 - x1), y1 + t * (y2 - y1)))


def _number(number: float, is_log: bool) -> str:
    return f"{number:,.0f}" if number >= 1 or not is_log else f"{number:g}"


def _svg(width: float, height: float, name: str, drawn: list[str]) -> str:
    return (
        f'<svg class="paper" role="img" aria-label="{name}" viewBox="0 0 {width:g} {height:g}" '
        f'style="width:{width:g}mm;height:{height:g}mm">{"".join(drawn)}</svg>'
    )


def _line(
    x1: float, y1: float, x2: float, y2: float, width: float, css: str = "", dashed: bool = False
) -> str:
    dash = ' stroke-dasharray="2 1.4"' if dashed else ""
    return f'<path d="M{x1:.2f} {y1:.2f} L{x2:.2f} {y2:.2f}" class="{css}" stroke-width="{width}"{dash}/>'


def _text(x: float, y: float, text: str, anchor: str, *, turned: float = 0, css: str = "") -> str:
    turn = f' transform="rotate({turned:.1f} {x:.2f} {y:.2f})"' if turned else ""
    return (
        f'<text x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}" class="{css}"{turn}>{html.escape(text)}</text>'
    )
