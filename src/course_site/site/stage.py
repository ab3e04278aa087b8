"""The stage: one edition of the site, ready for whatever engine makes pages of Markdown. Nothing here knows an engine.

Everything is rendered before an engine starts, so that all that is wrong is listed at once. A page is a text in
Markdown, with tokens where charts, tables and stamps stand; once the engine has made HTML of it, `Stage.filled` puts
these in. What an engine must do besides: place the pages as the navigation has them, write what `Stage.others` names,
and end with `Stage.finish`. Its shell for MkDocs is hook.py; docs/ in Markdown for others is written by
staged_folder.py.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from course_site.lint import unread, vendor
from course_site.pages import bibliography, glossary
from course_site.pages.build_cache import KEPT, digest
from course_site.pages.page import Page
from course_site.pages.urls import artifact_uri, site_uri
from course_site.records.record import write_atomically
from course_site.sessions import checks
from course_site.sessions.course_road import FOLDER
from course_site.sessions.handouts import PRINTED
from course_site.sessions.plain_data import as_plain
from course_site.sessions.print_sheet import sheet_files
from course_site.sessions.run_view import run_files
from course_site.site import ledger, ledger_pages, navigation, own_counts, search, words
from course_site.site.about import reference_of
from course_site.site.archive import LICENCE, NAME, archive
from course_site.site.course import Course, load_material, show
from course_site.site.notebook import published_notebook
from course_site.site.render import value_facts
from course_site.site.render.page import render_again, render_course
from course_site.site.render.rendered import Rendered, no_break_spaces, slim
from course_site.site.switch import Switch
from course_site.site.turns import EXECUTED, TURNS

log = logging.getLogger("course")


class StageFailed(ValueError):
    """Something is wrong with the course; the message lists it, a line each."""


@dataclass
class Stage:
    """An edition whose pages are rendered.

    Attributes:
        rendered: every page, by its id.
        entries: the ledger's rows.
        ledger: its pages.
        nav: groups of addresses, as in mkdocs.yml, each section with its pages.
        serves: it is shown while it is edited, and handed to nobody.
        said: what the pages say, for the search, as far as the engine has come.
    """

    course: Course
    switch: Switch
    rendered: dict[str, Rendered]
    entries: list[dict[str, Any]]
    ledger: ledger_pages.Ledger
    words: search.Words
    nav: list[Any]
    serves: bool
    said: dict[str, search.Said] = field(default_factory=dict)

    @property
    def pages(self) -> dict[str, Page]:
        """The course's pages, by their address."""
        return {site_uri(page.path.as_posix()): page for page in self.course.pages}

    @property
    def extra(self) -> dict[str, Any]:
        """Settings of every page's frame; the templates refuse a site without them."""
        about = self.course.about
        return {
            "stage": True,
            "about": about,
            "archive": "" if about.repository else NAME,
            "edition": self.course.here,
        }

    @property
    def templates_of_others(self) -> set[str]:
        """Files of the theme that are not for this edition: there is a sitemap only where there are addresses."""
        sitemap = set() if self.course.about.site_url else {"sitemap.xml"}
        return {"404.html", "sitemap.xml"} if self.course.here.folder else sitemap

    def markdown(self, uri: str) -> str | None:
        """Return a page as Markdown, with its head as front matter; None of one that is not the course's."""
        page = self.pages.get(uri)
        if page is None:
            return None
        keep = ("hide", "template", "search")
        meta = {"title": page.title, "description": page.description, "source_path": page.path.as_posix()}
        meta |= {key: page.meta[key] for key in keep if key in page.meta}
        meta["road"] = self.rendered[page.id].road
        front = yaml.safe_dump(meta, allow_unicode=True)
        return f"---\n{front}---\n\n{self.rendered[page.id].markdown}"

    def notebook(self, page: Page) -> Path | None:
        """Write a page's executed notebook, with its prose as it is now, to stand beside it; None without one."""
        course = self.course
        if not page.runs or course.is_absent(page.id):
            return None
        notebook = course.root / ".cache" / "notebooks" / course.slug / page.path.with_suffix(".ipynb")
        write_atomically(notebook, published_notebook(course, page, self.rendered[page.id]))
        return notebook

    def others(self) -> Iterator[tuple[str, str | bytes | Path]]:
        """Yield the address of every file of the site that is no page, with its content or where that lies."""
        course, on = self.course, self.switch.on
        maps = [as_plain(course, session) for session in course.maps.sessions.values()]
        if maps:
            yield from (run_files(maps, course.root, on) | sheet_files(maps, course.root, on)).items()
        for page in course.pages:
            for name, path in course.artifacts(page.id).items():
                yield artifact_uri(page.path.as_posix(), name), path
        for pdf in (course.root / PRINTED / f"{name}.pdf" for name in course.maps.sessions):
            if pdf.exists():
                yield f"{PRINTED}/{pdf.name}", pdf
        if (course.root / "LICENSE").is_file():
            yield LICENCE, course.root / "LICENSE"
        if self.extra["archive"]:
            yield NAME, archive(course.root)

    def filled(self, uri: str, content: str) -> str:
        """Return the HTML of a page with charts, stamps and tables in the place of its tokens."""
        if uri in self.ledger.chapters:
            return self.ledger.chapters[uri].fill(content)
        page = self.pages.get(uri)
        if page is None:
            return content
        light = slim(content, glossary.by_definition(self.course.terms))
        filled = self.rendered[page.id].fill(light).replace(ledger_pages.TOKEN, self.ledger.index)
        return no_break_spaces(filled)

    def hear(self, uri: str, url: str, title: str, meta: Mapping[str, Any], content: str) -> None:
        """Note what a page says, for the search: the reference's pages are searched.

        Args:
            uri, url: of its source, and of the page itself.
            content: HTML, filled.
        """
        if self.course.here.folder or (meta.get("search") or {}).get("exclude"):
            return
        place, key = ("sections", uri), digest(content)
        if KEPT.pages.get(place, (b"",))[0] != key:
            KEPT.pages[place] = key, search.sections(content)
        sections: list[search.Section] = KEPT.pages[place][1]
        self.said[url] = search.Said(url, title, search.rank(uri, meta), sections)

    def write_apart(self, output: str, site: Path, uri: str) -> str:
        """Write what stands behind the values of a page into a file beside it; return the page without that."""
        place = PurePosixPath(uri)
        light, told = value_facts.apart(output, f"{place.stem}.values.js")
        if told:
            file = site / place.with_name(f"{place.stem}.values.js")
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, told)
        return light

    def write_search(self, site: Path) -> None:
        """Write the search's index."""
        for name, text in search.scripts(self.said.values(), self.words).items():
            write_atomically(site / name, text)

    def finish(self, site: Path) -> None:
        """Write the search's index, the ledger for programs, and what the next build need not do again."""
        if not self.course.here.folder:
            self.write_search(site)
        KEPT.write(self.course.root)
        write_atomically(site / "ledger.json", ledger.ledger_json(self.entries))

    def render_again(self, page: Page) -> tuple[Rendered, Rendered]:
        """Render a page whose prose was edited; return it as it was and as it is."""
        before = self.rendered[page.id]
        after = self.rendered[page.id] = render_again(self.course, page, self.rendered)
        return before, after


