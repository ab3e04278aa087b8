"""Data of a chart: the settings of its directive as plain numbers, the drawing and the table beside it.

`plots` draws and knows no names; here names of a page become series, bars and points.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_kernels.measure.derive import ATTRIBUTES, derive
from course_kernels.measure.machine import Machine
from course_kernels.measure.record_types import Measurement
from course_site.charts import drawings, plots
from course_site.lint.cards import alike
from course_site.lint.values_in_prose import faults_of, unit_of_head
from course_site.pages.block_settings import TEXT, WORD, Shape, one_of
from course_site.pages.blocks import DirectiveError
from course_site.values.data_sheet import NAMES
from course_site.values.values import (
    BadExpression,
    ExpressionError,
    Leaf,
    NotOnThisCard,
    Result,
    Scope,
    UnknownName,
    evaluate,
)

_OF_ALL: dict[str, Shape] = {"title": TEXT, "alt": TEXT, "caption?": TEXT}
_LINES_TO_MEASURE_BY: dict[str, Shape] = {"references?": [{"label": WORD, "value": WORD}]}
_POINT: dict[str, Shape] = {"label": WORD, "name?": TEXT, "intensity?": TEXT, "tflops?": TEXT}
_BARS: list[Shape] = [{"name": TEXT, "label": WORD, "note?": WORD}]
# What each kind of chart takes.
SETTINGS: dict[str, dict[str, Shape]] = {
    "lines": {
        **_OF_ALL, **_LINES_TO_MEASURE_BY, "x": TEXT, "y": TEXT, "x_label?": TEXT, "y_label?": TEXT,
        "x_scale?": one_of("log2", "log", "linear"), "y_scale?": one_of("linear", "log"),
        "series": [{"name": TEXT, "label": WORD, "style?": one_of("line", "reference", "ceiling")}],
    },
    "bars": {**_OF_ALL, **_LINES_TO_MEASURE_BY, "x_label": TEXT, "bars": _BARS},
    "staircase": {**_OF_ALL, **_LINES_TO_MEASURE_BY, "y_label": TEXT, "steps": _BARS},
    "roofline": {**_OF_ALL, "points": [_POINT], "math?": (TEXT, [TEXT])},
    "trace": {
        **_OF_ALL, "trace": TEXT, "x?": TEXT, "x_label?": TEXT,
        "panels": [{"column": TEXT, "label?": WORD, "y_label?": TEXT}],
    },
    "card": {
        **_OF_ALL, "sms": TEXT, "lanes": TEXT, "registers_kib": TEXT, "shared_kib": TEXT, "l2_mib": TEXT,
        "hbm_gib": TEXT, "quarters?": WORD, "stacks?": WORD,
    },
    "lanes": {
        **_OF_ALL, "x_label": TEXT, "groups": [{"label": TEXT, "trace": TEXT, "lanes": [TEXT]}],
        "kinds": [{"label": TEXT, "look": one_of(*drawings.LOOKS)}],
    },
    "launch": {**_OF_ALL, "trace": TEXT, "size?": [WORD], "block?": [WORD]},
}  # fmt: skip
# In a picture: what runs, and what comes from elsewhere.
_NO_PICTURE = re.compile(
    r"<\s*(?:script|foreignObject|iframe|embed|object|animate\w*|set)\b|\son\w+\s*=|javascript:"
    r"|(?:href|src)\s*=\s*[\"'](?!#)[^\"']*|@import|url\(\s*[\"']?(?!#)[^)]*",
    re.IGNORECASE,
)
# Where the settings name what is drawn: of the whole chart, and of a bar, a line, a point, a group.
_DRAWN = ("trace", "sms", "lanes", "registers_kib", "shared_kib", "l2_mib", "hbm_gib")
_DRAWN_OF_ITEM = ("name", "value", "intensity", "tflops", "trace")
ENDS = (0, 1, 100)  # of a scale, which nobody measures


@dataclass(frozen=True)
class Chart:
    """A drawn chart: inline SVG and the folded table of the numbers behind it."""

    svg: str
    table_html: str


def draw(kind: str, settings: dict[str, Any], scope: Scope, key: str) -> Chart:
    """Draw a chart of a page.

    Args:
        kind: one of `SETTINGS`.
        settings: what `SETTINGS` asks for, with title and alt as plain text.
        scope: the names the page can see.
        key: prefix for the ids inside the SVG, unique on the page.
    Raises:
        DirectiveError: numbers that cannot be drawn.
        ExpressionError: an unknown name or a value that cannot be computed.
    """
    try:
        svg, head, rows = globals()[f"_{kind}"](settings, scope, key)
    except (DirectiveError, ExpressionError):
        raise
    except ValueError as error:  # numbers that cannot be drawn
        raise DirectiveError(str(error)) from None
    return Chart(svg, _table(settings["title"], head, rows))


def labels(settings: dict[str, Any]) -> Iterator[str]:
    """Yield every text of a chart that a reader sees, for the lint of typed numbers."""
    for value in settings.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, dict):
                    yield from (str(item[k]) for k in ("label", "note", "y_label") if k in item)


def drawn_beside(settings: dict[str, Any], scope: Scope) -> Iterator[tuple[list[str], str]]:
    """Yield what a chart draws, each with the words that stand beside it.

    The words are its own, and those of the chart if all is of the same cards.
    """
    items = [item for value in settings.values() if isinstance(value, list) for item in value]
    items = [item for item in items if isinstance(item, dict)]
    lone = [str(settings[key]) for key in _DRAWN if key in settings and isinstance(settings[key], str)]
    drawn = [[str(item[key]) for key in _DRAWN_OF_ITEM if key in item] for item in items]
    alone = alike([lone, *drawn], scope)
    whole = " ".join(str(settings.get(key, "")) for key in ("title", "caption", "x_label", "y_label"))
    yield lone, whole
    for item, names in zip(items, drawn, strict=True):
        own = " ".join(str(item[key]) for key in ("label", "note", "y_label") if key in item)
        yield names, f"{own} {whole}" if alone else own


# --- the kinds -----------------------------------------------------------------------------------


def _lines(settings: dict[str, Any], scope: Scope, key: str) -> tuple[str, list[str], list[list[str]]]:
    x_name, y_name = settings["x"], settings["y"]
    series, rows = [], []
    for entry in settings["series"]:
        points = sorted(_points(entry["name"], x_name, y_name, scope))
        x, y, low, high = (tuple(column) for column in zip(*points, strict=True))
        series.append(plots.Series(str(entry["label"]), x, y, low, high, entry.get("style", "line")))
        rows += [
            [str(entry["label"]), _number(a), _number(b), _number(c), _number(d)] for a, b, c, d in points
        ]
    svg = plots.draw_lines(
        settings["title"],
        settings.get("x_label", x_name),
        settings.get("y_label", unit_of(y_name)),
        tuple(series),
        x_scale=settings.get("x_scale", "log2"),
        y_scale=settings.get("y_scale", "linear"),
        references=_references(settings, scope),
        alt=settings["alt"],
        key=key,
    )
    return svg, ["series", x_name, unit_of(y_name), "5 % of samples below", "95 % below"], rows


def _points(pattern: str, x_name: str, y_name: str, scope: Scope) -> Iterator[tuple[float, ...]]:
    for name, leaf in scope.group(pattern):
        if leaf["kind"] in ("samples", "quantity"):
            yield _named_point(name, leaf)
            continue
        if leaf["kind"] != "measurement":
            raise BadExpression(f"{name!r} is neither a measurement nor a number")
        dims = leaf["workload"]["dims"]
        x = dims[x_name] if x_name in dims else scope.resolve(f"{name}.{x_name}").value
        value = scope.resolve(f"{name}.{y_name}").value
        yield float(x), float(value), *_sample_interval(leaf, y_name, scope.sheet_of(name))


def _named_point(name: str, leaf: Leaf) -> tuple[float, ...]:
    """Return a number without a workload stands at the digits its name ends in: `chase.n4096` at 4096."""
    digits = re.search(r"\d+$", name)
    if not digits:
        raise BadExpression(f"{name!r} has no place on the x axis: end its name in a number")
    value, low, high = (
        (leaf["quantiles"][q] for q in ("0.5", "0.05", "0.95"))
        if leaf["kind"] == "samples"
        else [leaf["value"]] * 3
    )
    return float(digits[0]), float(value), float(low), float(high)


def _sample_interval(leaf: Leaf, attribute: str, sheet: Machine | None) -> tuple[float, float]:
    """Return where the middle nine tenths of the samples lie, in the unit of the attribute."""
    measurement = Measurement.from_json(leaf)
    ends = [
        derive(measurement, attribute, leaf["quantiles_us"][quantile], sheet) for quantile in ("0.05", "0.95")
    ]
    return float(min(ends)), float(max(ends))


def _bar_list(
    items: list[dict[str, Any]], label: str, references: tuple[plots.Reference, ...], scope: Scope
) -> tuple[tuple[plots.Bar, ...], list[str], list[list[str]]]:
    """Bars, and the head and the rows of their table: beside each value its share of every reference."""
    bars, rows = [], []
    measures = [
        r for r in references if r.value not in (0, 100)
    ]  # on a scale in percent the value is the share
    for item in items:
        result = _tied(item["name"], label, scope)
        value = float(result.value)
        low, high = (
            (value, value)
            if result.resamples is None
            else map(float, np.quantile(result.resamples, [0.025, 0.975]))
        )
        bars.append(plots.Bar(str(item["label"]), value, low, high, str(item.get("note", ""))))
        shares = [f"{100 * value / r.value:.1f}" for r in measures]
        rows.append([str(item["label"]), _number(value), *shares, _number(low), _number(high)])
    head = [label, *(f"% of {reference.label}" for reference in measures), "interval from", "to"]
    return tuple(bars), head, rows


def _bars(settings: dict[str, Any], scope: Scope, key: str) -> tuple[str, list[str], list[list[str]]]:
    x_label, references = settings["x_label"], _references(settings, scope)
    bars, head, rows = _bar_list(settings["bars"], x_label, references, scope)
    svg = plots.draw_bars(settings["title"], x_label, bars, references, alt=settings["alt"], key=key)
    return svg, ["", *head], rows


def _staircase(settings: dict[str, Any], scope: Scope, key: str) -> tuple[str, list[str], list[list[str]]]:
    y_label, references = settings["y_label"], _references(settings, scope)
    steps, head, rows = _bar_list(settings["steps"], y_label, references, scope)
    svg = plots.draw_staircase(settings["title"], y_label, steps, references, alt=settings["alt"], key=key)
    return svg, ["step", *head], rows


def _roofline(settings: dict[str, Any], scope: Scope, key: str) -> tuple[str, list[str], list[list[str]]]:
    machine = scope.machine
    if machine is None:
        raise NotOnThisCard("a roofline needs the data sheet of the card")
    points, rows = [], []
    for entry in settings["points"]:
        name, label = entry.get("name"), str(entry["label"])
        if name is None and not {"intensity", "tflops"} <= entry.keys():
            raise DirectiveError(f"the point {label!r} needs a `name:`, or both `intensity:` and `tflops:`")
        intensity = float(_tied(entry.get("intensity", f"{name}.intensity"), "FLOP/B", scope).value)
        tflops = float(_tied(entry.get("tflops", f"{name}.tflops"), "TFLOP/s", scope).value)
        points.append(plots.Point(label, intensity, tflops))
        rows.append([label, _number(intensity), _number(tflops)])
    maths = settings.get("math", "bf16")
    maths = [maths] if isinstance(maths, str) else maths
    if unknown := [m for m in maths if m not in machine.peak_tflops]:
        if f"{unknown[0]}_tflops" in NAMES:  # of another card's sheet
            raise NotOnThisCard(f"{unknown[0]} is on no data sheet of this card")
        raise DirectiveError(f"`math:` knows {', '.join(machine.peak_tflops)}, not {unknown[0]}")
    svg = plots.draw_roofline(
        settings["title"],
        tuple(points),
        tuple(plots.Roof(f"{m} peak", machine.peak_tflops[m]) for m in maths),
        (plots.Bandwidth("HBM", machine.bandwidth_gb_per_s),),
        alt=settings["alt"],
        key=key,
    )
    return svg, ["kernel", "FLOP per byte", "TFLOP/s"], rows


def _trace(settings: dict[str, Any], scope: Scope, key: str) -> tuple[str, list[str], list[list[str]]]:
    ((name, leaf),) = scope.group(settings["trace"])
    if leaf["kind"] != "trace":
        raise BadExpression(f"{name!r} is not a trace")
    columns = leaf["columns"]
    x_name = settings.get("x", "t_s")
    shown = [x_name, *(panel["column"] for panel in settings["panels"])]
    for column in shown:
        if column not in columns:
            raise UnknownName(f"unknown value {name}.{column!r}: the trace has {', '.join(columns)}")
    panels = []
    for panel in settings["panels"]:
        y, label = panel["column"], str(panel.get("label", panel["column"]))
        series = plots.Series(label, tuple(columns[x_name]), tuple(columns[y]), None, None, "line")
        panels.append(plots.Panel(panel.get("y_label", label), (series,)))
    svg = plots.draw_trace(
        settings["title"], tuple(panels), settings.get("x_label", "s"), alt=settings["alt"], key=key
    )
    every = max(1, len(columns[x_name]) // 60)
    rows = [[_number(columns[c][i]) for c in shown] for i in range(0, len(columns[x_name]), every)]
    return svg, shown, rows


def _card(settings: dict[str, Any], scope: Scope, key: str) -> tuple[str, list[str], list[list[str]]]:
    """Draw a card by settings sms, lanes (per SM), registers_kib, shared_kib, l2_mib, hbm_gib.

    The settings quarters and stacks may be left out."""
    wanted = ("sms", "lanes", "registers_kib", "shared_kib", "l2_mib", "hbm_gib")
    sms, lanes, registers, shared, l2, hbm = (float(_tied(settings[k], "", scope).value) for k in wanted)
    quarters, stacks = (_value(settings.get(k, n), scope) for k, n in (("quarters", 4), ("stacks", 0)))
    if not (1 <= quarters <= 16 and 0 <= stacks <= 16):
        raise DirectiveError(
            f"a card has 1 to 16 quarters and up to 16 stacks, not {quarters:g} and {stacks:g}"
        )
    card = drawings.Card(round(sms), round(lanes), registers, shared, l2, hbm, round(quarters), round(stacks))
    svg = drawings.draw_card(settings["title"], card, alt=settings["alt"], key=key)
    per_sm = {"fp32 lanes": card.lanes, "registers, KiB": card.registers_kib, "shared, KiB": card.shared_kib}
    rows = [[name, _number(value), _number(card.sms * value)] for name, value in per_sm.items()]
    rows.insert(0, ["SMs", "", _number(card.sms)])
    rows += [["L2 cache, MiB", "", _number(card.l2_mib)], ["HBM, GiB", "", _number(card.hbm_gib)]]
    return svg, ["", "in one SM", "on the whole card"], rows


def _launch(settings: dict[str, Any], scope: Scope, key: str) -> tuple[str, list[str], list[list[str]]]:
    """Draw a launch by settings trace (a recorded trace, one row for each thread), size [N], [H, W] or [D, H, W].

    Block [x, y, z].
    """
    ((name, leaf),) = scope.group(settings["trace"])
    wanted = [*(f"{part}_{axis}" for part in ("block", "thread") for axis in "xyz"), "warp", "sm"]
    if leaf["kind"] != "trace" or not set(wanted) <= set(leaf["columns"]):
        raise BadExpression(f"{name!r} is not a trace of a launch: its columns must be {', '.join(wanted)}")
    threads = tuple(
        drawings.Thread((row[0], row[1], row[2]), (row[3], row[4], row[5]), row[6], row[7])
        for row in zip(*(map(int, leaf["columns"][column]) for column in wanted), strict=True)
    )
    size = tuple(round(_value(n, scope)) for n in settings.get("size", []))
    block = None
    if "block" in settings:
        x, y, z = (round(_value(n, scope)) for n in [*settings["block"], 0, 0][:3])
        block = x, y, z
    svg = drawings.draw_launch(
        settings["title"], threads, size=size, block=block, alt=settings["alt"], key=key
    )
    plan, rows = drawings.Plan(threads, size), []
    for own in plan.blocks.values():
        idle = sum(map(plan.idle, own))
        numbers = (own[0].sm, len({t.warp for t in own}), len(own) - idle, idle)
        rows.append([plan.name(own[0]), *(_number(n) for n in numbers)])
    return svg, ["block", "SM", "warps", "threads at work", "idle"], rows


def _lanes(settings: dict[str, Any], scope: Scope, key: str) -> tuple[str, list[str], list[list[str]]]:
    """Draw lanes by settings groups (each a recorded trace, with a name for each of its lanes).

    Kinds (what `does` counts).
    """
    kinds = tuple((str(kind["label"]), str(kind["look"])) for kind in settings["kinds"])
    groups, rows = [], []
    for group in settings["groups"]:
        ((name, leaf),) = scope.group(group["trace"])
        columns = leaf["columns"] if leaf["kind"] == "trace" else {}
        ends = [next((c for c in columns if c.startswith(end)), "") for end in ("from_", "to_")]
        if not {"lane", "does"} <= set(columns) or not all(ends):
            raise BadExpression(
                f"{name!r} is not a trace of lanes: its columns must be lane, does, from_… and to_…"
            )
        table = list(zip(*(columns[c] for c in ("lane", "does", *ends)), strict=True))
        if table and max(row[0] for row in table) >= len(group["lanes"]):
            raise DirectiveError(
                f"{name!r} has {max(row[0] for row in table) + 1:g} lanes, with names for fewer"
            )
        lanes = tuple(
            drawings.Lane(
                str(label), tuple(drawings.Span(int(d), b, e) for lane, d, b, e in table if lane == number)
            )
            for number, label in enumerate(group["lanes"])
        )
        groups.append(drawings.Lanes(str(group["label"]), lanes))
        rows += [
            [str(group["label"]), lane.label, kinds[span.does][0], _number(span.begin), _number(span.end)]
            for lane in lanes
            for span in lane.spans
            if span.does < len(kinds)
        ]
    svg = drawings.draw_lanes(
        settings["title"], tuple(groups), kinds, settings["x_label"], alt=settings["alt"], key=key
    )
    return svg, ["kernel", "who", "does", f"from, {settings['x_label']}", "to"], rows


def _value(expression: Any, scope: Scope) -> float:
    return float(evaluate(str(expression), scope).value)


def _tied(expression: Any, label: str, scope: Scope) -> Result:
    """Return a value that is drawn, in the unit that the label of its axis says; never one that somebody typed."""
    for fault in faults_of(str(expression), "", unit_of_head(label), scope):
        raise BadExpression(fault)
    return evaluate(str(expression), scope)


def _references(settings: dict[str, Any], scope: Scope) -> tuple[Any, ...]:
    """Return lines to measure by: recorded data or the data sheet, or the ends of a scale."""
    label = str(settings.get("x_label" if "bars" in settings else "y_label", ""))
    return tuple(
        plots.Reference(str(entry["label"]), float(value))
        if (value := entry["value"]) in ENDS
        else plots.Reference(str(entry["label"]), float(_tied(value, label, scope).value))
        for entry in settings.get("references", [])
    )


# --- the table beside a chart, the pictures of a page ----------------------------------------------


def unit_of(attribute: str) -> str:
    """Return the unit of a measurement's attribute, for an axis or a table head."""
    return ATTRIBUTES[attribute][0] if attribute in ATTRIBUTES else attribute


