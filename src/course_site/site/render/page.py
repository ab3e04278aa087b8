"""Page to Markdown: fresh prose, recorded numbers, charts. No MkDocs, no torch, no GPU."""

from __future__ import annotations

import contextlib
import functools
import re
import time
from collections.abc import Iterator, Mapping

from course_site.lint import covers, predictions
from course_site.pages import bibliography, blocks, glossary
from course_site.pages.blocks import DirectiveError
from course_site.pages.headings import beyond_the_core
from course_site.pages.page import Cell, Page
from course_site.pages.urls import address_from
from course_site.sessions import road
from course_site.site import ledger
from course_site.site.course import Course
from course_site.site.editions import SIDE_BY_SIDE
from course_site.site.navigation import STEP, students_road
from course_site.site.render import (
    absent,
    attacks,
    beside,
    data_blocks,
    exercises,
    explorable,
    files,
    home,
    index_blocks,
    kernels,
    optional_sections,
    reading_time,
    rungs,
    session_blocks,
    year_blocks,
    your_gpu,
)
from course_site.site.render.code import code_cell
from course_site.site.render.rendered import Rendered
from course_site.site.render.writer import Writer, div

# What each kind of block becomes.
BLOCKS = {
    "claim": data_blocks.claim,
    "when": data_blocks.when,
    "define": data_blocks.define,
    "chart": data_blocks.chart,
    "explorable": explorable.explorable,
    "table": data_blocks.table,
    "text": data_blocks.text,
    "hero": home.hero,
    "road": home.road,
    "take_along": home.take_along,
    "predict": exercises.predict,
    "cover": exercises.cover,
    "exercise": exercises.exercise,
    "callout": exercises.callout,
    "lab": exercises.lab,
    "kernels": kernels.kernels,
    "session": session_blocks.session,
    "cohort": session_blocks.weeks_or_calendar,
    "units": session_blocks.units,
    "source": files.source,
    "diff": files.diff,
    "rungs": rungs.rungs,
    "figure": files.figure,
    "ledger": index_blocks.every_number,
    "moved": index_blocks.moved,
    "glossary": index_blocks.words,
    "kitchen": index_blocks.kitchen,
    "key": index_blocks.key,
    "attacks": attacks.attacks,
    "part": data_blocks.part,
    "year": year_blocks.year,
    "week": year_blocks.week,
    "reading": year_blocks.reading,
    "idea": year_blocks.idea,
    "your_gpu": your_gpu.your_gpu,
    "beside": beside.beside,
}

# A page with one of these is looked things up in, and nobody reads it from its head to its end.
LISTS = frozenset({"session", "cohort", "units", "ledger", "moved", "glossary", "year"})

# Where readers are told how minutes are counted.
RULE = "docs/how_we_measure.py#the-minutes-at-the-top-of-a-page"


def define_course(course: Course) -> list[Writer]:
    """Work out what every page defines, and return its writer; what is wrong is noted in `course.problems`."""
    if not course.scopes:
        return []
    writers = [Writer(course, page, BLOCKS) for page in course.pages]
    for writer in writers:
        data_blocks.define_all(writer)
    if SIDE_BY_SIDE in course.scopes:  # it quotes what pages define in every edition
        for edition in course.editions:
            if edition.slug != course.slug:
                _define_beside(course.of(edition))
    return writers


def _define_beside(course: Course) -> None:
    """Work out what every page defines in an edition that is shown on the page of several cards alone."""
    for page in course.pages:
        data_blocks.define_all(Writer(course, page, BLOCKS))


def render_course(course: Course) -> dict[str, Rendered]:
    """Render every page, by its id; what is wrong is noted in `course.problems`."""
    # A page may quote what another one defines, so all definitions come before any prose.
    writers = define_course(course)
    rendered = {writer.page.id: _timed(writer) for writer in writers}
    for writer in writers:
        for whole in writer.roads:
            whole.fill(rendered)
    return rendered


