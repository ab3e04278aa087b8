"""Many kernels of many problems under the roofs of one card: plain numbers in, one inline SVG out.

Like plots.py, in its colours and its cache, but written mark by mark, since every mark is a link. What a kernel is
written in is told by the shape of its mark; which problem it belongs to by a thin line through the kernels of one
ladder, by labels, and in the second drawing by its row. The links are no stops of the Tab key: the page has the same
ones in a table.
"""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from course_site.charts.plots import (
    COLOURS,
    CSS,
    INK,
    LINE,
    PAPER,
    RULE,
    SMALL,
    SOFT,
    TITLE,
    WIDTH,
    Box,
    cached,
    letters,
    short,
    spread,
    text_width,
    wrap,
)

KINDS = ("CUDA C++", "Triton", "Gluon", "library")
NAMES_OF_KINDS = {"library": "library calls"}
_R = 3.6  # of a mark
_RUNGS = 3  # a ladder of fewer has no label at its foot under the roofs
_FAR = 60  # as far as a label stands from its mark, in each direction
_FINGER = 7.5  # around a mark: what a tap on it may miss by


@dataclass(frozen=True)
class Mark:
    """One kernel under one roof.

    Attributes:
        group: what it belongs to, a problem under one roof; `label` is that in words, `roof` what is above it.
        name: the kernel's own, in words.
        kind: one of `KINDS`.
        intensity, tflops: where it stands, both 0 for what only moves bytes.
        counted: its intensity by counted bytes, or None.
        share: of its roof, from 0 to 1.
        ladder: its place on the ladder of its group, 0 for a rival.
        tip: what is said of it; href: where it leads.
    """

    group: str
    label: str
    roof: str
    name: str
    kind: str
    intensity: float
    tflops: float
    counted: float | None
    share: float
    ladder: int
    tip: str
    href: str


@dataclass(frozen=True)
class Ceiling:
    """A peak of arithmetic in TFLOP/s, with its words."""

    label: str
    tflops: float


def draw_under_roofs(
    title: str, marks: tuple[Mark, ...], ceilings: tuple[Ceiling, ...], gb_per_s: float, *, alt: str, key: str
) -> str:
    """Return every mark with arithmetic as a point: FLOP per byte against TFLOP/s, both logarithmic.

    Raises:
        ValueError: no mark with arithmetic, no ceiling, or a value that is not above zero.
    """
    shown = tuple(mark for mark in marks if mark.intensity > 0)
    if not shown or not ceilings:
        raise ValueError("a roofline needs marks with arithmetic, and ceilings")
    _check(marks)
    if not all(value > 0 for mark in shown for value in (mark.tflops, mark.counted or 1)) or gb_per_s <= 0:
        raise ValueError("a roofline takes values above zero only")
    return cached("under roofs", title, alt, key, _under_roofs, (shown, ceilings, gb_per_s))


def draw_shares(title: str, marks: tuple[Mark, ...], *, alt: str, key: str) -> str:
    """Return the same with every roof pulled flat: a row for each group, a mark at its share of the roof.

    Raises:
        ValueError: no marks, or a share below 0 or above 1.
    """
    if not marks:
        raise ValueError("a drawing of shares needs marks")
    _check(marks)
    return cached("shares", title, alt, key, _shares, (marks,))


def _check(marks: Sequence[Mark]) -> None:
    for mark in marks:
        if mark.kind not in KINDS:
            raise ValueError(f"{mark.name}: unknown kind {mark.kind!r}; known: {', '.join(KINDS)}")
        if not 0 <= mark.share <= 1:
            raise ValueError(f"{mark.name}: a share of a roof is 0 to 1, not {mark.share:g}")


def groups(marks: Sequence[Mark]) -> dict[str, list[Mark]]:
    """Return the marks of every group, the best first; those groups first that have the fewest operations per byte."""
    found: dict[str, list[Mark]] = {}
    for mark in sorted(marks, key=lambda mark: (-mark.share, mark.name)):
        found.setdefault(mark.group, []).append(mark)
    order = sorted(found, key=lambda name: (min(m.intensity for m in found[name]), name))
    return {name: found[name] for name in order}


def ladder_of(members: Sequence[Mark]) -> list[Mark]:
    """Our kernels of a group in the order in which a reader meets them; a single one is no ladder."""
    rungs = sorted((mark for mark in members if mark.ladder), key=lambda mark: mark.ladder)
    return rungs if len(rungs) > 1 else []


# --- the sheet -----------------------------------------------------------------------------------