def stage(
    root: Path,
    slug: str | None,
    nav: list[Any],
    *,
    first: str = "",
    draft: bool = False,
    rebuilt: bool = False,
    serves: bool = False,
) -> Stage:
    """Render every page of an edition.

    Args:
        slug: the edition's; None for the reference.
        nav: the sections, as in mkdocs.yml.
        first: the edition that a reader sees first.
        draft: a page whose record is not of its code is shown without its numbers.
        rebuilt: the edition was measured just now.
        serves: one edition alone, at the root of the site.
    Raises:
        StageFailed: something is wrong.
    """
    is_reference = slug in (None, reference_of(root))
    if not is_reference:
        TURNS.wait_for(EXECUTED)
    material = load_material(root, slug)
    if is_reference:
        TURNS.tell(EXECUTED)
    if serves:
        own = [one for one in material.editions if one.slug == (slug or material.reference)]
        material.editions = tuple(dataclasses.replace(one, at_root=True) for one in own)
    course = show(material, slug, draft=draft, rebuilt=rebuilt)
    if not course.pages:
        _stop_if_wrong(course)  # what else would be found follows from that
    switch, rendered = Switch(course, first), render_course(course)
    if not course.here.folder:
        _check_what_all_share(course, rendered, serves=serves)
    known = _search_words(course)
    if course.pages and nav:
        nav = navigation.filled(nav, course)
    shown = {page_id: one.shown for page_id, one in rendered.items()}
    _stop_if_wrong(course)
    entries = ledger.entries(course, shown)
    pages = ledger_pages.ledger_of(course, entries, list(navigation.in_order(nav)))
    _tell(course)
    return Stage(course, switch, rendered, entries, pages, known, nav, serves)


