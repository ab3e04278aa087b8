"""Page to Markdown: fresh prose, recorded numbers, charts. No MkDocs, no torch, no GPU."""

from __future__ import annotations

import functools
import re

from course_site.pages import bibliography, blocks, glossary
from course_site.pages.addresses import address_from
from course_site.pages.blocks import DirectiveError
from course_site.sessions import road
from course_site.site import ledger
from course_site.site.course import Course
from course_site.site.render import exercises, files, lists, measured, plans
from course_site.site.render.code import code_cell
from course_site.site.render.rendered import Rendered
from course_site.site.render.writer import Writer, div

# What each kind of block becomes.
BLOCKS = {
    "claim": measured.claim,
    "when": measured.when,
    "define": measured.define,
    "chart": measured.chart,
    "table": measured.table,
    "predict": exercises.predict,
    "exercise": exercises.exercise,
    "callout": exercises.callout,
    "lab": exercises.lab,
    "session": plans.session,
    "cohort": plans.weeks_or_calendar,
    "source": files.source,
    "diff": files.diff,
    "figure": files.figure,
    "ledger": lists.every_number,
    "moved": lists.moved,
    "glossary": lists.words,
    "kitchen": lists.kitchen,
    "bibliography": lists.sources,
}


def render_course(course: Course) -> dict[str, Rendered]:
    """Render every page, by its id; what is wrong is noted in `course.problems`."""
    if not course.scopes:
        return {}
    writers = [Writer(course, page, BLOCKS) for page in course.pages]
    # A page may quote what another one defines, so all definitions come before any prose.
    for writer in writers:
        measured.define_all(writer)
    return {writer.page.id: _render(writer) for writer in writers}


def _render(writer: Writer) -> Rendered:
    record = writer.course.records.get(writer.page.id) if writer.has_numbers else None
    parts: list[str] = []
    outputs = iter(record.outputs if record else [[]] * len(writer.page.code))
    for cell in writer.page.cells:
        is_prose = cell.kind == "markdown"
        parts.append(_prose_cell(writer, cell.source) if is_prose else code_cell(writer, cell, next(outputs)))
    markdown = _with_stamp(writer, "\n\n".join(part for part in parts if part.strip()))
    writer.out.road = _road(writer)
    writer.out.cited = bibliography.cited_keys(markdown)
    try:
        footnotes = bibliography.footnotes(writer.out.cited, writer.course.sources)
    except KeyError as error:
        writer.problem(f"cites {error.args[0]!r}, which docs/bibliography.toml does not have")
        footnotes = ""
    abbreviations = _abbreviations(markdown, writer.course.terms)
    stops = writer.course.maps.road.stops
    if stops and writer.page.path.parts[0] == "handbook":  # among mentors, L1 is a lecture and no cache
        named = rf"^\*\[(?:{'|'.join(stops).upper()})\]:.*\n?"
        abbreviations = re.sub(named, "", abbreviations, flags=re.MULTILINE)
    writer.out.markdown = "\n\n".join(filter(None, [markdown, footnotes, abbreviations])) + "\n"
    return writer.out


def _prose_cell(writer: Writer, source: str) -> str:
    try:
        nodes = blocks.parse(source)
    except DirectiveError as error:
        writer.problem(str(error))
        return ""
    text = writer.nodes(nodes)
    writer.out.cells.append(("markdown", text))
    return text


def _with_stamp(writer: Writer, markdown: str) -> str:
    """The stamp and any banner stand right under the first heading."""
    above = "\n\n".join(filter(None, [_stamp(writer), _banner(writer)]))
    if not above:
        return markdown
    match = re.search(r"^# .+$", markdown, re.MULTILINE)
    cut = match.end() if match else 0
    return f"{markdown[:cut]}\n\n{above}\n\n{markdown[cut:].lstrip()}"


def _road(writer: Writer) -> str:
    """Where this page stands in the course, if it is a session's."""
    maps = writer.course.maps
    place = road.place_of(writer.page.path.as_posix(), maps.sessions)
    if place is None:
        return ""
    pages = {page.path.as_posix(): page for page in writer.course.pages}
    address = address_from(writer.page.path.as_posix(), pages)
    return road.road_html(*place, maps.road, maps.sessions, address)


def _stamp(writer: Writer) -> str:
    record = writer.course.records.get(writer.page.id)
    if not record or not writer.course.has_numbers(writer.page.id):
        return ""
    return writer.slot(ledger.stamp_html(writer.course, writer.page, record))


def _banner(writer: Writer) -> str:
    state = writer.course.states[writer.page.id]
    if state == "waiting":
        why = writer.course.waiting[writer.page.path.as_posix()]
        return div(
            "banner waiting",
            f"**Not yet measured.** This page awaits a GPU since {why.since}: {why.reason}. "
            "Until then it stands without its numbers.",
        )
    if state == "stale":
        return div(
            "banner stale",
            "**A draft.** The code of this page changed after its last run, so none of its old numbers is shown.",
        )
    if state == "foreign":
        gpu = writer.course.records[writer.page.id].edition["gpu"]
        needs = ", ".join(writer.page.needs)
        return div(
            "banner reference",
            f"**Measured on another card.** This page needs {needs}, so it shows {gpu}.",
        )
    return ""


_abbreviations = functools.lru_cache(maxsize=512)(glossary.abbreviations)