class _Sheet:
    """Parts of a drawing, y upwards from `height`, the title on top and the key to the kinds below it."""

    def __init__(self, title: str, body: float, keys: Sequence[str]) -> None:
        self.parts: list[str] = []
        lines = wrap(title, WIDTH, TITLE, bold=True)
        self.height = body + len(lines) * (TITLE + 3.4) + LINE * len(keys) + 8
        for number, line in enumerate(lines):
            y = self.height - (TITLE + 3.4) * number - TITLE
            self.text(0, y, line, size=TITLE, bold=True, baseline=True)
        self.top = self.height - len(lines) * (TITLE + 3.4) - 8

    def text(
        self, x: float, y: float, text: str, color: str = INK, *, size: float = SMALL, bold: bool = False,
        anchor: str = "", baseline: bool = False, angle: float = 0.0,
    ) -> None:  # fmt: skip
        """Draw one line of text around y."""
        y = self.height - y + (0 if baseline else 0.36 * size)
        style = f"font-size:{letters(size)};fill:{CSS[color]}" + (";font-weight:600" if bold else "")
        style += f";text-anchor:{anchor}" if anchor else ""
        turned = f' transform="rotate({-angle:.1f} {x:.1f} {y:.1f})"' if angle else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}"{turned} style="{style}">{html.escape(text)}</text>')

    def line(self, places: Sequence[tuple[float, float]], color: str = INK, **more: float | str) -> None:
        """Draw a line through places."""
        style = "".join(f";{name.replace('_', '-')}:{value}" for name, value in more.items())
        d = "M" + "L".join(f"{x:.1f} {self.height - y:.1f}" for x, y in places)
        self.parts.append(f'<path d="{d}" style="fill:none;stroke:{CSS[color]}{style}"/>')

    def shape(self, kind: str, x: float, y: float, color: str) -> str:
        """Return a mark of a kind."""
        y, r = self.height - y, _R
        d = {
            "CUDA C++": f"M{x - r:.1f} {y:.1f}a{r} {r} 0 1 1 {2 * r} 0a{r} {r} 0 1 1 {-2 * r} 0z",
            "Triton": f"M{x:.1f} {y - 1.25 * r:.1f}l{1.25 * r:.1f} {2.2 * r:.1f}h{-2.5 * r:.1f}z",
            "Gluon": f"M{x:.1f} {y - 1.35 * r:.1f}l{1.35 * r:.1f} {1.35 * r:.1f}l{-1.35 * r:.1f} {1.35 * r:.1f}"
            f"l{-1.35 * r:.1f} {-1.35 * r:.1f}z",
            "library": f"M{x - 0.85 * r:.1f} {y - 0.85 * r:.1f}h{1.7 * r:.1f}v{1.7 * r:.1f}h{-1.7 * r:.1f}z",
        }[kind]
        # What others wrote is hollow.
        fill, stroke = (PAPER, color) if kind == "library" else (color, PAPER)
        width = 1.3 if kind == "library" else 0.7
        return f'<path d="{d}" style="fill:{CSS[fill]};stroke:{CSS[stroke]};stroke-width:{width}"/>'

    def mark(self, mark: Mark, x: float, y: float, color: str) -> None:
        """Draw a mark that leads somewhere."""
        finger = f'<circle cx="{x:.1f}" cy="{self.height - y:.1f}" r="{_FINGER}" style="fill:transparent"/>'
        self.parts.append(
            f'<a href="{html.escape(mark.href)}" tabindex="-1"><title>{html.escape(mark.tip)}</title>{finger}'
            f"{self.shape(mark.kind, x, y, color)}</a>"
        )

    def key(self, kinds: Sequence[str]) -> None:
        """Draw the key of shapes."""
        x = 4.0
        for kind in kinds:
            words = NAMES_OF_KINDS.get(kind, kind)
            self.parts.append(self.shape(kind, x, self.top - LINE / 2, SOFT))
            self.text(x + 8, self.top - LINE / 2, words, SOFT)
            x += 8 + text_width(words) + 16

    def svg(self) -> str:
        """Return the finished drawing, with @HEAD@ and @KEY@ still to be filled in."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {self.height:.5g}" role="group" '
            'aria-labelledby="@KEY@-title @KEY@-desc" style="width:100%;max-width:600px">@HEAD@'
        )
        return head + "".join(self.parts) + "</svg>"


def _colours(marks: Sequence[Mark]) -> dict[str, str]:
    return {group: COLOURS[i % len(COLOURS)] for i, group in enumerate(groups(marks))}


def _kinds(marks: Sequence[Mark]) -> list[str]:
    return [kind for kind in KINDS if any(mark.kind == kind for mark in marks)]


def _decades(low: float, high: float) -> list[float]:
    """Return the powers of ten from one number to another."""
    return [10.0**e for e in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]


# --- under the roofs -----------------------------------------------------------------------------


def _under_roofs(title: str, marks: tuple[Mark, ...], ceilings: tuple[Ceiling, ...], gb_per_s: float) -> str:
    counts = any(mark.counted for mark in marks)
    sheet = _Sheet(title, 422, ["kinds"] + ["counted"] * counts)
    sheet.key(_kinds(marks))
    if counts:
        y = sheet.top - 1.5 * LINE
        sheet.line([(0, y), (16, y)], SOFT, stroke_width=0.9)
        sheet.line([(0, y - 3.5), (0, y + 3.5)], SOFT, stroke_width=0.9)
        sheet.text(22, y, "where its counted bytes put it", SOFT)

    slope, top = gb_per_s / 1000, max(c.tflops for c in ceilings)
    lefts = [mark.intensity for mark in marks] + [mark.counted for mark in marks if mark.counted]
    x_low, x_high = min(lefts) / 2.5, max(max(lefts), top / slope) * 4.5
    y_low, y_high = min(min(m.tflops for m in marks), x_low * slope) / 2, top * 6
    box = Box(38, 32, WIDTH - 1, 420)

    def place(x: float, y: float) -> tuple[float, float]:
        across = math.log(x / x_low) / math.log(x_high / x_low)
        up = math.log(y / y_low) / math.log(y_high / y_low)
        return box.x0 + across * (box.x1 - box.x0), box.y0 + up * (box.y1 - box.y0)

    for tick in _decades(y_low, top):
        _, y = place(x_low, tick)
        sheet.line([(box.x0, y), (box.x1, y)], RULE, stroke_width=0.6)
        sheet.text(box.x0 - 5, y, short(tick), SOFT, anchor="end")
    sheet.line([(box.x0, box.y0), (box.x1, box.y0)], SOFT, stroke_width=0.7)
    for tick in _decades(x_low, x_high):
        x, _ = place(tick, y_low)
        sheet.line([(x, box.y0), (x, box.y0 - 3)], SOFT, stroke_width=0.7)
        sheet.text(x, box.y0 - 10, short(tick), SOFT, anchor="middle")
    sheet.text((box.x0 + box.x1) / 2, 6, "FLOP per byte, of the least bytes", SOFT, anchor="middle")
    sheet.text(0, place(x_low, _decades(y_low, top)[-1])[1] + LINE, "TFLOP/s", SOFT)
    taken, words = _roofs(sheet, ceilings, gb_per_s, x_low, x_high, place)
    _points(sheet, marks, taken, words, box, place)
    return sheet.svg()


def _roofs(
    sheet: _Sheet, ceilings: Sequence[Ceiling], gb_per_s: float, x_low: float, x_high: float,
    place: Callable[[float, float], tuple[float, float]],
) -> tuple[list[Box], list[Box]]:  # fmt: skip
    """Draw the slope and the ceilings with their words, each left of where it leaves the slope.

    Returns what they cover, and of that the words of the ceilings.
    """
    slope, top = gb_per_s / 1000, max(c.tflops for c in ceilings)
    taken: list[Box] = []
    said: list[Box] = []
    start, end = place(x_low, x_low * slope), place(top / slope, top)
    sheet.line([start, end], stroke_width=1.2)
    for i in range(81):
        x, y = start[0] + (end[0] - start[0]) * i / 80, start[1] + (end[1] - start[1]) * i / 80
        taken.append(Box(x - 3, y - 1.5, x + 1.5, y + 3))
    angle = math.atan2(end[1] - start[1], end[0] - start[0])
    x, y = start[0] + 14, start[1] + 14 * math.tan(angle)
    x, y = x - 9 * math.sin(angle), y + 9 * math.cos(angle)
    words = f"HBM, {short(gb_per_s)} GB/s"
    sheet.text(x, y, words, SOFT, angle=math.degrees(angle))
    for i in range(21):  # along the words: no label lies on them
        along = text_width(words) * i / 20
        at = x + along * math.cos(angle), y + along * math.sin(angle)
        taken.append(Box(at[0] - 5, at[1] - 5, at[0] + 5, at[1] + 5))
    for ceiling in ceilings:
        ridge = place(ceiling.tflops / slope, ceiling.tflops)
        sheet.line([ridge, place(x_high, ceiling.tflops)], stroke_width=1.2)
        words = f"{ceiling.label}, {short(ceiling.tflops)}"
        sheet.text(ridge[0] - 5, ridge[1], words, SOFT, anchor="end")
        taken.append(Box(ridge[0], ridge[1] - 1.5, place(x_high, 1)[0], ridge[1] + 1.5))
        said.append(Box(ridge[0] - 5 - text_width(words), ridge[1] - 6, ridge[0], ridge[1] + 6))
    return taken + said, said


def _points(
    sheet: _Sheet, marks: Sequence[Mark], taken: list[Box], said: list[Box], box: Box,
    place: Callable[[float, float], tuple[float, float]],
) -> None:  # fmt: skip
    colours = _colours(marks)
    where = {id(mark): place(mark.intensity, mark.tflops) for mark in marks}
    for group, members in groups(marks).items():
        if rungs := ladder_of(members):
            sheet.line([where[id(m)] for m in rungs], colours[group], stroke_width=0.8, opacity=0.45)
        for mark in members:
            x, y = where[id(mark)]
            if mark.counted and mark.counted < mark.intensity * 0.9:
                end = place(mark.counted, mark.tflops)[0]
                sheet.line([(x, y), (end, y)], colours[group], stroke_width=0.9)
                sheet.line([(end, y - 3.5), (end, y + 3.5)], colours[group], stroke_width=0.9)
                taken.append(Box(end - 1, y - 3, x, y + 3))
    apart = [Box(x - 4.5, y - 4.5, x + 4.5, y + 4.5) for x, y in where.values()]
    taken += apart  # and no line to a label should cross them
    for group, members in groups(marks).items():
        for mark in members[::-1]:
            sheet.mark(mark, *where[id(mark)], colours[group])
    labels = [(members[0], members[0].label, True) for members in groups(marks).values()]
    ladders = (ladder_of(members) for members in groups(marks).values())
    labels += [(rungs[0], rungs[0].name, False) for rungs in ladders if len(rungs) >= _RUNGS]
    best = {id(mark) for mark, _, is_best in labels if is_best}
    for mark, words, is_best in sorted(labels, key=lambda label: (not label[2], -label[0].tflops)):
        place_of_mark, color = where[id(mark)], colours[mark.group]
        spot, covers = _spot(place_of_mark, text_width(words, bold=is_best), taken, apart, box)
        if not is_best and (covers or id(mark) in best):
            continue  # the other chart has room for it
        if any(_shared(spot, words) for words in said):
            continue  # as for this one: letters on letters can be read by nobody
        aired = Box(spot.x0 - 4, spot.y0 - 1, spot.x1 + 4, spot.y1 + 1)
        taken.append(aired)
        apart.append(aired)
        said.append(aired)
        # Letters may be narrower than their room: they stand at that end of it which is nearer to the mark.
        narrow = 0.85 * (spot.x1 - spot.x0)
        is_right = place_of_mark[0] > (spot.x0 + spot.x1) / 2
        letters_at = spot._replace(x0=spot.x1 - narrow) if is_right else spot._replace(x1=spot.x0 + narrow)
        near = _nearest(place_of_mark, letters_at)
        if math.dist(near, place_of_mark) > 9:
            sheet.line([place_of_mark, near], color, stroke_width=0.6, opacity=0.8)
        x, y = spot.x1 if is_right else spot.x0, (spot.y0 + spot.y1) / 2
        ink, anchor = color if is_best else SOFT, "end" if is_right else ""
        sheet.text(x, y, words, ink, bold=is_best, anchor=anchor)


def _nearest(place: tuple[float, float], box: Box) -> tuple[float, float]:
    """Return the point of a box that is nearest to a place."""
    return min(max(place[0], box.x0), box.x1), min(max(place[1], box.y0), box.y1)


def _spot(
    place: tuple[float, float], width: float, taken: Sequence[Box], apart: Sequence[Box], room: Box
) -> tuple[Box, bool]:
    """Return where a label covers least, near its mark, with little in the way between the two.

    And whether it covers any.
    """
    reach = Box(place[0] - width - _FAR, place[1] - _FAR, place[0] + width + _FAR, place[1] + _FAR)
    around = [box for box in taken if _shared(reach, box)]
    spots: list[tuple[float, int, Box]] = []
    for number, (dx, dy) in enumerate(
        itertools.product(range(-_FAR - round(width), _FAR + 1, 6), range(-_FAR, _FAR + 1, 4))
    ):
        spot = Box(place[0] + dx, place[1] + dy - 5.5, place[0] + dx + width, place[1] + dy + 5.5)
        if spot.x0 < room.x0 or spot.x1 > room.x1 or spot.y0 < room.y0 or spot.y1 > room.y1:
            continue
        away = math.dist(place, _nearest(place, spot))
        if away >= 5:
            spots.append((away, number, spot))
    best = math.inf, 0, Box(place[0], place[1], place[0] + width, place[1] + 11), True
    for away, number, spot in sorted(spots):  # the nearest first: most of the others are too far then
        if away > best[0]:
            break
        covers = sum(_shared(spot, box) for box in around)
        if away + covers > best[0]:
            continue
        price = away + covers + 8 * _between(place, spot, apart)
        if (price, number) < best[:2]:
            best = price, number, spot, covers > 0
    return best[2:]


def _shared(one: Box, other: Box) -> float:
    """Return the area that two boxes share."""
    wide, tall = min(one.x1, other.x1) - max(one.x0, other.x0), min(one.y1, other.y1) - max(one.y0, other.y0)
    return wide * tall if wide > 0 and tall > 0 else 0.0


def _between(place: tuple[float, float], spot: Box, taken: Sequence[Box]) -> int:
    """Return how many boxes the line from a mark to its label meets, but for those that the mark stands in."""
    end = _nearest(place, spot)
    steps = [tuple(a + (b - a) * i / 10 for a, b in zip(place, end, strict=True)) for i in range(11)]
    others = [b for b in taken if not (b.x0 <= place[0] <= b.x1 and b.y0 <= place[1] <= b.y1)]
    return sum(any(b.x0 < x < b.x1 and b.y0 < y < b.y1 for x, y in steps) for b in others)


# --- the roofs pulled flat -----------------------------------------------------------------------


def _shares(title: str, marks: tuple[Mark, ...]) -> str:
    left, right, step = 98.0, WIDTH - 8, 8.5
    colours, rows = _colours(marks), groups(marks)

    def at(share: float) -> float:
        return left + share * (right - left)

    laid: list[tuple[str, list[Mark], dict[int, int], list[str], float]] = []
    for group, members in rows.items():
        levels = _levels([at(mark.share) for mark in members], 2 * _R + 1.4)
        names = wrap(members[0].label.rpartition(", ")[0] or members[0].label, left - 8, bold=True)
        tall = max(LINE * (len(names) + 1) + 6, LINE + 8 + step * (1 + max(levels.values())) + 3)
        laid.append((group, members, levels, names, tall))
    sheet = _Sheet(title, sum(row[-1] for row in laid) + LINE + 30, ["kinds"])
    sheet.key(_kinds(marks))
    y = sheet.top - 2 * LINE - 16
    sheet.text(0, y + 8, "% of its roof", SOFT)
    bottom = y - sum(row[-1] for row in laid)
    for percent in (0, 25, 50, 75, 100):
        x, is_roof = at(percent / 100), percent == 100
        sheet.line([(x, y), (x, bottom)], INK if is_roof else RULE, stroke_width=1.2 if is_roof else 0.6)
        for height in (y + 8, bottom - 8):
            sheet.text(x, height, str(percent), SOFT, anchor="middle")
    for group, members, levels, names, tall in laid:
        sheet.line([(0, y), (right, y)], RULE, stroke_width=0.6)
        for number, name in enumerate(names):
            sheet.text(0, y - 9 - LINE * number, name, bold=True)
        sheet.text(0, y - 9 - LINE * len(names), members[0].roof, SOFT)
        _names_in_a_row(sheet, members, y - 9, at, left, WIDTH)
        base = y - LINE - 8
        for number in range(len(members))[::-1]:
            sheet.mark(
                members[number], at(members[number].share), base - step * levels[number], colours[group]
            )
        y -= tall
    return sheet.svg()


def _levels(places: Sequence[float], room: float) -> dict[int, int]:
    """Return how far below its line every mark of a row hangs, so that none covers another."""
    levels: dict[int, int] = {}
    for number, place in enumerate(places):
        near = {levels[other] for other in levels if abs(places[other] - place) < room}
        levels[number] = next(level for level in range(len(places)) if level not in near)
    return levels


def _names_in_a_row(
    sheet: _Sheet, members: Sequence[Mark], y: float, at: Callable[[float], float], low: float, high: float
) -> None:
    """Place the names of a row's best and of the first of its ladder.

    Each above its mark or as near as the other lets it.
    """
    named = [members[0]]
    if (rungs := ladder_of(members)) and rungs[0] is not members[0]:
        named.append(rungs[0])
    widths = [text_width(mark.name) + 7 for mark in named]
    for mark, x in zip(named, spread([at(m.share) for m in named], widths, low, high), strict=True):
        sheet.text(x, y, mark.name, INK if mark is members[0] else SOFT, anchor="middle")
