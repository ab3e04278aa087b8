"""Drawings to scale of what a card is and of what it was asked to do: plain numbers in, one inline SVG out.

Like plots.py, in its colours and its cache, but written cell by cell: a launch is thousands of cells in a few
patterns. Whatever a colour tells, a hatch, a dash or a word tells too.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from course_site.charts.plots import (
    COLOURS,
    CSS,
    INK,
    LINE,
    PAPER,
    SMALL,
    SOFT,
    TITLE,
    WIDTH,
    cached,
    grouped,
    letters,
    short,
    text_width,
    wrap,
)


@dataclass(frozen=True)
class Card:
    """Properties of a card; KiB, MiB and GiB in steps of 1024, as memories are built.

    Attributes:
        sms: streaming multiprocessors.
        lanes: fp32 lanes in each of them, shared out over its `quarters`, one scheduler each.
        registers_kib, shared_kib: storage in each of them.
        l2_mib, hbm_gib: for the whole card.
        stacks: stacks of memory beside the chip; 0 where nobody told.
    """

    sms: int
    lanes: int
    registers_kib: float
    shared_kib: float
    l2_mib: float
    hbm_gib: float
    quarters: int = 4
    stacks: int = 0


class Thread(NamedTuple):
    """One thread of a launch: its block and its place in it as (x, y, z), its warp within the block, its SM."""

    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    warp: int
    sm: int


def draw_card(title: str, card: Card, *, alt: str, key: str) -> str:
    """Return a card to scale, the near at the top: one multiprocessor magnified, the chip, the memory beside it.

    Areas of memory share one scale within each part; the drawing says how the scales differ.

    Raises:
        ValueError: a count or a size that is not above zero, or lanes that the quarters cannot share.
    """
    for name, value in asdict(card).items():
        if name != "stacks" and not (math.isfinite(value) and value > 0):
            raise ValueError(f"a card needs {name} above zero, got {value}")
    if card.lanes % card.quarters:
        raise ValueError(f"{card.lanes} lanes cannot be shared by {card.quarters} quarters")
    return cached("card", title, alt, key, _card, (card,))


def draw_launch(
    title: str, threads: tuple[Thread, ...], *, size: tuple[int, ...] = (),
    block: tuple[int, int, int] | None = None, alt: str, key: str,
) -> str:  # fmt: skip
    """Return one launch to scale: every block in its grid, every thread a cell, one block magnified with its lanes.

    Args:
        title: stands in the drawing.
        threads: all threads of the launch, as the card reported them.
        size: extents of the problem, slowest first: (N,), (H, W) or (D, H, W). A thread past it is crossed out.
        block: the one to magnify; without it the first with both working and idle threads, else the first.
        alt: one sentence that says what the drawing shows.
        key: prefix of the ids inside, unique on the page.
    Raises:
        ValueError: no threads or more than 8192, threads that do not fill their grid, a size of more than three
            extents, or a block that is not in the grid.
    """
    if not 0 < len(threads) <= 8192:
        raise ValueError(f"a launch is drawn with 1 to 8192 threads, got {len(threads)}")
    if len(size) > 3:
        raise ValueError(f"a problem has one to three extents, got {size}")
    plan = Plan(threads, size)
    whole = math.prod(plan.grid) * math.prod(plan.block)
    if len(threads) != whole or len({(t.block, t.thread) for t in threads}) != whole:
        raise ValueError(f"{len(threads)} threads do not fill a grid of {plan.grid} blocks of {plan.block}")
    if block is not None and block not in plan.blocks:
        raise ValueError(f"block {block} is not in a grid of {plan.grid}")
    return cached("launch", title, alt, key, _launch, (threads, size, block))


class Span(NamedTuple):
    """Activity of a lane for a while: an index into the kinds, from and to."""

    does: int
    begin: float
    end: float


class Lane(NamedTuple):
    """One row of time, with its name."""

    label: str
    spans: tuple[Span, ...]


class Lanes(NamedTuple):
    """Lanes that belong together, under a heading."""

    label: str
    lanes: tuple[Lane, ...]


def draw_lanes(
    title: str,
    groups: tuple[Lanes, ...],
    kinds: tuple[tuple[str, str], ...],
    x_label: str,
    *,
    alt: str,
    key: str,
) -> str:
    """Return who did what when: lanes under each other on one scale of time.

    Args:
        title: stands in the drawing.
        groups: from the top; all start at 0 and share one scale.
        kinds: what there is to do, in words, and how it looks: one of `LOOKS`.
        x_label: what time is counted in.
        alt: one sentence that says what the drawing shows.
        key: prefix of the ids inside, unique on the page.
    Raises:
        ValueError: nothing to draw, an unknown look, a kind that is not there, or a span that ends before it begins.
    """
    spans = [span for group in groups for lane in group.lanes for span in lane.spans]
    if not spans:
        raise ValueError("lanes are drawn of at least one span")
    if unknown := [look for _, look in kinds if look not in LOOKS]:
        raise ValueError(f"lanes look {', '.join(LOOKS)}, not {unknown[0]!r}")
    for span in spans:
        if not 0 <= span.does < len(kinds) or not 0 <= span.begin <= span.end < math.inf:
            raise ValueError(
                f"a span of lanes does one of {len(kinds)} kinds, from 0 on, forwards; got {tuple(span)}"
            )
    return cached("lanes", title, alt, key, _lanes, (groups, kinds, x_label))


# --- the sheet ------------------------------------------------------------------------------------------


class _Sheet:
    """A drawing of boxes and cells: y downwards, the title on top."""

    def __init__(self, title: str) -> None:
        self.parts: list[str] = []
        self.ids: dict[Any, str] = {}
        self.y = 0.0
        for line in wrap(title, WIDTH, TITLE, bold=True):
            self.y += TITLE + 3.4
            self.text(0, self.y - 3.4, line, size=TITLE, bold=True)
        self.y += 4

    def text(
        self, x: float, y: float, text: str, color: str = INK, size: float = SMALL, middle: bool = False,
        bold: bool = False, inside: bool = False,
    ) -> None:  # fmt: skip
        """Draw one line of text, y its baseline; `inside` a box of its own, where no halo must keep lines off it."""
        style = f"font-size:{letters(size)};fill:{CSS[color]}" + (";font-weight:600" if bold else "")
        style += ";text-anchor:middle" if middle else ""
        style += ";stroke:none" if inside else ""
        self.parts.append(f'<text x="{x:.5g}" y="{y:.5g}" style="{style}">{html.escape(text)}</text>')

    def prose(self, text: str, bold: bool = False) -> None:
        """Write lines of text below the drawing, as wide as it is."""
        for line in wrap(text, WIDTH, bold=bold):
            self.y += LINE
            self.text(0, self.y - 3, line, INK if bold else SOFT, bold=bold)

    def shape(self, d: str, fill: str = "none", stroke: str = "none", tip: str = "", **more: float) -> None:
        """Draw a path in colours or patterns; `more` are properties of CSS such as opacity or stroke_width."""
        self.parts.append(_path(d, fill, stroke, tip, **more))

    def define(self, what: Any, draw: Callable[[], str]) -> str:
        """Return the id of something drawn once and pointed at often; drawn when it is asked for the first time."""
        if what not in self.ids:
            self.ids[what] = f"@KEY@-{len(self.ids)}"
            self.parts.append(f"<defs>{draw().replace('@ID@', self.ids[what])}</defs>")
        return self.ids[what]

    def pattern(self, what: Any, x: float, y: float, w: float, h: float, inside: str) -> str:
        """Return a pattern of tiles of this size from this corner on, as something to fill a shape with."""
        place = f'x="{x:.5g}" y="{y:.5g}" width="{w:.5g}" height="{h:.5g}" patternUnits="userSpaceOnUse"'
        tile = f'<pattern id="@ID@" {place}>{inside}</pattern>'
        return f"url(#{self.define(what, lambda: tile)})"

    def use(self, name: str, x: float, y: float) -> None:
        """Draw what was defined, at a place."""
        self.parts.append(f'<use href="#{name}" x="{x:.5g}" y="{y:.5g}" style="fill:{CSS[INK]}"/>')

    def svg(self) -> str:
        """Return the finished drawing, with @HEAD@ and @KEY@ still to be filled in."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {self.y + 2:.5g}" role="img" '
            'aria-labelledby="@KEY@-title @KEY@-desc" style="width:100%;max-width:600px">@HEAD@'
        )
        return head + "".join(self.parts) + "</svg>"