def _tell(course: Course) -> None:
    """Say what no number stands for, and what is close."""
    absent = [page.path.as_posix() for page in course.pages if course.is_absent(page.id)]
    if absent:
        log.info("the %s has no numbers of %s", course.here.name, ", ".join(absent))
    for state in ("waiting", "stale"):
        for page in course.pages:
            if course.states[page.id] == state:
                log.info("%s is %s: shown without its numbers", page.path, state)
    if course.undecided:
        log.info("too close to call on this run (mend these sentences before the records are committed):")
        for problem in sorted(course.undecided):
            log.info("  %s", problem)


def _stop_if_wrong(course: Course) -> None:
    if course.problems:
        lines = "\n".join(f"  {problem}" for problem in sorted(course.problems))
        raise StageFailed(f"{len(course.problems)} problem(s), nothing was built:\n{lines}")


def _check_what_all_share(course: Course, rendered: dict[str, Rendered], *, serves: bool) -> None:
    """Note what is wrong with files that no edition has for itself."""
    _check_bibliography(course, rendered)
    words.check_numbers(course)
    words.check_unrecorded(course)
    own_counts.check(course)
    words.check_names(course)
    check_read(course, serves=serves)
    for place, why in vendor.faults(course.root):
        course.problem(place, why)
    _check_descriptions(course)
    _check_sessions(course)


def check_read(course: Course, *, serves: bool) -> None:
    """Require that somebody has read every passage as it stands; while it is written, this is told and stops nobody."""
    for place, why in unread.faults(course.root):
        if serves or course.draft:
            log.info("%s: %s", place, why)
        else:
            course.problem(place, why)


def _check_descriptions(course: Course) -> None:
    """Require a description of every page: who finds it by searching reads that first."""
    for page in course.pages:
        if not str(page.description or "").strip():
            course.problem(
                page.path, "has no description: write one sentence into its head, `description: …`"
            )


def _check_bibliography(course: Course, rendered: dict[str, Rendered]) -> None:
    from course_kernels.measure.machine import MACHINES

    cited = {key for one in rendered.values() for key in one.cited}
    # A page without its numbers leaves out charts and claims, and with them what they cite.
    for page in course.pages:
        if not course.has_numbers(page.id):
            cited.update(*(bibliography.cited_keys(c.source) for c in page.cells if c.kind == "markdown"))
    known = {key for machine in MACHINES for key in machine.sources}
    for key in bibliography.unused(course.sources, cited, also_used=known):
        course.problem("docs/bibliography.toml", f"nothing cites {key!r}: cite it or take it out")


def _check_sessions(course: Course) -> None:
    """Require a map of every session; what a map still waits for is told, and not refused."""
    if not course.maps.sessions:
        return
    for name in [] if course.draft else checks.missing(course.maps):
        course.problem(f"{FOLDER}/{name}.toml", "is missing: every session of the course has its map")
    for line in course.maps.lines():
        log.info("%s", line)


def _search_words(course: Course) -> search.Words:
    """Other words for things: those of docs/search.toml, and what the glossary says its terms are also called."""
    try:
        return search.load_words(course.root, course.terms)
    except ValueError as error:
        course.problem(search.WORDS, str(error))
        return search.Words({}, [])
