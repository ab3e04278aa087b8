"""Blocks that show what is taught when: a session map, the weeks of a cohort."""

from __future__ import annotations

import contextlib
import html
import posixpath

from course_labs.lab import Lab, LabError, find_lab
from course_site.pages.addresses import address_from, shown_file, site_uri
from course_site.pages.blocks import Block, DirectiveError
from course_site.pages.headings import headings, section_of_lab
from course_site.pages.plain_text import without_marks
from course_site.sessions import checks, cohort, cohort_page
from course_site.sessions import map as maps
from course_site.sessions.handouts import PRINTED
from course_site.sessions.plan_file import PlanError
from course_site.site.render.files import picture
from course_site.site.render.writer import Writer, details, div


def session(writer: Writer, block: Block) -> str:
    """A session map; what is wrong with its file is among the problems of the course already."""
    report = writer.course.maps
    session = report.sessions.get(block.argument)
    if session is None:
        known = ", ".join(report.sessions) or "none"
        raise DirectiveError(f"there is no {checks.FOLDER}/{block.argument}.toml; there are {known}")
    if session.map_page != writer.page.path.as_posix():
        raise DirectiveError(f"{session.path} names {session.map_page} as its page")
    pages = {page.path.as_posix(): page for page in writer.course.pages}
    lab: Lab | None = None
    with contextlib.suppress(LabError):
        lab = find_lab(writer.course.root, session.lab) if session.lab else None

    def heading(target: str) -> str | None:
        path, _, fragment = target.partition("#")
        if path not in pages:
            return None
        return headings(pages[path]).get(fragment, pages[path].title)

    def taken(step: int) -> str:
        was = report.taken.get(session.id, {}).get(step)
        return f" · {was.median:.0f} in {was.runs} run{'s' * (was.runs != 1)}" if was else ""

    tools = maps.Tools(
        say=writer.text,
        plain=lambda text: without_marks(writer.plain(text)),
        slot=writer.slot,
        fold=details,
        figure=lambda name, alt: _board(writer, name, alt),
        heading=heading,
        measured=frozenset(d.name for d in session.demos if d.name not in report.unmeasured),
        taken=taken,
        lab_section=section_of_lab(lab, pages) if lab else "",
        printed=(writer.course.root / PRINTED / f"{session.id}.pdf").exists(),
    )
    writer.file = session.path
    body = maps.markdown(session, lab, writer.page.path.parent.as_posix(), tools)
    writer.file = writer.page.path.as_posix()
    wrong = [str(c) for c in report.complaints if c.path == session.path]
    if wrong:  # a draft: a strict build has stopped
        lines = "".join(f"<li>{html.escape(line)}</li>" for line in wrong)
        banner = f'<div class="banner stale"><p>This map is not finished:</p><ul>{lines}</ul></div>'
        body = f"{writer.slot(banner)}\n\n{body}"
    return div("session", body)


def _board(writer: Writer, name: str, alt: str) -> str:
    try:
        path = shown_file(writer.course.root, name)
    except ValueError:
        return ""  # said where the map was checked
    alt = writer.plain(alt)
    svg = picture(path, alt, f"{writer.page.id}-{path.stem}")
    return writer.figure(svg, "picture", "", alt)


def weeks_or_calendar(writer: Writer, block: Block) -> str:
    """The plan of a cohort: its weeks as a table, or the form for its calendar."""
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
        return writer.slot(cohort_page.cohort_form(plan, sessions, posixpath.dirname(site_uri(here))))
    writer.file = cohort.FILE
    pages = {page.path.as_posix(): page for page in writer.course.pages}
    table = cohort_page.weeks_table(
        plan, sessions, lambda text: _inline(writer, text), address_from(here, pages)
    )
    writer.file = here
    return writer.slot(table)


def _inline(writer: Writer, text: str) -> str:
    """One line of Markdown as HTML, for what stands in a slot."""
    import markdown  # slow to import

    return markdown.markdown(writer.plain(text)).removeprefix("<p>").removesuffix("</p>")
