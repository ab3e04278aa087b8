"""Parts that only the home page has: its first screen, and the road with its stops.

Nothing of it is kept by hand: the card comes from the record, the stops from the maps and the pages, their minutes from
the pages as they are shown.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from course_site.charts.road import Dot, draw_road
from course_site.pages import blocks
from course_site.pages.block_settings import TEXT, read
from course_site.pages.blocks import Block, DirectiveError
from course_site.pages.page import Page
from course_site.pages.urls import address_from
from course_site.site.archive import NAME, archive
from course_site.site.course import Course
from course_site.site.navigation import STEP, Stop, students_road
from course_site.site.render.reading_time import count_of
from course_site.site.render.rendered import Rendered
from course_site.site.render.writer import Writer, size_in_words
from course_site.values.values import NotHere

CARD = "{card}"


def hero(writer: Writer, block: Block) -> str:
    """Return the first screen under the title: what this is, for whom, two buttons, and the race with its card."""
    settings = read(
        block.text,
        {
            "lead": TEXT,
            "for": TEXT,
            "buttons": [{"page": TEXT, "words": TEXT}],
            "race": [{"name": TEXT, "label": TEXT}],
            "job": TEXT,
            "gap": TEXT,
        },
    )
    card = _card(writer)

    def said(text: str) -> str:
        return _inline(writer, text).replace(CARD, card)

    buttons = "".join(
        f'<a class="md-button{" md-button--primary" * (i == 0)}" '
        f'href="{html.escape(_address(writer, button["page"]))}">'
        f"{html.escape(writer.plain(button['words']))}</a>"
        for i, button in enumerate(settings["buttons"])
    )
    return writer.slot(
        f'<div class="pitch"><p class="lead">{said(settings["lead"])}</p><p class="for">{said(settings["for"])}</p>'
        f'<p class="buttons">{buttons}</p></div>{_race(writer, settings, said)}'
    )


def _race(writer: Writer, settings: Mapping[str, Any], said: Callable[[str], str]) -> str:
    """Return the race with its bars; "" in an edition whose card has not run it."""
    try:
        times = [writer.scope.resolve(f"{entry['name']}.ms").value for entry in settings["race"]]
    except NotHere:
        return ""
    rows = "".join(
        f"<li>{_bar(time / max(times))}<b>{_inline(writer, _milliseconds(entry['name'], time))}</b> "
        f"<span>{said(entry['label'])}</span></li>"
        for entry, time in zip(settings["race"], times, strict=True)
    )
    return (
        f'<div class="race"><p class="job">{said(settings["job"])}</p><ul>{rows}</ul>'
        f'<p class="gap">{said(settings["gap"])}</p></div>'
    )


def _card(writer: Writer) -> str:
    """Return the card of the edition, whose numbers are all that stand there."""
    card = html.escape(writer.course.here.gpu or writer.course.here.name).replace(" ", "&nbsp;")
    return f'<span class="value">{card}</span>'


def _milliseconds(name: str, time: float) -> str:
    return f"{{{{ {name}.ms:{'.0f' if time >= 100 else '.2f'} }}}} ms"


def _bar(part: float) -> str:
    """Return a time to scale."""
    return (
        '<svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        f'<rect width="{max(1000 * part, 1):.1f}" height="10"/></svg>'
    )


def _inline(writer: Writer, text: str) -> str:
    """Return one line of Markdown as HTML, its values linked to the ledger."""
    import markdown  # slow to import

    return markdown.markdown(writer.text(text)).removeprefix("<p>").removesuffix("</p>")


def _address(writer: Writer, page: str) -> str:
    pages = {page.path.as_posix(): page for page in writer.course.pages}
    address = address_from(writer.page.path.as_posix(), pages)(page)
    if address is None:
        raise DirectiveError(f"there is no page {page}")
    return address


# --- the road ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Road:
    """The road of a page until its stops' minutes are known."""

    writer: Writer
    token: str
    alt: str
    halves: tuple[str, ...]

    def fill(self, rendered: Mapping[str, Rendered]) -> None:
        """Draw it, now that every page is rendered."""
        self.writer.out.slots[self.token] = _road_html(self, rendered)


