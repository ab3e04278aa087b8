"""Blocks of the year: its map, its weeks and its calendar on the front page; and what stands on the page of a week."""

from __future__ import annotations

import html
import posixpath
import re

from course_site.charts.year_map import Box, draw_year
from course_site.pages.block_settings import TEXT, read
from course_site.pages.blocks import Block, DirectiveError
from course_site.pages.needs import in_words
from course_site.pages.page import Page
from course_site.pages.urls import address_from, site_uri
from course_site.sessions import year as years
from course_site.sessions.calendar_form import calendar_data, calendar_form
from course_site.sessions.cohort_page import CALENDAR_SCRIPT
from course_site.sessions.run_view import embedded
from course_site.sessions.year import Week, Year
from course_site.site.render.home import blocks_of, list_of_stops
from course_site.site.render.writer import Writer, details, div

_NAME = re.compile(r"week_(\d\d)")


def year(writer: Writer, block: Block) -> str:
    """Return the map of the year, its weeks as a list, or the form for its calendar."""
    shown = {"map": _map, "weeks": _weeks, "calendar": _calendar}
    if block.argument not in shown:
        raise DirectiveError(f"write one of {', '.join(f'`/// year | {name}`' for name in shown)}")
    found = writer.course.maps.year
    if not found.parts:
        raise DirectiveError(f"there is no {years.FILE}")
    made = shown[block.argument](writer, found)
    return made if block.argument == "weeks" else writer.slot(made)  # MkDocs looks for the weeks' anchors


def _address(writer: Writer, path: str) -> str:
    """Return the address of a page, "" while it is to come."""
    pages = {page.path.as_posix(): page for page in writer.course.pages}
    return address_from(writer.page.path.as_posix(), pages)(path) or ""


def _map(writer: Writer, found: Year) -> str:
    parts = [
        (
            f"{number} · {part.name}",
            [Box(week.number, week.box, week.needs, _address(writer, week.page)) for week in part.weeks],
        )
        for number, part in enumerate(found.parts, 1)
    ]
    alt = (
        f"{len(found.weeks)} weeks in {len(found.parts)} columns, one for each part of the year; "
        "arrows lead from a week to those that need it. The list below says the same in words."
    )
    words = (
        "An arrow leads from a week to one that needs it. One with a broken frame is to come: the list says where its "
        "subject is taught meanwhile."
    )
    style, script = writer.shared("assets/css/year.css"), writer.shared("assets/js/year.js")
    return (
        f'<link rel="stylesheet" href="{style}"><figure class="year-map">'
        f"{draw_year(parts, alt)}"
        f"<figcaption>{words}</figcaption></figure>"
        f'<script defer src="{script}"></script>'
    )


def _weeks(writer: Writer, found: Year) -> str:
    """Return the list of all weeks, with the marks that home's script looks for."""
    lists = "".join(
        f'<div class="half"><h3>{number} · {html.escape(part.name)}</h3><p>{html.escape(part.goal)}</p>'
        f"<ol>{''.join(_of_list(writer, week) for week in part.weeks)}</ol></div>"
        for number, part in enumerate(found.parts, 1)
    )
    done = sum(bool(_address(writer, week.page)) for week in found.weeks)
    counted = (
        f"<p>All that is to be read and done adds up to {_hours(found.hours)}, "
        f'<span class="value">{found.hours / len(found.weeks):.1f}</span> a week. '
        f"Capstones come on top: nobody knows how long you will like them. {done} of the {len(found.weeks)} weeks "
        "have their page.</p>"
    )
    return counted + list_of_stops(writer, lists)


def _of_list(writer: Writer, week: Week) -> str:
    title, address = f"Week {week.number}: {html.escape(week.title)}", _address(writer, week.page)
    takes = f'<span class="takes">{_hours(week.hours)}</span>' if week.hours else ""
    before = f" After {_named_weeks(week.needs)}." if week.needs else ""
    if not address:
        lesson = _lesson(writer, week)
        return (
            f'<li class="stop to-come" id="week-{week.number}"><b>{title}</b> {takes or ""} '
            f'<span class="takes">to come</span><p>{html.escape(" · ".join(week.ideas))}.{before}{lesson}</p></li>'
        )
    page = next(page for page in writer.course.pages if page.path.as_posix() == week.page)
    return (
        f'<li class="stop" id="week-{week.number}" data-page="{html.escape(address)}" '
        f'data-predictions="{_predictions(page)}" data-labs=""><a href="{html.escape(address)}">{title}</a> {takes}'
        f"<p>{html.escape(page.description)}{before}</p></li>"
    )


