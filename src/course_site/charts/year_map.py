"""The map of the year: a column of boxes for each part, a box for each week, an arrow to each week that needs it."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

BOX, HEIGHT = 108, 30
COLUMN, ROW, TOP = 129, 46, 44
LETTERS = 20  # of a line over a column
LINE = 13


@dataclass(frozen=True)
class Box:
    """A week: its number and name, the weeks that it needs, and the address of its page, "" while it is to come."""

    number: int
    name: str
    needs: tuple[int, ...]
    address: str


def draw_year(parts: Sequence[tuple[str, Sequence[Box]]], alt: str) -> str:
    """Return the weeks of each part, and what needs what, as one inline SVG.

    The links are for a mouse: the same weeks stand in the list beside the drawing, where every reader finds them. An
    arrow has the classes of both its weeks, so that a script can lift those of one.

    Args:
        parts: title and weeks of each.
    """
    places: dict[int, tuple[float, float]] = {
        box.number: (column * COLUMN, TOP + row * ROW)
        for column, (_, boxes) in enumerate(parts)
        for row, box in enumerate(boxes)
    }
    width = COLUMN * (len(parts) - 1) + BOX + 16
    height = max((y for _, y in places.values()), default=0) + HEIGHT + 8
    drawn = [
        f'<svg viewBox="-12 0 {width} {height}" role="group" aria-label="{html.escape(alt)}" focusable="false">',
        '<defs><marker id="arrow" viewBox="0 0 6 6" refX="5.4" refY="3" markerWidth="6" markerHeight="6" orient="auto">'
        '<path d="M0 0 L6 3 L0 6 Z"/></marker></defs>',
    ]
    for _, boxes in parts:
        for box in boxes:
            drawn += [_arrow(need, box.number, places) for need in box.needs]
    for column, (title, boxes) in enumerate(parts):
        for line, words in enumerate(textwrap.wrap(title, LETTERS)):
            drawn.append(
                f'<text class="name" x="{column * COLUMN}" y="{13 + LINE * line}">{html.escape(words)} </text>'
            )
        drawn += [_box(box, *places[box.number]) for box in boxes]
    return "".join([*drawn, "</svg>"])


def _arrow(source: int, target: int, places: Mapping[int, tuple[float, float]]) -> str:
    """Return an arrow: straight to the next box of a column, past some to a later one, or across to another column."""
    (x, y), (to_x, to_y) = places[source], places[target]
    middle, to_middle = y + HEIGHT / 2, to_y + HEIGHT / 2
    if x == to_x and to_y - y <= ROW:
        path = f"M{x + BOX / 2:g} {y + HEIGHT:g} V{to_y - 1:g}"
    elif x == to_x:
        path = f"M{x:g} {middle:g} C{x - 14:g} {middle:g} {x - 14:g} {to_middle:g} {x - 1:g} {to_middle:g}"
    else:
        begin, end = (x + BOX, to_x - 1) if x < to_x else (x, to_x + BOX + 1)
        bend = (end - begin) / 2
        path = f"M{begin:g} {middle:g} C{begin + bend:g} {middle:g} {end - bend:g} {to_middle:g} {end:g} {to_middle:g}"
    return f'<path class="arrow from{source} to{target}" d="{path}" marker-end="url(#arrow)"/>'


def _box(box: Box, x: float, y: float) -> str:
    name = html.escape(box.name)
    inside = (
        f'<rect x="{x:g}" y="{y:g}" width="{BOX}" height="{HEIGHT}" rx="4"/>'
        f'<text x="{x + 7:g}" y="{y + 19.5:g}"><tspan class="number">{box.number}</tspan> {name}</text>'
    )
    if not box.address:
        return f'<g class="week to-come" data-week="{box.number}" aria-hidden="true">{inside}</g>'
    address = html.escape(box.address)
    return (
        f'<a class="week" data-week="{box.number}" href="{address}" data-page="{address}" tabindex="-1" '
        f'aria-hidden="true">{inside}</a>'
    )
