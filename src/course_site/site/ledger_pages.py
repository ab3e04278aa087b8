"""The ledger for people: an index, and for every page with numbers of its own a page with a row for each.

Nothing here is measured or worked out: `ledger.py` has the rows, `recorded_expressions.py` what the pages' code says of
them.
"""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course_site.pages.page import Page
from course_site.pages.urls import site_uri
from course_site.site.course import Course
from course_site.site.ledger import date_words, number_words
from course_site.site.recorded_expressions import Origin, Origins
from course_site.site.render.rendered import Rendered

TOKEN = "<!-- ledger -->"  # on the index; replaced once every page has been rendered
FOLDER = "numbers"
CHUNK = 100  # rows of a group that the browser lays out only when it comes into view

# What a number is, by how it was recorded. A cell that says "device" asked the card or its driver.
SORTS = {
    "measurement": "measured", "timed": "measured", "trace": "measured",
    "counted": "counted", "device": "counted",
    "computed": "computed", "derived": "computed",
    "given": "given",
}  # fmt: skip
ORDER = ("measured", "counted", "computed", "given")
_SHEET = re.compile(r"\w+\.(?:bandwidth_gb_per_s|peak_tflops\[.*\]|l2_bytes)")  # of `machine.Machine`

Row = dict[str, Any]


@dataclass(frozen=True)
class Ledger:
    """The index as HTML, and the chapters by their place in the site's source space."""

    index: str
    chapters: dict[str, Rendered]


def ledger_of(course: Course, rows: Sequence[Row], order: Sequence[str] = ()) -> Ledger:
    """Index and chapters; values that prose shows and texts stand in ledger.json only.

    Args:
        order: addresses of pages as the navigation has them: so the index lists them, those of no place last.
    """
    chapters, lines = {}, []
    turn = {uri: number for number, uri in enumerate(order)}
    for page in sorted(course.pages, key=lambda page: turn.get(site_uri(page.path.as_posix()), len(turn))):
        path = page.path.as_posix()
        mine = [row for row in rows if row["page"] == path and row["kind"] not in ("shown", "text")]
        if mine:
            known = Origins(page)
            origins = {row["name"]: known.of(row["name"].partition(".")[2]) for row in mine}
            sorts = [sort_of(row, origins[row["name"]]) for row in mine]
            words = [_words(course, page, row, origins[row["name"]]) for row in mine]
            table = table_html(mine, sorts, words) + _script(course, f"{FOLDER}/{page.id}.html")
            chapters[f"{FOLDER}/{page.id}.md"] = _chapter(page, mine, table)
            lines.append(_line(page, mine[0], sorts))
    return Ledger(_index(lines) + _script(course, "numbers.html") if lines else "", chapters)


def _script(course: Course, uri: str) -> str:
    """Return the element with the script of a page of the ledger, which all editions share."""
    folder = posixpath.dirname(course.here.address(uri)) or "."
    return f'<script src="{posixpath.relpath("assets/js/ledger.js", folder)}"></script>'


def sort_of(row: Row, origin: Origin | None = None) -> str:
    """Kind of a row's number, one of `ORDER`."""
    if row["kind"] == "computed" and origin and origin.typed:
        return "given"  # nothing was worked out: a number stands in the code
    if row["kind"] in ("counted", "device") and ("n" in row or row["unit"] == "s"):
        return "measured"  # many readings of a sensor or of a clock on the card, or a wait
    return SORTS[row["kind"]]


# --- the index -----------------------------------------------------------------------------------


def _line(page: Page, first: Row, sorts: Sequence[str]) -> str:
    counts = "".join(f"<td class=num>{sorts.count(sort) or ''}</td>" for sort in ORDER)
    when = date_words(first["date"]) if first["gpu"] else "with the site"
    return (
        f'<tr id="of-{page.id}"><th scope="row"><a href="{FOLDER}/{page.id}.html">{html.escape(page.title)}</a></th>'
        f"<td class=num>{len(sorts)}</td>{counts}<td>{when}</td><td>{html.escape(first['gpu'] or 'no card')}</td></tr>"
    )