def _lesson(writer: Writer, week: Week) -> str:
    """Return where a week that is to come is taught meanwhile."""
    address = _address(writer, week.lesson) if week.lesson else ""
    if not address:
        return ""
    title = next(page.title for page in writer.course.pages if page.path.as_posix() == week.lesson)
    return f' Until then: <a href="{html.escape(address)}">{html.escape(title)}</a>.'


def _predictions(page: Page) -> int:
    cells = (cell.source for cell in page.cells if cell.kind == "markdown")
    return sum(block.kind == "predict" for source in cells for block in blocks_of(source))


def _calendar(writer: Writer, found: Year) -> str:
    pages = {page.path.as_posix(): page for page in writer.course.pages}
    folder = posixpath.dirname(site_uri(writer.page.path.as_posix()))
    data = calendar_data(
        years.entries(found, pages),
        "year",
        f"{posixpath.relpath('.', folder)}/",
        title="The year",
        monday=True,
    )
    plan = f'<script type="application/json" id="year">{embedded({"calendar": data})}</script>'
    form = calendar_form("year", "Monday of week 1", monday=True, days=True)
    return f'{plan}{form}<script src="{writer.shared(CALENDAR_SCRIPT)}"></script>'


# --- on the page of a week ---------------------------------------------------------------------------


def of_page(writer: Writer) -> tuple[Year, Week]:
    """Return the year, and the week that a page is of.

    Raises:
        DirectiveError: the page is of none.
    """
    found = writer.course.maps.year
    match = _NAME.fullmatch(writer.page.path.stem)
    if not match or not 1 <= int(match[1]) <= len(found.weeks):
        raise DirectiveError(f"stands on the page of a week alone, such as {years.FOLDER}/week_01.py")
    return found, found.week(int(match[1]))


def week(writer: Writer, block: Block) -> str:
    """Return the line under a week's title: its part, its hours, what it runs on, what it needs and leads to."""
    found, this = of_page(writer)
    number = found.part_of(this)
    parts = [f"Part {number}: {html.escape(found.parts[number - 1].name)}"]
    if this.hours:
        parts.append(
            f'{_hours(this.hours)}, of which <span class="value">{this.reading_hours:g}</span> to read and '
            f'<span class="value">{this.do_hours:g}</span> to do'
        )
    hardware = " and ".join(map(in_words, this.hardware))
    parts.append(f"to measure it yourself: {hardware}" if hardware else "needs no GPU")
    if this.needs:
        parts.append(f"after {', '.join(_link(writer, found.week(other)) for other in this.needs)}")
    if later := list(found.after(this)):
        parts.append(f"leads to {', '.join(_link(writer, other) for other in later)}")
    return writer.slot(f'<p class="week-facts">{" · ".join(parts)}</p>')


def _link(writer: Writer, week: Week) -> str:
    address = _address(writer, week.page)
    if not address:
        address = f"{_address(writer, f'{years.FOLDER}/index.md')}#week-{week.number}"
    return f'<a href="{html.escape(address)}">week {week.number}</a>'


def reading(writer: Writer, block: Block) -> str:
    """Return what is to be read, each with its hours and what to take from it: `key: text`."""
    _, this = of_page(writer)
    asked = read(block.text, {one.key: TEXT for one in this.reading})
    lines = []
    for one in this.reading:
        source = writer.course.sources.get(one.key)
        if source is None:
            raise DirectiveError(f"{one.key!r} is not in the bibliography")
        lines.append(
            f"- **[{one.title}]({source.url})**[^{one.key}], {writer.slot(_hours(one.hours))}. "
            f"{writer.text(asked[one.key])}"
        )
    return "\n".join(lines)


def idea(writer: Writer, block: Block) -> str:
    """Return a question with its answer folded."""
    summary = html.escape(writer.plain(block.argument), quote=False)
    return div("idea", details("answer", summary, writer.nodes(block.body)))


def _hours(hours: float) -> str:
    return f'<span class="value">{hours:g} hour{"s" * (hours != 1)}</span>'


def _named_weeks(numbers: tuple[int, ...]) -> str:
    *first, last = map(str, numbers)
    return f"weeks {', '.join(first)} and {last}" if first else f"week {last}"