def _path(d: str, fill: str = "none", stroke: str = "none", tip: str = "", **more: float) -> str:
    style = f"fill:{CSS.get(fill, fill)}" + (f";stroke:{CSS[stroke]}" if stroke in CSS else "")
    style += "".join(f";{name.replace('_', '-')}:{value:g}" for name, value in more.items())
    inside = f"><title>{html.escape(tip)}</title></path>" if tip else "/>"
    return f'<path d="{d}" style="{style}"{inside}'


def _rect(x: float, y: float, w: float, h: float) -> str:
    return f"M{x:.5g} {y:.5g}h{w:.5g}v{h:.5g}h{-w:.5g}z"


def _card(title: str, card: Card) -> str:
    sheet = _Sheet(title)
    registers_look: Any = {"fill": COLOURS[1], "stroke": COLOURS[1], "fill_opacity": 0.2}
    shared_look: Any = {
        "fill": COLOURS[2],
        "stroke": COLOURS[2],
        "fill_opacity": 0.2,
        "stroke_dasharray": 2.5,
    }
    # One multiprocessor: quarters side by side, in each its lanes above its registers; shared memory below.
    sheet.prose(f"One multiprocessor (SM), of {card.sms}", bold=True)
    top, inside, gap = sheet.y + 3, WIDTH - 12, 5.0
    width = (inside - gap * (card.quarters - 1)) / card.quarters
    lanes, per_kib = card.lanes // card.quarters, 84.0
    across = next(n for n in (8, 4, 2, 1) if lanes % n == 0)
    step, rise = width / across, 6.4
    y_registers = top + 19 + rise * (lanes // across)
    registers = card.registers_kib * per_kib / card.quarters / width
    y_shared, shared = y_registers + registers + 4, card.shared_kib * per_kib / inside
    bottom = y_shared + shared + 6
    for q in range(card.quarters):
        x, middle = 6 + q * (width + gap), 6 + q * (width + gap) + width / 2
        lane = _path(_rect(0.6, 0, step - 1.2, rise - 1.2), COLOURS[0])
        cells = sheet.pattern(("lane", q), x, top + 17, step, rise, lane)
        tip = f"quarter {q + 1} of an SM: {lanes} fp32 lanes"
        sheet.shape(_rect(x, top + 17, width, rise * (lanes // across)), cells, tip=tip)
        sheet.shape(_rect(x, y_registers, width, registers), **registers_look)
        sheet.text(middle, top + 12, f"{lanes} lanes", middle=True)
        sheet.text(middle, y_registers + registers / 2 - 2, "registers", middle=True, inside=True)
        text = f"{short(card.registers_kib / card.quarters)} KiB"
        sheet.text(middle, y_registers + registers / 2 + 10, text, middle=True, inside=True)
    sheet.shape(_rect(6, y_shared, inside, shared), **shared_look)
    text = f"shared memory, up to {short(card.shared_kib)} KiB"
    sheet.text(WIDTH / 2, y_shared + shared / 2 + 3, text, middle=True, inside=True)
    sheet.shape(_rect(0.5, top, WIDTH - 1, bottom - top), stroke=INK, stroke_width=0.9)

    # The chip: every multiprocessor with its registers and its shared memory, the L2 cache between the rows.
    sheet.y = bottom + 16
    sheet.prose(f"The chip: {card.sms} SMs around {short(card.l2_mib)} MiB of L2 cache", bold=True)
    in_sm = card.registers_kib + card.shared_kib
    columns = min(22, card.sms)
    step, rows = WIDTH / columns, -(-card.sms // columns)
    side, upper, first = step - 1.6, (rows + 1) // 2, sheet.y + 3
    on_chip = side * side / in_sm  # units of area for each KiB
    own, l2 = side * card.registers_kib / in_sm, card.l2_mib * 1024 * on_chip / (WIDTH - 1)
    one = _path(_rect(0.8, 0.8, side, own), stroke_width=0.6, **registers_look)
    one += _path(_rect(0.8, 0.8 + own, side, side - own), stroke_width=0.6, **shared_look)
    for row in range(rows):
        y = first + step * row + (l2 + 5 if row >= upper else 0)
        sms = min(columns, card.sms - columns * row)
        sheet.shape(_rect(0, y, step * sms, step), sheet.pattern(("SM", row), 0, y, step, step, one))
    y_l2 = first + step * upper + 2
    sheet.shape(_rect(0.5, y_l2, WIDTH - 1, l2), COLOURS[4], COLOURS[4], fill_opacity=0.14, stroke_width=1.4)
    if l2 > LINE:
        sheet.text(WIDTH / 2, y_l2 + l2 / 2 + 3, "L2 cache", middle=True, inside=True)
    sheet.shape(_rect(0.8, first + 0.8, side, side), stroke=INK, stroke_width=1.6)
    sheet.y = first + step * rows + l2 + 6
    together = card.sms * in_sm + card.l2_mib * 1024
    sheet.prose(
        "The outlined SM is the one above. Equal areas hold equal bytes, "
        f"{short(together / 1024)}\N{NO-BREAK SPACE}MiB in all."
    )

    # The memory beside the chip, on a scale of its own, and everything on the chip once more on that scale.
    sheet.y += 10
    stacks = f" in {card.stacks} stacks" if card.stacks else ""
    sheet.prose(f"Beside the chip: {short(card.hbm_gib)} GiB of HBM{stacks}", bold=True)
    tall, y = 104.0, sheet.y + 3
    beside = (WIDTH - 1) * tall / (card.hbm_gib * 2**20)
    sheet.shape(_rect(0.5, y, WIDTH - 1, tall), COLOURS[5], COLOURS[5], fill_opacity=0.12, stroke_width=1.4)
    for i in range(1, card.stacks):
        sheet.shape(f"M{WIDTH * i / card.stacks:.5g} {y:.5g}v{tall:g}", stroke=COLOURS[5], stroke_width=0.8)
    dot = math.sqrt(together * beside)
    sheet.shape(_rect(8, y + 8, dot, dot), COLOURS[4], tip="everything on the chip, on the scale of this box")
    sheet.y = y + tall + 2
    sheet.prose(
        f"Another scale: an area holds {short(on_chip / beside)} times as many bytes. "
        "The small square is everything on the chip."
    )
    return sheet.svg()


class Plan:
    """Layout of the threads of a launch: blocks in their grid, threads in slices of z, columns and rows.

    Attributes:
        grid, block: extents as (x, y, z).
        blocks: the threads of every block, in the order of x, then y, then z.
        flat: grid and block have one dimension; a block is then drawn in rows of one warp.
    """

    def __init__(self, threads: Sequence[Thread], size: Sequence[int]) -> None:
        self.grid, self.block = (
            tuple(max(getattr(t, part)[axis] for t in threads) + 1 for axis in range(3))
            for part in ("block", "thread")
        )
        self.size = (*reversed(size), *[math.inf] * (3 - len(size)))
        self.flat = self.grid[1:] == self.block[1:] == (1, 1)
        self.blocks: dict[tuple[int, int, int], list[Thread]] = {}
        for t in sorted(threads, key=lambda t: (t.block[::-1], t.thread[::-1])):
            self.blocks.setdefault(t.block, []).append(t)
        self.columns = min(32, self.block[0]) if self.flat else self.block[0]
        self.rows = -(-self.block[0] // self.columns) if self.flat else self.block[1]

    def idle(self, t: Thread) -> bool:
        """Return whether the thread stands past the edge of the problem."""
        return any(t.block[i] * self.block[i] + t.thread[i] >= self.size[i] for i in range(3))

    def cell(self, t: Thread) -> tuple[int, int]:
        """Column and row of a thread in its slice of the block."""
        x, y, _ = t.thread
        return (x % self.columns, x // self.columns) if self.flat else (x, y)

    def name(self, t: Thread) -> str:
        """Return the number of a thread's block, or its place in a grid of more dimensions."""
        axes = 3 if self.grid[2] > 1 else 2
        return str(t.block[0]) if self.flat else f"({', '.join(map(str, t.block[:axes]))})"

    def shown(self, threads: Sequence[Thread]) -> tuple[tuple[int, int, int | None], ...]:
        """Threads of one slice as column, row and rank of their warp, None for an idle one: all that is seen."""
        whole = self.blocks[threads[0].block]
        warps = {warp: rank for rank, warp in enumerate(dict.fromkeys(t.warp for t in whole))}
        return tuple((*self.cell(t), None if self.idle(t) else warps[t.warp]) for t in threads)


NUMBERED = 13.5  # the least size of a cell that has room for a lane's number

# How the warps of a block are told apart: by tint or hatch, and by the colour of it.
_WARPS = ((COLOURS[0], False), (COLOURS[1], True), (COLOURS[1], False), (COLOURS[0], True))


def _slice(sheet: _Sheet, shown: tuple[tuple[int, int, int | None], ...], cell: float) -> str:
    """Return the id of a drawing of one slice of a block: warps by tint and hatch, idle threads crossed out."""
    line, thick = "M-1 5L5 -1M-1 1L1 -1M3 5L5 3", 0.8 if cell < NUMBERED else 0.4  # no noise under numbers
    hatch = {
        c: sheet.pattern(("hatch", c, thick), 0, 0, 4, 4, _path(line, stroke=c, stroke_width=thick))
        for c in COLOURS[:2]
    }
    cross = _path(f"M{0.2 * cell:.4g} {0.2 * cell:.4g}l{0.6 * cell:.4g} {0.6 * cell:.4g}m0 {-0.6 * cell:.4g}"
                  f"l{-0.6 * cell:.4g} {0.6 * cell:.4g}", stroke=SOFT, stroke_width=min(0.8, 0.14 * cell))  # fmt: skip
    rule = _path(f"M0 0H{cell:.5g}M0 0V{cell:.5g}", stroke=PAPER, stroke_width=min(2.0, 0.28 * cell))
    crossed = sheet.pattern(("cross", cell), 0, 0, cell, cell, cross)
    ruled = sheet.pattern(("rule", cell), 0, 0, cell, cell, rule)

    def draw() -> str:
        parts, whole = [], ""
        for warp in dict.fromkeys(w for _, _, w in shown):
            runs = _runs({(column, row) for column, row, w in shown if w == warp})
            d = "".join(_rect(*(n * cell for n in run)) for run in runs)
            if warp is None:
                parts.append(_path(d, crossed))
                continue
            whole += d
            colour, hatched = _WARPS[warp % len(_WARPS)]
            parts.append(_path(d, colour, fill_opacity=0.12 if hatched else 0.34))
            parts += [_path(d, hatch[colour])] if hatched else []
        return f'<g id="@ID@">{"".join(parts)}{_path(whole, ruled)}</g>'

    return sheet.define(("slice", shown, cell), draw)


def _runs(cells: set[tuple[int, int]]) -> list[tuple[int, int, int, int]]:
    """Cells as few rectangles, each as column, row, width and height."""
    open_: dict[tuple[int, int], tuple[int, int]] = {}  # column and width -> first row and height
    done = []
    for row in sorted({r for _, r in cells}):
        columns = sorted(c for c, r in cells if r == row)
        starts = [c for c in columns if c - 1 not in columns]
        ends = [c for c in columns if c + 1 not in columns]
        now = {(a, b - a + 1): (row, 1) for a, b in zip(starts, ends, strict=True)}
        for run, (first, height) in open_.items():
            if run in now and first + height == row:
                now[run] = first, height + 1
            else:
                done.append((run[0], first, run[1], height))
        open_ = now
    return done + [(c, first, width, height) for (c, width), (first, height) in open_.items()]


def _launch(
    title: str, threads: tuple[Thread, ...], size: tuple[int, ...], block: tuple[int, int, int] | None
) -> str:
    plan, sheet = Plan(threads, size), _Sheet(title)
    axes = 1 if plan.flat else 3 if plan.block[2] > 1 else 2
    shape = " × ".join(map(str, plan.block[:axes])) + ("" if axes == 1 else f" = {math.prod(plan.block)}")
    idle = sum(map(plan.idle, threads))
    past = f", {grouped(idle)} idle" if idle else ""
    sheet.prose(
        f"{len(plan.blocks)} blocks of {shape} threads: {grouped(len(threads))} in all{past}", bold=True
    )
    mixed = (own for own in plan.blocks.values() if len({plan.idle(t) for t in own}) == 2)
    chosen = plan.blocks[block] if block else next(mixed, next(iter(plan.blocks.values())))
    _overview(sheet, plan, chosen)
    _magnified(sheet, plan, chosen)
    if idle:
        sheet.prose("Crossed out: a thread past the edge, with nothing to do.")
    return sheet.svg()


def _most(
    count: int, wide: Callable[[int], float], tall: Callable[[int], float], most: float
) -> tuple[int, float]:
    """Return how many of `count` parts to put side by side, and how large their cells become.

    `wide` says how large a cell the width allows for so many side by side, `tall` the height for so many lines.
    """
    sizes = [(n, min(most, wide(n), tall(-(-count // n)))) for n in range(1, count + 1)]
    return max(sizes, key=lambda found: (round(found[1], 6), found[0]))


def _overview(sheet: _Sheet, plan: Plan, chosen: Sequence[Thread]) -> None:
    """Draw all blocks: of a flat grid in lines, of any other in the slices of its z."""
    gx, gy, gz = plan.grid
    gx, gy, count = (1, 1, gx) if plan.flat else (gx, gy, gz * plan.block[2])
    apart, head = (8.0, 0.0) if plan.flat else (16.0, 12.0 if count > 1 else 0.0)

    def fit(above: float) -> tuple[int, float]:
        """Panels side by side and the size of a cell, with so much room above each block for its name."""
        return _most(
            count,
            lambda n: ((WIDTH - 1 - apart * (n - 1)) / n - 4 * (gx - 1)) / gx / plan.columns,
            lambda lines: max(0.2, (190 - lines * (head + gy * (above + 3))) / (lines * gy * plan.rows)),
            11.0,
        )

    def named(own: Sequence[Thread]) -> str:
        return f"{plan.name(own[0])} on SM {own[0].sm}"

    def bare(own: Sequence[Thread]) -> str:
        return plan.name(own[0])

    (per, cell), above = fit(15.0), 15.0
    fitting = (
        label for label in (named, bare)
        if max(text_width(label(own)) for own in plan.blocks.values()) <= plan.columns * cell
    )  # fmt: skip
    name = next(fitting, None)
    if name is None:
        (per, cell), above = fit(1.0), 1.0
    w, h = plan.columns * cell, plan.rows * cell
    wide, high = gx * w + 4 * (gx - 1) + apart, head + gy * (h + above + 3)
    for which, own in plan.blocks.items():
        bx, by, bz = (0, 0, 0) if plan.flat else which
        for z in range(plan.block[2]):
            panel = which[0] if plan.flat else bz * plan.block[2] + z
            x = 0.5 + wide * (panel % per) + bx * (w + 4)
            y = sheet.y + head + high * (panel // per) + above + by * (h + above + 3)
            sheet.use(_slice(sheet, plan.shown([t for t in own if t.thread[2] == z]), cell), x, y)
            thick = {"stroke_width": 1.6 if own is chosen else 0.6}
            sheet.shape(_rect(x, y, w, h), "transparent", INK if own is chosen else SOFT, named(own), **thick)
            if name is not None:
                sheet.text(x, y - 3, name(own))
            if head and bx == by == 0:
                sheet.text(wide * (panel % per), y - above - 3, f"z = {panel}", SOFT)
    sheet.y += high * -(-count // per) + 10


def _magnified(sheet: _Sheet, plan: Plan, own: Sequence[Thread]) -> None:
    """Draw one block with its warps named and, where there is room, the lane of every thread."""
    warps, slices = dict.fromkeys(t.warp for t in own), plan.block[2]
    many = f"{len(warps)} warp{'' if len(warps) == 1 else 's'}"
    sheet.prose(f"Block {plan.name(own[0])} on SM {own[0].sm}: {many}; the numbers are lanes", bold=True)
    left, above = (0.0, 14.0) if slices > 1 else (42.0, 4.0)
    per, cell = _most(
        slices,
        lambda n: (WIDTH - 1 - left - 14 * (n - 1)) / n / plan.columns,
        lambda lines: (310 - lines * above) / (lines * plan.rows),
        17.0,
    )
    numbered = cell >= NUMBERED
    above += 0 if numbered else 11
    wide, high = plan.columns * cell + 14, plan.rows * cell + above + 3
    lanes: dict[Thread, int] = {}
    begun = dict.fromkeys(warps, 0)
    for t in own:
        lanes[t], begun[t.warp] = begun[t.warp], begun[t.warp] + 1
    last = -LINE
    for z in range(slices):
        here = [t for t in own if t.thread[2] == z]
        x, y = left + 0.5 + wide * (z % per), sheet.y + above + high * (z // per)
        sheet.use(_slice(sheet, plan.shown(here), cell), x, y)
        sheet.shape(_rect(x, y, plan.columns * cell, plan.rows * cell), stroke=INK, stroke_width=1.2)
        for row in range(plan.rows):
            line = [t for t in here if plan.cell(t)[1] == row]
            texts = {}
            for t in line:
                above_it = row == 0 and (lanes[t] % 8 == 0 or t is line[-1])
                if above_it if not numbered else not plan.idle(t):
                    texts[(plan.cell(t)[0] + 0.5) * cell] = lanes[t]
            if texts:
                place = y + (row + 0.5) * cell + 3.3 if numbered else y - 3
                sheet.use(_numbers(sheet, texts, INK if numbered else SOFT), x, place)
            heads = [t for t in line if lanes[t] == 0]
            if heads and slices == 1 and y + row * cell - last >= LINE - 1.5:
                last = y + row * cell
                sheet.text(0, last + cell / 2 + 3.3, f"warp {heads[0].warp}")
        if slices > 1:
            found = list(dict.fromkeys(t.warp for t in here))
            names = f"warp {found[0]}" if len(found) == 1 else f"warps {found[0]} to {found[-1]}"
            sheet.text(x, y - (4 if numbered else 15), f"z = {z}: {names}")
    sheet.y += high * -(-slices // per) + 4


def _numbers(sheet: _Sheet, texts: dict[float, int], color: str) -> str:
    """Return the id of a row of numbers, each centred on its x: rows of lanes repeat, so each is written once."""
    inside = "".join(f'<tspan x="{x:.5g}">{number}</tspan>' for x, number in texts.items())
    style = f"font-size:{letters(SMALL)};fill:{CSS[color]};text-anchor:middle"
    return sheet.define(
        ("numbers", inside, color), lambda: f'<text id="@ID@" style="{style}">{inside}</text>'
    )


# --- lanes ------------------------------------------------------------------------------------------------

LOOKS = ("full", "striped", "hatched", "dotted", "empty")


def _look(sheet: _Sheet, look: str, d: str, tip: str = "") -> None:
    """Draw a box in the look of its kind: colour and pattern say the same."""
    inside = {
        "striped": _path("M-1 7L7 -1M-1 1L1 -1M5 7L7 5", stroke=COLOURS[1], stroke_width=1.6),
        "hatched": _path("M-1 -1L5 5M-1 5L5 -1", stroke=INK, stroke_width=0.9),
        "dotted": _path("M1 1h1.6v1.6h-1.6zM4 4h1.6v1.6h-1.6z", COLOURS[2]),
    }
    size = {"striped": 6.0, "hatched": 4.0, "dotted": 6.0}
    if look == "full":
        sheet.shape(d, COLOURS[0], tip=tip)
    elif look == "empty":
        sheet.shape(d, PAPER, SOFT, tip=tip, stroke_width=0.7, stroke_dasharray=2)
    else:
        fill = sheet.pattern(look, 0, 0, size[look], size[look], inside[look])
        stroke = {"striped": COLOURS[1], "hatched": INK, "dotted": COLOURS[2]}[look]
        sheet.shape(d, fill, stroke, tip=tip, stroke_width=0.7)


def _lanes(title: str, groups: tuple[Lanes, ...], kinds: tuple[tuple[str, str], ...], x_label: str) -> str:
    sheet, tall = _Sheet(title), 15.0
    last = max(span.end for group in groups for lane in group.lanes for span in lane.spans)
    scale = (WIDTH - 2) / last
    for group in groups:
        sheet.y += 6
        sheet.prose(group.label, bold=True)
        for lane in group.lanes:
            sheet.prose(lane.label)
            top = sheet.y + 1.5
            for does, begin, end in lane.spans:
                words, look = kinds[does]
                tip = f"{lane.label}: {words}, {short(end - begin)} {x_label}, from {short(begin)}"
                _look(sheet, look, _rect(1 + begin * scale, top, (end - begin) * scale, tall), tip)
            sheet.y = top + tall + 3
    sheet.shape(f"M1 {sheet.y + 3:.5g}h{WIDTH - 2:.5g}", stroke=INK, stroke_width=0.7)
    step = next(n for k in range(13) for n in (10**k, 2 * 10**k, 5 * 10**k) if last / n <= 4)
    for n in range(int(last // step) + 1):
        x = 1 + n * step * scale
        sheet.shape(f"M{x:.5g} {sheet.y + 3:.5g}v4", stroke=INK, stroke_width=0.7)
        label = grouped(n * step)
        left = min(max(x - text_width(label) / 2, 0), WIDTH - text_width(label))
        sheet.text(left, sheet.y + 17, label, SOFT)
    sheet.y += 18
    sheet.prose(x_label)
    sheet.y += 5
    for does, (words, look) in enumerate(kinds):
        if any(span.does == does for group in groups for lane in group.lanes for span in lane.spans):
            _look(sheet, look, _rect(1, sheet.y + 2, 22, 10))
            sheet.text(29, sheet.y + 11, words)
            sheet.y += 16
    return sheet.svg()
