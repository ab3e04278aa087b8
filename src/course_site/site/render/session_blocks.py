"""Blocks that show what is taught when: a session map, the weeks of a cohort, the units of a road."""

from __future__ import annotations

import contextlib
import html
import posixpath
from collections.abc import Mapping

from course_labs.lab import Lab, LabError
from course_site.lint import cards, chart_words
from course_site.pages.blocks import Block, DirectiveError
from course_site.pages.headings import headings, section_of_lab
from course_site.pages.page import Page
from course_site.pages.plain_text import without_marks
from course_site.pages.urls import address_from, shown_file, site_uri
from course_site.sessions import checks, cohort, cohort_page, spaced_questions, worked_answers
from course_site.sessions import map as maps
from course_site.sessions.handouts import PRINTED, HandoutError, asked, read_handouts, rows_beside
from course_site.sessions.plan_file import PlanError
from course_site.sessions.session import Session
from course_site.sessions.units_page import units_table
from course_site.site.course import Course
from course_site.site.render.files import picture
from course_site.site.render.writer import Writer, details, div


def session(writer: Writer, block: Block) -> str:
    """Return a session map; what is wrong with its file is among the problems of the course already."""
    report = writer.course.maps
    session = report.sessions.get(block.argument)
    if session is None:
        known = ", ".join(report.sessions) or "none"
        raise DirectiveError(f"there is no {checks.FOLDER}/{block.argument}.toml; there are {known}")
    if session.map_page != writer.page.path.as_posix():
        raise DirectiveError(f"{session.path} names {session.map_page} as its page")
    pages = _pages(writer)
    labs: dict[str, Lab] = {}
    for name in session.labs:
        with contextlib.suppress(LabError):
            labs[name] = writer.course.lab(name)

    def taken(step: int) -> str:
        was = report.taken.get(session.id, {}).get(step)
        return f" · {was.median:.0f} in {was.runs} run{'s' * (was.runs != 1)}" if was else ""

    tools = maps.Tools(
        say=writer.text,
        plain=lambda text: without_marks(writer.plain(text)),
        slot=writer.slot,
        fold=details,
        figure=lambda name, alt: _board(writer, name, alt),
        heading=lambda target: _heading(pages, target),
        measured=frozenset(d.name for d in session.demos if d.name not in report.unmeasured),
        taken=taken,
        labs=labs,
        lab_section=lambda lab: section_of_lab(lab, pages),
        source=lambda key: _source(writer, key),
        printed=is_printed(writer.course, session.id),
    )
    with writer.reading(session.path):
        body = maps.markdown(session, writer.page.path.parent.as_posix(), tools)
    _hold_sheets(writer, session)
    wrong = [str(c) for c in report.complaints if c.path == session.path]
    if wrong:  # a draft: a strict build has stopped
        lines = "".join(f"<li>{html.escape(line)}</li>" for line in wrong)
        banner = f'<div class="banner stale"><p>This map is not finished:</p><ul>{lines}</ul></div>'
        body = f"{writer.slot(banner)}\n\n{body}"
    return div("session", body)


def is_printed(course: Course, session: str) -> bool:
    """Return whether this edition's map may link a session's PDF: its numbers are the reference's alone."""
    return course.is_reference and (course.root / PRINTED / f"{session}.pdf").exists()


def _hold_sheets(writer: Writer, session: Session) -> None:
    """Note what is wrong on a session's sheets: a typed answer, a row, a value of another edition."""
    try:
        handouts = read_handouts(writer.course.root, session.id)
    except HandoutError:  # told where the sheets are printed
        return
    if handouts is None:
        return
    for sheet in handouts.sheets:
        for fault in worked_answers.of_sheet(handouts, sheet, session.id):
            writer.course.problem(handouts.path, fault)
        for part in sheet.parts:
            for columns, row in rows_beside(part):
                for fault in (
                    chart_words.faults_of_row(columns, row, writer.scope) if writer.has_numbers else ()
                ):
                    writer.course.problem(handouts.path, f"{sheet.title}, {part.where}: {fault}")
            for fault in cards.of_another(asked(part), writer.scope):
                writer.course.problem(handouts.path, f"{sheet.title}, {part.where}: {fault}")


def _pages(writer: Writer) -> dict[str, Page]:
    return {page.path.as_posix(): page for page in writer.course.pages}


def _heading(pages: Mapping[str, Page], target: str) -> str | None:
    """Return the words of page#anchor; None while the page is to come."""
    path, _, fragment = target.partition("#")
    return headings(pages[path]).get(fragment, pages[path].title) if path in pages else None


