"""The ledger: every value of the site with where it came from and the command that makes it again."""

from __future__ import annotations

import html
import json
import statistics
from typing import Any, NamedTuple

from course_site.pages.page import Page
from course_site.records.record import Record
from course_site.records.record_checks import is_lost
from course_site.site.course import Course
from course_site.site.editions import across
from course_site.values.uncertainty import CARDS_ENOUGH, SHORT_US, UNSEEN_COMMON
from course_site.values.values import ExpressionError, Result, evaluate, parse, walk_leaves

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def date_words(iso: str) -> str:
    """ "2026-11-21T09:30:00Z" as "21 Nov 2026"."""
    year, month, day = iso[:10].split("-")
    return f"{int(day)} {MONTHS[int(month) - 1]} {year}"


def duration_words(seconds: float) -> str:
    """Seconds as "42 s" or "3 min 5 s"."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def number_words(value: Any, unit: str) -> str:
    """Return a value with its unit, to four significant figures, never in scientific notation."""
    if isinstance(value, float):
        text = f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:,.4g}"
    else:
        text = f"{value:,}" if isinstance(value, int) else str(value)
    return text if unit in ("", "1") else f"{text} {unit}"


# --- what stands on a page -----------------------------------------------------------------------


def stamp_html(course: Course, page: Page, record: Record) -> str:
    """Return the small line under a page's title, with the rest of the provenance one click away."""
    if not record.measured:
        return (
            '<div class="stamp">Nothing was measured for this page: worked out when the site was built</div>'
        )
    p = record.meta["provenance"]
    edition = record.edition
    line = (
        f"Measured on {p['gpu']} · {date_words(p['date'])} · CUDA {edition['cuda']} · "
        f"PyTorch {edition['torch']} · Triton {edition['triton']} · ran {duration_words(record.seconds)}"
    )
    commit = str(p["commit"])[:12] + (" plus uncommitted changes" if p.get("dirty") else "")
    if is_lost(course.root, str(p["commit"])):
        commit += " (not in this history; every file that ran is in it)"
    rows = {
        "GPU": p["gpu"],
        "Driver": p["driver"],
        "CUDA, PyTorch, Triton, Python": f"{p['cuda']}, {p['torch']}, {p['triton']}, {p['python']}",
        "Date": p["date"],
        "Commit": commit,
        "Code cells": f"{len(record.meta['cells'])}, the slowest {duration_words(max(record.meta['seconds']))}",
        "Files this page depends on": str(len(record.meta["manifest"])),
        "Measure it again": f"nox -s docs -- --page {page.path}",
    }
    items = "".join(f"<dt>{html.escape(k)}</dt><dd>{_code(k, str(v))}</dd>" for k, v in rows.items())
    return (
        f'<div class="stamp"><details><summary>{html.escape(line)}</summary><dl>{items}</dl></details></div>'
    )


def _code(key: str, value: str) -> str:
    text = html.escape(value)
    return f"<code>{text}</code>" if key == "Measure it again" else text


class Home(NamedTuple):
    """The place of a recorded or defined value: its edition, its page, and its name there without the attribute."""

    course: Course
    page: Page
    name: str

    @property
    def record(self) -> Record | None:
        """The record of its page: what was measured, or worked out."""
        return self.course.records.get(self.page.id)


def home_of(course: Course, page: Page, name: str) -> Home | None:
    """Return where a name of an expression lives; on the page of several cards it may be in another edition."""
    scope = course.scopes[page.id]
    parts = name.split(".")
    if name in scope.defines:
        return Home(course, page, name)
    if parts[0] in scope.names:
        node: Any = scope.names
        for depth, part in enumerate(parts):
            node = node[part]
            if "kind" in node:
                return Home(course, page, ".".join(parts[: depth + 1]))
        return None
    edition = next((one for one in course.editions if one.prefix == parts[0]), None)
    if edition is not None:
        course, parts = course.of(edition), parts[1:]
    if parts[0] in course.scopes and len(parts) > 1:
        return home_of(course, course.page(parts[0]), ".".join(parts[1:]))
    return None


def anchor(course: Course, page: Page, result: Result) -> str:
    """Address of the ledger's row of the first name an expression uses, from its edition's root; "" for a text.

    For instance "numbers/w1.html#w1.flash.n4096".
    """
    if isinstance(result.value, str):
        return ""
    home = _with_a_row(course, page, result.names[0]) if result.names else None
    if home is None:
        return ""
    row = address(f"{home.page.id}.{home.name}")
    return row if home.course is course else across(course.here, "", home.course.here, row)


def _with_a_row(course: Course, page: Page, name: str) -> Home | None:
    """Return where a name lives; what a page without a list of its own defines lives where its first part does."""
    home = home_of(course, page, name)
    if home is None or home.record is not None or name not in course.scopes[page.id].defines:
        return home
    parts = parse(course.scopes[page.id].defines[name].expression).names
    return _with_a_row(course, page, parts[0]) if parts else None


