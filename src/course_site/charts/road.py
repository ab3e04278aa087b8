"""The road of the course, drawn with its stops: there along the top, back along the bottom, a mountain at its end."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 880, 52, 800, 96, 216
LETTERS = 14  # of a label's line
LINE = 14.5


@dataclass(frozen=True)
class Dot:
    """A stop: its name, and the address of its page, "" while it is to come."""

    name: str
    address: str


def draw_road(halves: Sequence[str], dots: Sequence[Sequence[Dot]], alt: str) -> str:
    """Return two halves of a road as one inline SVG.

    The links are for a mouse: the same stops stand in the list beside the drawing, where every reader finds them.

    Args:
        halves: what the two are called.
        dots: the stops of each, in their order.
    """
    there, back = dots
    turn, foot = RIGHT + 76, BOTTOM + 8
    along = f"M10 {TOP} H{RIGHT} C{turn} {TOP} {turn} {BOTTOM} {RIGHT} {BOTTOM} H92"
    mountain = f"M8 {foot} L50 {BOTTOM - 66} L66 {BOTTOM - 38} L77 {BOTTOM - 55} L112 {foot} Z"
    parts = [
        f'<svg viewBox="0 0 {WIDTH} 308" role="group" aria-label="{html.escape(alt)}" focusable="false">',
        *(f'<path class="{css}" d="{along}"/>' for css in ("lane", "line")),
        f'<text class="name" x="10" y="20">{html.escape(halves[0])}</text>',
        f'<text class="name" x="{WIDTH - 10}" y="300" text-anchor="end">{html.escape(halves[1])}</text>',
        f'<path class="mountain" d="{mountain}"/>',
        f'<path class="peak" d="M10 {BOTTOM - 88} H116"/>',
        f'<path class="flag" d="M50 {BOTTOM - 66} V{BOTTOM - 90} l16 6 l-16 6"/>',
        *_row(there, LEFT, RIGHT, TOP, above=True),
        *_row(back, RIGHT, 186, BOTTOM, above=False),
        "</svg>",
    ]
    return "".join(parts)


def _row(dots: Sequence[Dot], first: float, last: float, y: float, *, above: bool) -> list[str]:
    step = (last - first) / max(len(dots) - 1, 1)
    return [_dot(dot, first + i * step, y, above=above) for i, dot in enumerate(dots)]


def _dot(dot: Dot, x: float, y: float, *, above: bool) -> str:
    lines = textwrap.wrap(dot.name.partition(":")[0], LETTERS, break_long_words=False)
    first = y - 20 - LINE * (len(lines) - 1) if above else y + 29
    words = "".join(
        f'<tspan x="{x:.1f}" y="{first + LINE * i:.1f}">{html.escape(line)} </tspan>'
        for i, line in enumerate(lines)
    )
    drawn = f'<circle cx="{x:.1f}" cy="{y}" r="7"/><text text-anchor="middle">{words}</text>'
    if not dot.address:
        return f'<g class="dot to-come" aria-hidden="true">{drawn}</g>'
    address = html.escape(dot.address)
    return (
        f'<a class="dot" href="{address}" data-page="{address}" tabindex="-1" aria-hidden="true">{drawn}</a>'
    )