def before(writer: Writer, session: Session) -> str:
    """Return what a session's page opens with for students: questions of earlier sessions, spaced by the calendar."""
    try:
        plan = cohort.read_cohort(writer.course.root)
    except PlanError:  # said where the plan is shown
        return ""
    found = spaced_questions.brought_along(session.id, plan, writer.course.maps.sessions)
    if not found:
        return ""
    asked = []
    for earlier, i in found:
        with writer.reading(earlier.path):
            asked.append(_asked(writer, earlier, i, f"*{earlier.title}*, "))
    words = (
        "**Bring along.** Here are questions from earlier sessions. "
        "Answer in your head, or on paper, before you unfold."
    )
    spoken = [earlier.title for earlier, _ in found if not earlier.stop]
    if spoken:  # a session before the road has no page for students
        home = _say(writer, "[the home page](docs/index.md)")
        words += f" Reading alone? A class begins with *{spoken[0]}*; you find its content on {home}."
    pages = _pages(writer)
    to_come = [earlier.title for earlier, _ in found if earlier.stop and earlier.student_page not in pages]
    if to_come:
        names = " and ".join(f"*{title}*" for title in to_come)
        words += f" If you read alone, leave out what is asked of {names}: there is no page for it yet."
    return div("asked bring", "\n\n".join([words, *asked]))


def after(writer: Writer, session: Session) -> str:
    """Return what it ends with: its own exit ticket, what to read, and beside it what to do at home."""
    with writer.reading(session.path):
        return _ending(writer, session)


def _ending(writer: Writer, session: Session) -> str:
    parts = []
    if session.exit_ticket:
        asked = [_asked(writer, session, i) for i in range(len(session.exit_ticket))]
        parts += ["## The exit ticket", "Answer in writing, without looking anything up. Then unfold."]
        parts.append(div("asked", "\n\n".join(asked)))
    read = "\n".join(f"- {_source(writer, item.source)} {_say(writer, item.why)}" for item in session.read)
    columns = [div("read", f"**Three to read**\n\n{read}")] if read else []
    if session.at_home:
        columns.append(div("home", f"**To do**\n\n{_say(writer, session.at_home)}"))
    if columns:
        parts += ["## What to read", div("until", "\n\n".join(columns))]
    return "\n\n".join(parts)


def _asked(writer: Writer, session: Session, i: int, before: str = "") -> str:
    """Return one question of an exit ticket; folded, its answer and where that stands."""
    pair = session.exit_ticket[i]
    summary = html.escape(without_marks(writer.plain(pair.ask)), quote=False)
    said = _say(writer, pair.answer)
    for target in session.exit_headings[i : i + 1]:
        words = (_heading(_pages(writer), target) or "").replace("[", "(").replace("]", ")")
        said += f"\n\nIt is in {before}{_say(writer, f'[{words}]({target})')}."
    return details("answer", summary, said)


def _say(writer: Writer, text: str) -> str:
    """Return a text of a map on another page."""
    pages, folder = _pages(writer), writer.page.path.parent.as_posix()
    return writer.text(maps.relinked(text, folder, lambda target: _heading(pages, target))).strip()


def _source(writer: Writer, key: str) -> str:
    """Return a source by its title, with the mark of its footnote."""
    entry = writer.course.sources.get(key)
    return f"[{entry.title}]({entry.url})[^{key}]." if entry else ""  # said where the map was checked


def _board(writer: Writer, name: str, alt: str) -> str:
    try:
        path = shown_file(writer.course.root, name)
    except ValueError:
        return ""  # said where the map was checked
    alt = writer.plain(alt)
    svg = picture(path, alt, f"{writer.page.id}-{path.stem}")
    return writer.figure(svg, "picture", "", alt)


def weeks_or_calendar(writer: Writer, block: Block) -> str:
    """Return the plan of a cohort: its weeks as a table, or the form for its calendar."""
    if block.argument not in ("weeks", "calendar"):
        raise DirectiveError("write `/// cohort | weeks` or `/// cohort | calendar`")
    here = writer.page.path.as_posix()
    sessions = writer.course.maps.sessions
    try:
        plan = cohort.read_cohort(writer.course.root)
        cohort.entries(plan, sessions)  # says what no calendar can show
    except PlanError as error:
        path, _, message = str(error).partition(": ")
        writer.course.problem(path, message)
        return ""
    if block.argument == "calendar":
        script = writer.shared(cohort_page.CALENDAR_SCRIPT)
        return writer.slot(cohort_page.cohort_form(plan, sessions, posixpath.dirname(site_uri(here)), script))
    pages = {page.path.as_posix(): page for page in writer.course.pages}
    with writer.reading(cohort.FILE):
        table = cohort_page.weeks_table(
            plan, sessions, lambda text: _inline(writer, text), address_from(here, pages)
        )
    return writer.slot(table)


def units(writer: Writer, block: Block) -> str:
    """Return the units of a road, such as the weeks of a year, with their hours and needs."""
    roads = writer.course.maps.roads
    if block.argument not in roads:
        raise DirectiveError(f"there is no road {block.argument!r}; there are {', '.join(roads) or 'none'}")
    address = address_from(writer.page.path.as_posix(), _pages(writer))
    return writer.slot(units_table(block.argument, roads, writer.course.maps.sessions, address))


def _inline(writer: Writer, text: str) -> str:
    """Return one line of Markdown as HTML, for what stands in a slot."""
    import markdown  # slow to import

    return markdown.markdown(writer.plain(text)).removeprefix("<p>").removesuffix("</p>")