def road(writer: Writer, block: Block) -> str:
    """Return the road with its stops.

    It is a drawing where there is room, and under it a list, each stop with its minutes.
    """
    settings = read(block.text, {"alt": TEXT, "halves": [TEXT]})
    count = len(writer.course.maps.road.halves)
    if len(settings["halves"]) != count:
        raise DirectiveError(f"the road has {count} halves: write a line for each under `halves:`")
    lines = tuple(_inline(writer, text) for text in settings["halves"])
    writer.roads.append(Road(writer, writer.slot(""), writer.plain(settings["alt"]), lines))
    return writer.roads[-1].token


def _road_html(found: Road, rendered: Mapping[str, Rendered]) -> str:
    course, here = found.writer.course, found.writer.page.path.as_posix()
    pages = {page.path.as_posix(): page for page in course.pages}
    address = address_from(here, pages)
    halves = students_road(course)

    def where(page: Page | None) -> str:
        return (address(page.path.as_posix()) or "") if page else ""

    dots = [[Dot(stop.title, where(stop.page)) for stop in stops if _is_drawn(stop)] for _, stops in halves]
    picture = draw_road([half for half, _ in halves], dots, found.alt)
    lists = "".join(
        f'<div class="half"><h3>{html.escape(half)}</h3><p>{line}</p>'
        f"<ol>{''.join(_stop_html(course, stop, where(stop.page), rendered) for stop in stops)}</ol></div>"
        for (half, stops), line in zip(halves, found.halves, strict=True)
    )
    return f'<figure class="whole-road">{picture}</figure>{list_of_stops(found.writer, lists)}'


def list_of_stops(writer: Writer, lists: str) -> str:
    """Return lists of stops with the style and the script that draw where a reader is on them."""
    style, script = writer.shared("assets/css/stops.css"), writer.shared("assets/js/home.js")
    return (
        f'<link rel="stylesheet" href="{style}"><div class="stops">{lists}</div>'
        f'<script defer src="{script}"></script>'  # after the scripts that every page has
    )


def _is_drawn(stop: Stop) -> bool:
    """Sessions are drawn, and where the road begins; what lies between two of them stands in the list alone."""
    return stop.session is not None or stop.order < STEP


def _stop_html(course: Course, stop: Stop, address: str, rendered: Mapping[str, Rendered]) -> str:
    title, css = html.escape(stop.title), "stop" if _is_drawn(stop) else "stop between"
    if stop.page is None:
        about = stop.session.about if stop.session else ""
        return (
            f'<li class="{css} to-come"><b>{title}</b> <span class="takes">to come</span>'
            f"<p>{html.escape(about)}</p></li>"
        )
    kinds = [block for cell in stop.page.cells if cell.kind == "markdown" for block in blocks_of(cell.source)]
    predictions = sum(block.kind == "predict" for block in kinds)
    labs = " ".join(block.argument for block in kinds if block.kind == "lab")
    takes = count_of(rendered[stop.page.id].minutes[0].whole)
    if course.is_absent(stop.page.id):
        takes = html.escape(f"not on the {course.here.name}")
    return (
        f'<li class="{css}" data-page="{html.escape(address)}" data-predictions="{predictions}" '
        f'data-labs="{html.escape(labs)}"><a href="{html.escape(address)}">{title}</a> '
        f'<span class="takes">{takes}</span><p>{html.escape(stop.page.description)}</p></li>'
    )


def blocks_of(source: str) -> Iterator[Block]:
    """Yield every block of a cell; none where they cannot be read."""
    try:
        yield from blocks.walk_blocks(blocks.parse(source))
    except DirectiveError:  # said where the page is rendered
        return


# --- where to get it -----------------------------------------------------------------------------


def take_along(writer: Writer, block: Block) -> str:
    """Return where to get the course, under which licence, and who makes it: what pyproject.toml says of these."""
    about = writer.course.about
    lines = []
    if about.repository:
        lines.append(
            f'<a href="{html.escape(about.repository)}">The source</a>: pages, kernels, labs, records, tests.'
        )
    else:
        size = size_in_words(archive(writer.course.root).stat().st_size)
        lines.append(
            f'<a href="{writer.shared(NAME)}" download>The source as one file</a> (<span class="value">{size}</span>): '
            "pages, kernels, labs, records, tests."
        )
    if about.licence:
        lines.append(
            f'Its licence: <a href="{writer.shared("LICENSE.txt")}">{html.escape(about.licence)}</a>.'
        )
    if about.organisation:
        lines.append(f"Made by {html.escape(about.organisation)}.")
    return writer.slot("<ul>" + "".join(f"<li>{line}</li>" for line in lines) + "</ul>")
