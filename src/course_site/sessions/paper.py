"""Paper to draw on, as SVG in millimetres: axes, squares, a ruler. Solved, what belongs on it is drawn too."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from dataclasses import dataclass

WIDTH = 186.0  # of a page between its margins
_LEFT, _RIGHT, _TOP, _BOTTOM = 17.0, 7.0, 3.0, 12.0


@dataclass(frozen=True)
class Axis:
    """One axis: its ends, and whether a step is a power of ten."""

    low: float
    high: float
    title: str
    is_log: bool = True

    def at(self, number: float) -> float:
        """Where a number lies, from 0 to 1."""
        if self.is_log:
            return math.log(number / self.low) / math.log(self.high / self.low)
        return (number - self.low) / (self.high - self.low)

    def ticks(self) -> list[tuple[float, bool]]:
        """Numbers with a line, each with whether it is labelled."""
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
        drawn.append(_line(px(number), _TOP, px(number), _TOP + rise, 0.35 if labelled else 0.12))
        if labelled:
            drawn.append(_text(px(number), _TOP + rise + 4.2, _number(number, x.is_log), "middle"))
    for number, labelled in y.ticks():
        drawn.append(_line(_LEFT, py(number), _LEFT + inside, py(number), 0.35 if labelled else 0.12))
        if labelled:
            drawn.append(_text(_LEFT - 1.2, py(number) + 1.2, _number(number, y.is_log), "end"))
    drawn.append(_text(_LEFT + inside / 2, height - 1.6, x.title, "middle"))
    drawn.append(_text(3.4, _TOP + rise / 2, y.title, "middle", turned=True))
    for line in lines:
        if solved or line.given:
            css = "" if line.given else "answer"
            x1, x2, y1, y2 = px(line.x[0]), px(line.x[1]), py(line.y[0]), py(line.y[1])
            drawn.append(_line(x1, y1, x2, y2, 0.7, css, line.dashed))
            is_level = abs(y1 - y2) < 1
            beside = ((x1 + x2) / 2 - (0 if is_level else 2), (y1 + y2) / 2 - 1.6)
            drawn.append(_text(*beside, line.label, "middle" if is_level else "end", css=css))
    for point in points:
        if solved or point.given:
            css = "" if point.given else "answer"
            cx, cy = px(point.x), py(point.y)
            drawn += [_line(cx - 1.6, cy + d, cx + 1.6, cy - d, 0.6, css) for d in (1.6, -1.6)]
            near_the_edge = cx > _LEFT + 0.72 * inside
            drawn.append(
                _text(
                    cx + (-2.2 if near_the_edge else 2.2),
                    cy + 4.4,
                    point.label,
                    "end" if near_the_edge else "start",
                    css=css,
                )
            )
    return _svg(width, height, "Paper with axes", drawn)


def squares(width: float = WIDTH, height: float = 253, size: float = 5) -> str:
    """Squared paper, as much as its frame shows."""
    lines = [_line(0, size * i, width, size * i, 0.1) for i in range(int(height / size) + 1)]
    lines += [_line(size * i, 0, size * i, height, 0.1) for i in range(int(width / size) + 1)]
    return _svg(width, height, "Squared paper", lines).replace('class="paper"', 'class="paper ground"')


def ruler(
    low: float, high: float, marks: Iterable[float], answers: Iterable[tuple[float, str]], solved: bool
) -> str:
    """A line of numbers with marks at its whole numbers; solved, the answers stand on it."""
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


def _text(x: float, y: float, text: str, anchor: str, *, turned: bool = False, css: str = "") -> str:
    turn = f' transform="rotate(-90 {x:.2f} {y:.2f})"' if turned else ""
    return (
        f'<text x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}" class="{css}"{turn}>{html.escape(text)}</text>'
    )