def address(row: str) -> str:
    """Address of a row in the site, e.g. "numbers/w1.html#w1.flash.n4096"; the name alone says it."""
    return f"numbers/{row.partition('.')[0]}.html#{row}"


# How a quantity came about, where no clock and no counter had a part in it.
NOT_MEASURED = {"computed": "worked out by hand", "given": "given, by a source or by the page"}


def about(course: Course, page: Page, expression: str, result: Result) -> str:
    """Tooltip of a value: its expression, how many samples, its spread, the card and the date."""
    home = home_of(course, page, result.names[0]) if result.names else None
    if not home:
        return expression
    record = home.record
    parts = [expression]
    leaf = course.scopes[page.id].resolve(result.names[0]).leaf
    if leaf and leaf["kind"] in ("measurement", "samples") and len(result.names) == 1:
        parts.append(f"median of {leaf['n']}")
    if result.spread is not None:
        parts.append(f"spread {result.spread:.1%}")
    how = leaf.get("how") if leaf and len(result.names) == 1 else None
    if how in NOT_MEASURED:
        parts.append(NOT_MEASURED[how])
    elif record and record.measured:
        parts += [record.edition["gpu"], date_words(record.meta["provenance"]["date"])]
    return " · ".join(parts)


# --- the ledger ----------------------------------------------------------------------------------


def entries(course: Course, shown: dict[str, dict[str, str]]) -> list[dict[str, Any]]:
    """Return values of the site, page by page.

    Args:
        shown: for every page id, the expressions its prose shows and the text they became.
    Returns:
        dicts with name, value, unit, n, median, spread, low, high, gpu, driver, clocks, date, commit, page and
        the command that makes it again.
    """
    rows: list[dict[str, Any]] = []
    for page in course.pages:
        record = course.records.get(page.id)
        if record and course.has_numbers(page.id):
            common = _common(page, record)
            leaves = list(walk_leaves(record.names))
            company = _company(leaves)
            for name, leaf in leaves:
                row = _leaf_entry(f"{page.id}.{name}", leaf, common, company)
                spread = _leaf_spread(course, page, name, leaf)
                rows.append(row if spread is None else {**row, "spread": round(spread, 5)})
        for name, define in course.scopes[page.id].defines.items():
            rows += _define_entry(course, page, name, define.unit, define.what)
        rows += _shown_entries(course, page, shown.get(page.id, {}))
    return rows


def _leaf_spread(course: Course, page: Page, name: str, leaf: dict[str, Any]) -> float | None:
    """Return the spread of a recorded value; None for what does not differ from run to run."""
    scope = course.scopes[page.id]
    if leaf["kind"] in ("measurement", "samples"):
        return float(scope.resolve(f"{name}.spread").value)
    if leaf["kind"] not in ("quantity", "counted"):
        return None
    found = scope.resolve(name if leaf["kind"] == "quantity" else f"{name}.bytes")
    return found.spread


def _common(page: Page, record: Record) -> dict[str, Any]:
    p = record.meta["provenance"]
    return {
        "gpu": p["gpu"],
        "driver": p["driver"],
        "cuda": p["cuda"],
        "torch": p["torch"],
        "triton": p["triton"],
        "card": p.get("uuid"),
        "date": p["date"],
        "commit": p["commit"],
        "dirty": p.get("dirty", False),
        "page": page.path.as_posix(),
        "command": f"nox -s docs -- --page {page.path}" if record.measured else "nox -s docs",
    }


def _company(leaves: list[tuple[str, dict[str, Any]]]) -> dict[str, list[str]]:
    """Return the kernels timed in turns, by their group: one that runs alone finds the card in another state."""
    groups: dict[str, list[str]] = {}
    for _, leaf in leaves:
        if leaf["kind"] == "measurement":
            groups.setdefault(leaf["group"], []).append(leaf["kernel"])
    return groups


def _leaf_entry(
    name: str, leaf: dict[str, Any], common: dict[str, Any], company: dict[str, list[str]]
) -> dict[str, Any]:
    kind = leaf["kind"]
    if kind == "measurement":
        q = leaf["quantiles_us"]
        kernels = dict.fromkeys([leaf["kernel"], *company[leaf["group"]]])
        workload = ",".join(
            [f"dtype={leaf['workload']['dtype']}"]
            + [f"{key}={int(value)}" for key, value in leaf["workload"]["dims"].items()]
        )
        command = f"PYTHONPATH=src python -m course_kernels.measure {' '.join(kernels)} --workload {workload}"
        if not all("/" in kernel for kernel in kernels):  # made by a cell of the page; no file has that name
            command = common["command"]
        return {
            "name": name, "kind": kind, "value": q["0.5"], "unit": "µs", "n": leaf["n"], "median": q["0.5"],
            "low": q["0.05"], "high": q["0.95"],
            "kernel": leaf["kernel"], "workload": workload, "error": leaf["error"],
            "blocks": leaf["blocks_us"], "host_us": leaf["host_us"]["0.5"], "host_bound": leaf["host_bound"],
            "seed": leaf["seed"], "every": leaf["every"], "clocks": _while_it_ran(leaf["running"]),
            **common,
            "command": command,
        }  # fmt: skip
    if kind == "samples":
        q = leaf["quantiles"]
        return {
            "name": name, "kind": leaf["how"], "value": q["0.5"], "unit": leaf["unit"], "n": leaf["n"],
            "median": q["0.5"], "low": q["0.05"], "high": q["0.95"], **common,
        }  # fmt: skip
    if kind == "quantity":
        return {"name": name, "kind": leaf["how"], "value": leaf["value"], "unit": leaf["unit"], **common}
    if kind == "counted":
        total = leaf["read_bytes"] + leaf["write_bytes"]
        return {
            "name": name,
            "kind": "counted",
            "value": total,
            "unit": "B",
            "kernel": leaf["kernel"],
            **common,
        }
    if kind == "trace":
        columns = leaf["columns"]
        points = len(next(iter(columns.values())))
        return {
            "name": name,
            "kind": "trace",
            "value": points,
            "unit": "points",
            "columns": list(columns),
            **common,
        }
    return {"name": name, "kind": kind, "value": leaf["value"], "unit": "", **common}