def render_again(course: Course, page: Page, others: Mapping[str, Rendered]) -> Rendered:
    """Render a page whose prose was edited, in a course that is rendered; what is wrong is noted as by `render_course`.

    Args:
        page: as it is now; it takes the place of what it was.
        others: every page as it was rendered, by its id.
    """
    course.pages[:] = [page if one.id == page.id else one for one in course.pages]
    course.scopes[page.id] = course.scope(page)
    writer = Writer(course, page, BLOCKS)
    data_blocks.define_all(writer)
    rendered = _render(writer)
    for whole in writer.roads:
        whole.fill({**others, page.id: rendered})
    return rendered


def _timed(writer: Writer) -> Rendered:
    began = time.thread_time()
    out = _render(writer)
    out.seconds = time.thread_time() - began
    return out


def _render(writer: Writer) -> Rendered:
    if writer.course.is_absent(writer.page.id):
        writer.out.markdown, writer.out.road = absent.markdown(writer), _road(writer)
        return writer.out
    record = writer.course.records.get(writer.page.id) if writer.has_numbers else None
    parts: list[str] = []
    outputs = record.outputs if record else [[]] * len(writer.page.code)
    cells = [_parsed(writer, cell) if cell.kind == "markdown" else cell for cell in writer.page.cells]
    answering: dict[int, str] = {}
    if _has_guesses(writer):
        cells, answering = covers.cover(cells, writer.scope, outputs)
    left = iter(outputs)
    for number, cell in enumerate(cells):
        if isinstance(cell, list):
            parts.append(_prose_cell(writer, cell))
        else:
            parts.append(code_cell(writer, cell, next(left), answering.get(number, "")))
    opening, ending = _around(writer)
    markdown = "\n\n".join(part for part in parts if part.strip())
    try:
        markdown = optional_sections.folded(markdown, writer.out.slots, writer.out.words)
    except DirectiveError as error:
        writer.problem(str(error))
    markdown = "\n\n".join(filter(None, [markdown, ending]))
    minutes = _minutes(writer, "\n\n".join(filter(None, [markdown, opening])))
    markdown = _with_stamp(writer, markdown, minutes, opening)
    if writer.has_numbers and _has_guesses(writer) and _is_ours(writer.course):
        for fault in predictions.faults(writer.page, writer.scope, record.outputs if record else []):
            writer.problem(fault)
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
    behind = writer.behind.block()
    behind = writer.slot(behind) if behind else ""
    writer.out.markdown = "\n\n".join(filter(None, [markdown, footnotes, behind, abbreviations])) + "\n"
    return writer.out


def _parsed(writer: Writer, cell: Cell) -> list[str | blocks.Block]:
    try:
        return blocks.parse(cell.source)
    except DirectiveError as error:
        writer.problem(str(error))
        return []


def _prose_cell(writer: Writer, nodes: list[str | blocks.Block]) -> str:
    text = writer.nodes(nodes)
    writer.out.cells.append(("markdown", text))
    return text


def _around(writer: Writer) -> tuple[str, str]:
    """Return what a session's page for students opens and ends with, made from the maps.

    The texts are empty for other pages.
    """
    place = road.place_of(writer.page.path.as_posix(), writer.course.maps.sessions)
    if place is None or place[1] != "student_page":
        return "", ""
    opening, ending = session_blocks.before(writer, place[0]), session_blocks.after(writer, place[0])
    if writer.out.cells:  # in the notebook too, behind its title and at its end
        writer.out.cells.insert(1, ("markdown", opening))
        writer.out.cells.append(("markdown", ending))
    return opening, ending


def _minutes(writer: Writer, markdown: str) -> str:
    """Return the line that says how long a page takes; a session's page must leave its core inside its session."""
    if "navigation" in writer.page.meta.get("hide", ()) or LISTS & {b.kind for b in _blocks(writer.page)}:
        return ""
    shown, hidden = writer.out.minutes = reading_time.minutes(markdown, writer.out.slots, writer.out.words)
    _fits_its_session(writer)
    path = writer.page.path.as_posix()
    pages = {page.path.as_posix(): page for page in writer.course.pages}
    rule = address_from(path, pages)(RULE) if path != RULE.partition("#")[0] else f"#{RULE.partition('#')[2]}"
    link = f' <a href="{rule}">How we count</a>' if rule else ""
    return f'{reading_time.in_words(shown, hidden)}{link}\n{{: .minutes data-minutes="{shown.whole}" }}'