def _index(lines: Sequence[str]) -> str:
    heads = "".join(f"<th class=num>{word}</th>" for word in ("numbers", *ORDER))
    return (
        '<div class="scroll chapters" tabindex="0" role="region" aria-label="The pages with numbers">'
        f"<table><thead><tr><th>page</th>{heads}<th>when</th><th>card</th></tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


# --- a chapter -----------------------------------------------------------------------------------


def _chapter(page: Page, rows: Sequence[Row], table: str) -> Rendered:
    home = posixpath.splitext(posixpath.relpath(site_uri(page.path.as_posix()), FOLDER))[0] + ".html"
    title = f"The numbers of “{page.title}”"
    # Not for the search: thousands of rows would bury the page that tells what they mean.
    about = f"Every number of “{page.title}”: value, spread, card, date, and the command that makes it again."
    meta = f"title: {title!r}\ndescription: {about!r}\nsearch: {{exclude: true}}\nhide: [toc]\n"
    head = f"---\n{meta}---\n\n# {title}\n\nledgertoken\n"
    above = (
        f'<p>They are on <a href="{home}">{html.escape(page.title)}</a>. What the words mean, and the numbers of all '
        f'other pages: <a href="../numbers.html#what-the-words-mean">the ledger</a>.</p><p>{_made(page, rows[0])}</p>'
    )
    return Rendered(head, {"ledgertoken": above + table})


def _made(page: Page, row: Row) -> str:
    """Provenance of a page's values, above their table."""
    if row["gpu"] is None:
        return "Nothing was measured for this page: worked out when the site was built."
    return (
        f"{html.escape(row['gpu'])}, driver {html.escape(str(row['driver']))}, "
        f"{date_words(row['date'])}, commit <code>{html.escape(str(row['commit'])[:12])}</code>. "
        f"The whole page again: <code>nox -s docs -- --page {page.path}</code>"
    )


def table_html(rows: Sequence[Row], sorts: Sequence[str], words: Sequence[str]) -> str:
    """Return the table of one chapter with its filter, which a script brings to life.

    Args:
        rows: as `ledger.entries` has them.
        sorts: what each number is, see `sort_of`.
        words: HTML for each, how its number came to be.
    """
    lines = list(map(_row, rows, sorts, words))
    cut = [lines[start : start + CHUNK] for start in range(0, len(lines), CHUNK)]
    groups = "".join(f'<tbody style="--rows:{len(group)}">{"".join(group)}</tbody>' for group in cut)
    return (
        '<div class="filter" role="search" aria-label="Filter" hidden><label for="filter">Filter</label>'
        '<input type="search" id="filter" autocomplete="off" spellcheck="false" '
        'placeholder="name, value, kernel, sort">'
        f'<output for="filter" aria-live="polite">{len(rows)} rows</output></div>'
        '<table class="ledger"><thead><tr><th scope="col">name</th><th scope="col">value</th><th scope="col">n</th>'
        '<th scope="col">spread</th><th scope="col">it is</th><th scope="col">how it came to be</th></tr></thead>'
        f"{groups}</table>"
    )


def _row(row: Row, sort: str, words: str) -> str:
    spread = row.get("spread")
    name, value = html.escape(row["name"]), html.escape(number_words(row["value"], row["unit"]))
    if row["kind"] == "measurement":
        command = html.escape(row["command"])
        words += (
            f' <button class="copy" data-clipboard-text="{command}" aria-label="Copy the command for {name}">copy'
            f"</button><code>{command}</code>"
        )
    return (
        f'<tr id="{name}"><th scope="row">{name}</th><td>{value}</td><td>{row.get("n", "")}</td>'
        f'<td>{"" if spread is None else f"{spread:.1%}"}</td><td class="{sort}">{sort}</td><td>{words}</td></tr>'
    )


# --- how a number came to be ---------------------------------------------------------------------


def _words(course: Course, page: Page, row: Row, origin: Origin | None) -> str:
    kind, sort = row["kind"], sort_of(row, origin)
    code = f"<code>{html.escape(origin.code)}</code>" if origin else "in the code of the page"
    if kind == "measurement":
        return f"<span>{html.escape(' · '.join([row['kernel'], row['workload'], *_state(row)]))}</span>"
    if kind == "trace":
        return f"<span>over time: {html.escape(', '.join(row['columns']))}</span>"
    if kind == "derived":
        what = f"{html.escape(row['what'])}: " if row["what"] else ""
        return f"<span>{what}<code>{html.escape(row['expression'])}</code></span>"
    if "kernel" in row:
        return f"<span>bytes read from and written to device memory · {html.escape(row['kernel'])}</span>"
    if sort == "given":
        return f"<span>{_source(course, page, origin)}{f': {code}' if origin else ''}</span>"
    told = {"timed": "timed: ", "device": "told by the card or its driver: "}
    if sort == "measured" and kind != "timed":
        told = {kind: "read off the card: "} if "n" in row else {}
    return f"<span>{told.get(kind, '')}{code}</span>"


def _state(row: Row) -> list[str]:
    """Return the card while a kernel ran, and what spoils the timing."""
    clocks = row["clocks"]
    told = [
        f"{clocks[key]:.0f} {unit}"
        for key, unit in (("sm_mhz", "MHz"), ("power_w", "W"))
        if clocks.get(key) is not None
    ]
    host = [f"{row['host_bound']} of {row['n']} timed the host"] if row.get("host_bound") else []
    state = ", ".join([*told, *clocks.get("throttle", []), *host])
    return [state] if state else []


def _source(course: Course, page: Page, origin: Origin | None) -> str:
    """Origin of a given number: a data sheet, or whoever wrote the page, with the sources that stand above the cell."""
    machine = course.machine(page)
    sheet = machine is not None and origin is not None and _SHEET.fullmatch(origin.code)
    keys: Sequence[str] = [machine.source] if machine and sheet else origin.cites if origin else []
    links = ", ".join(_link(course.sources, key) for key in keys if key in course.sources)
    if sheet:
        return f"the data sheet of the card, {links}" if links else "the data sheet of the card"
    return f"typed in the page, beside {links}" if links else "typed in the page"


def _link(sources: Mapping[str, Any], key: str) -> str:
    entry = sources[key]
    return f'<a href="{html.escape(entry.url)}">{html.escape(entry.title)}</a>, {entry.year}'