def _number(value: float) -> str:
    """Format to four significant figures, a whole number in full, never in scientific notation."""
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 1e4 else f"{value:,.4g}"


def _table(title: str, head: list[str], rows: list[list[str]]) -> str:
    words = {0} | {i for row in rows for i, text in enumerate(row) if re.search(r"[^\W\d_]", text)}
    align = ["" if i in words else " class=num" for i in range(len(head))]
    cells = "".join(
        f"<th{align[i]}>{html.escape(text)}</th>" if text else "<td></td>" for i, text in enumerate(head)
    )
    body = "".join(
        "<tr>" + "".join(f"<td{align[i]}>{html.escape(text)}</td>" for i, text in enumerate(row)) + "</tr>"
        for row in rows
    )
    return (
        '<details class="data"><summary>The numbers behind this chart</summary>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="Numbers of the chart: {html.escape(title)}">'
        f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div></details>"
    )


def inline_svg(svg: str, alt: str, key: str) -> str:
    """Return an SVG picture made ready to stand inside a page: its ids unique, its alternative text set.

    Raises:
        ValueError: it is no SVG, or it runs or fetches something.
    """
    if found := _NO_PICTURE.search(svg):
        raise ValueError(f"a picture has no {found[0].strip()!r}")
    svg = re.sub(r"<\?xml.*?\?>|<!--.*?-->|<!DOCTYPE.*?>", "", svg, flags=re.DOTALL).strip()
    ids = re.findall(r'\bid="([^"]+)"', svg)
    for name in set(ids):
        svg = re.sub(rf'\bid="{re.escape(name)}"', f'id="{key}-{name}"', svg)
        svg = re.sub(rf'(url\(#|href="#){re.escape(name)}(?=[)"])', rf"\g<1>{key}-{name}", svg)
    if not svg.startswith("<svg"):
        raise ValueError("it is not an SVG picture")
    head, rest = svg.split(">", 1)
    head = re.sub(r'\s(?:aria-label|role)="[^"]*"', "", head)
    return f'{head} role="img" aria-label="{html.escape(alt)}">{rest}'