def _while_it_ran(readings: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the middle one of the readings taken while a competitor ran.

    Every reason its clocks were held back comes with it.
    """
    state: dict[str, Any] = {"readings": len(readings)}
    for key in ("sm_mhz", "memory_mhz", "power_w", "temperature_c"):
        found = [reading[key] for reading in readings if reading.get(key) is not None]
        state[key] = round(statistics.median(found), 1) if found else None
    state["throttle"] = sorted({word for reading in readings for word in reading.get("throttle", [])})
    return state


def _define_entry(course: Course, page: Page, name: str, unit: str, what: str) -> list[dict[str, Any]]:
    if not course.has_numbers(page.id):
        return []
    try:
        result = evaluate(name, course.scopes[page.id])
    except ExpressionError:
        return []
    expression = course.scopes[page.id].defines[name].expression
    return [
        {
            "name": f"{page.id}.{name}", "kind": "derived", "value": _plain(result.value), "unit": unit,
            "spread": None if result.spread is None else round(result.spread, 5), "what": what,
            "expression": expression, **_common(page, course.records[page.id]),
        }
    ]  # fmt: skip


def _shown_entries(course: Course, page: Page, shown: dict[str, str]) -> list[dict[str, Any]]:
    rows = []
    for expression, text in shown.items():
        result = evaluate(expression, course.scopes[page.id])
        home = home_of(course, page, result.names[0]) if result.names else None
        record = home.record if home else None
        if record is None or home is None:
            continue
        rows.append(
            {
                "name": f"{page.id}: {expression}", "kind": "shown", "value": _plain(result.value), "text": text,
                "unit": result.unit, "spread": None if result.spread is None else round(result.spread, 5),
                **_common(home.page, record), "shown_on": page.path.as_posix(),
            }
        )  # fmt: skip
    return rows


def _plain(value: Any) -> Any:
    return round(value, 9) if isinstance(value, float) else value


def ledger_json(rows: list[dict[str, Any]]) -> str:
    """Return the ledger as a file for programs."""
    return json.dumps({"values": rows}, indent=1, ensure_ascii=False) + "\n"


def moved_markdown(course: Course) -> str:
    """Page on runs made apart: what is known of them, and what left its stated interval, newest first."""
    return f"{_between_words(course)}\n\n{_moved_words(course)}"


def _between_words(course: Course) -> str:
    terms = course.edition.between
    if not terms.runs:
        return (
            "No page has been measured twice yet, so every interval allows for a card that nobody has seen."
        )
    timing, short = terms.of("timing"), terms.of("short timing")
    cards = f", on {terms.cards} cards at least" if terms.cards > 1 else ""
    return (
        f"Learnt from {terms.runs} runs of pages that were measured more than once{cards}: from run to run the timings "
        f"of a page move together by {timing[0]:.1%}, and each of them by a further {timing[1]:.1%}. Below "
        f"{SHORT_US:.0f} microseconds these are {short[0]:.1%} and {short[1]:.1%}. They are standard deviations; every "
        f"interval on the site includes them, beside what the blocks of its own run say. Until "
        f"{CARDS_ENOUGH} cards have been compared, the first is taken as {UNSEEN_COMMON:.0%} at least."
    )


def _moved_words(course: Course) -> str:
    moved = course.edition.moves
    if not moved:
        return "Nothing yet: every page has been measured once, or nothing left the interval that was stated for it."
    lines = ["| date | value | before | after | change |", "| --- | --- | ---: | ---: | ---: |"]
    for entry in reversed(moved[-50:]):
        change = f"{entry['after'] / entry['before'] - 1:+.1%}" if entry["before"] else ""
        lines.append(
            f"| {date_words(entry['date'])} | {entry['name']} | {entry['before']:.4g} {entry['unit']} "
            f"| {entry['after']:.4g} {entry['unit']} | {change} |"
        )
    return "\n".join(lines)