def _fits_its_session(writer: Writer) -> None:
    """Note a core that is longer than its session, and a step of its map that leads to what is folded."""
    path = writer.page.path.as_posix()
    shown, hidden = writer.out.minutes
    beyond_it = beyond_the_core(writer.page)
    for session in writer.course.maps.sessions.values():
        if session.student_page != path or not session.stop:
            continue
        if _is_ours(writer.course) and shown.whole > session.minutes:
            writer.problem(
                f"its core is longer than its session of {session.minutes} minutes "
                f"({reading_time.in_words(shown, hidden)}): mark what is beyond the core with "
                "{.beyond} at its heading"
            )
        for step in session.steps():
            page, _, anchor = step.anchor.partition("#")
            if page == path and anchor in beyond_it:
                writer.problem(
                    f"#{anchor} is beyond the core, and {session.path} leads there in {step.title!r}: "
                    "take {.beyond} from its heading, or name another one in the map"
                )


def _has_guesses(writer: Writer) -> bool:
    """Students guess, and in the chapter of a session its mentor does; other pages tell mentors what to expect."""
    path = writer.page.path
    chapters = {session.chapter for session in writer.course.maps.sessions.values()}
    return path.parts[0] == "docs" or path.as_posix() in chapters


def _is_ours(course: Course) -> bool:
    """Another card says other sentences, a few words longer or shorter: that is nobody's fault."""
    return course.is_reference and not course.rebuilt


def _blocks(page: Page) -> Iterator[blocks.Block]:
    for cell in page.cells:
        if cell.kind == "markdown":
            with contextlib.suppress(DirectiveError):
                yield from blocks.walk_blocks(blocks.parse(cell.source))


def _with_stamp(writer: Writer, markdown: str, minutes: str, opening: str) -> str:
    """Put the stamp, the minutes, any banner and what the page opens with right under the first heading."""
    above = "\n\n".join(filter(None, [_stamp(writer), minutes, _banner(writer), opening]))
    if not above:
        return markdown
    match = re.search(r"^# .+$", markdown, re.MULTILINE)
    cut = match.end() if match else 0
    return f"{markdown[:cut]}\n\n{above}\n\n{markdown[cut:].lstrip()}"


def _road(writer: Writer) -> str:
    """Return where this page stands in the course, if it is a session's, or one that students meet before the first."""
    maps, path = writer.course.maps, writer.page.path.as_posix()
    place = road.place_of(path, maps.sessions)
    first = [page.path.as_posix() for page in _before_the_sessions(writer.course)]
    if place is None and path not in first:
        return ""
    here, view = place or (None, "student_page")
    pages = {page.path.as_posix(): page for page in writer.course.pages}
    address = address_from(path, pages)
    before = tuple((pages[one].title, "" if one == path else address(one) or "") for one in first)
    return road.road_html(
        here, view, maps.road, maps.sessions, address, before if view == "student_page" else ()
    )


def _before_the_sessions(course: Course) -> list[Page]:
    """Return the students' pages at the head of the road, as the home page draws it."""
    stops = [stop for _, half in students_road(course) for stop in half]
    return [stop.page for stop in stops if stop.page and not stop.session and stop.order < STEP]


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
            f"**Not yet measured.** This page has been waiting for a GPU since {why.since}: {why.reason}. "
            "Until it has run on one, it shows no numbers.",
        )
    if state == "stale":
        return div(
            "banner stale",
            "**A draft.** The code of this page changed after its last run, so it shows none of its old numbers.",
        )
    if writer.dashes:
        return writer.slot(absent.dashes(writer))
    return ""


_abbreviations = functools.lru_cache(maxsize=512)(glossary.abbreviations)
