"""The MkDocs hook: hands Material one Markdown text per page, and mkdocs-jupyter one executed notebook.

Everything is rendered before MkDocs starts to build, so that all that is wrong is listed at once. One edition is built;
what it is, and how, comes from the environment: COURSE_EDITION, COURSE_DRAFT, COURSE_REBUILT, and by COURSE_FIRST the
edition that a reader sees first. What all editions share the reference writes.
"""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import yaml
from jinja2 import Environment
from mkdocs.commands.build import _build_page, _populate_page
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.livereload import LiveReloadServer
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.nav import Link, Navigation
from mkdocs.structure.pages import Page as SitePage

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
from course_site.site import (
    incremental,
    ledger,
    ledger_pages,
    navigation,
    own_counts,
    page_cache,
    search,
    shared_files,
    words,
)
from course_site.site.about import reference_of
from course_site.site.archive import NAME, archive
from course_site.site.course import Course, load_material, show
from course_site.site.log_filter import quieten
from course_site.site.notebook import published_notebook
from course_site.site.render import value_facts
from course_site.site.render.page import render_again, render_course
from course_site.site.render.rendered import Rendered, no_break_spaces, slim
from course_site.site.switch import Switch
from course_site.site.turns import EXECUTED, TURNS

log = logging.getLogger("mkdocs.hooks.course")
quieten()


class PageFile(File):
    """A page that lies outside docs/ or is a script; its source name keeps its ending, so navigation names it."""

    def is_documentation_page(self) -> bool:
        """Return True: whatever its ending, it becomes a page."""
        return True


class _Build:
    """State of one build; made anew for every build of `mkdocs serve` but for an edit of prose.

    Attributes:
        serves: it is shown while it is edited, and handed to nobody.
        seen: the files as they were before any was read.
        is_whole: it ended well.
    """

    serves = False
    seen: incremental.Look
    is_whole = False
    course: Course
    switch: Switch
    rendered: dict[str, Rendered]
    entries: list[dict[str, Any]]
    ledger: ledger_pages.Ledger
    said: dict[str, search.Said]
    words: search.Words
    config: MkDocsConfig
    files: Files
    nav: Navigation
    env: Environment


_build = _Build()


def on_startup(command: str, dirty: bool) -> None:
    """Note whether the site is built or served."""
    _build.serves = command == "serve"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Render every page; stop here if anything is wrong."""
    root = Path(config.config_file_path).parent
    _build.is_whole, _build.seen = False, incremental.look(root)
    draft = os.environ.get("COURSE_DRAFT") == "1"
    rebuilt = os.environ.get("COURSE_REBUILT") == "1"
    slug = os.environ.get("COURSE_EDITION")
    is_reference = slug in (None, reference_of(root))
    if not is_reference:
        TURNS.wait_for(EXECUTED)
    material = load_material(root, slug)
    if is_reference:
        TURNS.tell(EXECUTED)
    if _build.serves:  # one edition alone, at the root
        own = [one for one in material.editions if one.slug == (slug or material.reference)]
        material.editions = tuple(dataclasses.replace(one, at_root=True) for one in own)
    course = show(material, slug, draft=draft, rebuilt=rebuilt)
    if not course.pages:
        _stop_if_wrong(course)  # what else would be found follows from that
    _build.course, _build.switch = course, Switch(course, os.environ.get("COURSE_FIRST", ""))
    _build.rendered = render_course(course)
    if not course.here.folder:
        _check_what_all_share(course)
    _build.said = {}
    _build.words = _search_words(course)
    if course.pages and config.nav:
        config.nav = navigation.filled(config.nav, course)
    shown = {page_id: rendered.shown for page_id, rendered in _build.rendered.items()}
    _stop_if_wrong(course)
    _build.entries = ledger.entries(course, shown)
    _build.ledger = ledger_pages.ledger_of(
        course, _build.entries, list(navigation.in_order(config.nav or []))
    )
    _say_about(course, config)
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
    return config


def _check_what_all_share(course: Course) -> None:
    """Note what is wrong with files that no edition has for itself."""
    _check_bibliography(course)
    words.check_numbers(course)
    words.check_unrecorded(course)
    own_counts.check(course)
    words.check_names(course)
    _check_read(course)
    for place, why in vendor.faults(course.root):
        course.problem(place, why)
    _check_descriptions(course)
    _check_sessions(course)


def _stop_if_wrong(course: Course) -> None:
    if course.problems:
        lines = "\n".join(f"  {problem}" for problem in sorted(course.problems))
        raise PluginError(f"{len(course.problems)} problem(s), nothing was built:\n{lines}")


def _say_about(course: Course, config: MkDocsConfig) -> None:
    """Fill the frame of every page; canonical links and a sitemap only if the site has an address."""
    config.extra["about"] = course.about
    config.extra["archive"] = "" if course.about.repository else NAME
    config.extra["edition"] = course.here
    config.site_url = course.about.site_url
    if not config.site_url:
        config.theme.static_templates.discard("sitemap.xml")  # it would name no page
    if course.here.folder:
        config.theme.static_templates -= {"404.html", "sitemap.xml"}  # the reference's, at the root


def _check_read(course: Course) -> None:
    """Require that somebody has read every passage as it stands; while it is written, this is told and stops nobody."""
    for place, why in unread.faults(course.root):
        if _build.serves or course.draft:
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


def _check_bibliography(course: Course) -> None:
    from course_kernels.measure.machine import MACHINES

    cited = {key for rendered in _build.rendered.values() for key in rendered.cited}
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


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Lead the foot of a page along its own road; home is before it, and a half of the course ends there."""
    pages = {page.file.src_uri: page for page in nav.pages}
    roads = navigation.roads(config.nav or [])
    halves = [half for half, _ in _build.course.maps.road.halves]
    for section, road in roads:
        for before, here, after in zip([None, *road], road, [*road[1:], None], strict=False):
            pages[here].previous_page = pages.get(before or "")
            pages[here].next_page = pages.get(after or "")
        if section in halves and nav.homepage:
            back: Any = Link(
                "Back to the road", f"{nav.homepage.url}#one-road"
            )  # the theme asks for title and url
            pages[road[-1]].next_page = back
    begin = next((road[0] for section, road in roads if section in halves), None)
    if begin and nav.homepage:
        nav.homepage.next_page, pages[begin].previous_page = pages[begin], nav.homepage
    _build.nav = nav
    return nav


def _by_uri() -> dict[str, Page]:
    return {site_uri(page.path.as_posix()): page for page in _build.course.pages}


@event_priority(-100)  # after mkdocs-jupyter, which would replace our files by its own
def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Put our pages in the place of the scripts MkDocs would copy, publish notebooks, add what no file says."""
    if not config.site_url and (empty := files.get_file_from_path("sitemap.xml")):
        files.remove(empty)
    for uri, page in _by_uri().items():
        existing = files.get_file_from_path(uri)
        if page.path.suffix == ".md" and existing is not None:
            continue
        if existing is not None:
            files.remove(existing)
        file = PageFile(
            uri, src_dir=None, dest_dir=config.site_dir, use_directory_urls=config.use_directory_urls
        )
        file.generated_by = "course_site"
        if page.runs and not _build.course.is_absent(page.id):
            file.abs_src_path = str(_write_notebook(page))
        files.append(file)
    course = _build.course
    maps = [as_plain(course, session) for session in course.maps.sessions.values()]
    on, root = _build.switch.on, course.root
    in_the_room = run_files(maps, root, on) | sheet_files(maps, root, on) if maps else {}
    for uri, content in in_the_room.items():
        files.append(File.generated(config, uri, content=content))
    for page in course.pages:
        for name, path in course.artifacts(page.id).items():
            uri = artifact_uri(page.path.as_posix(), name)
            files.append(File.generated(config, uri, abs_src_path=str(path)))
    for pdf in (course.root / PRINTED / f"{name}.pdf" for name in course.maps.sessions):
        if pdf.exists():
            files.append(File.generated(config, f"{PRINTED}/{pdf.name}", abs_src_path=str(pdf)))
    for uri, path in _of_the_course(course.root, config).items():
        files.append(File.generated(config, uri, abs_src_path=str(path)))
    for uri, chapter in _build.ledger.chapters.items():
        inclusion = InclusionLevel.NOT_IN_NAV  # the index leads there
        files.append(File.generated(config, uri, content=chapter.markdown, inclusion=inclusion))
    return files


def _write_notebook(page: Page) -> Path:
    course = _build.course
    notebook = course.root / ".cache" / "notebooks" / course.slug / page.path.with_suffix(".ipynb")
    write_atomically(notebook, published_notebook(course, page, _build.rendered[page.id]))
    return notebook


def _of_the_course(root: Path, config: MkDocsConfig) -> dict[str, Path]:
    """Return files of the repository that the site hands out as they are."""
    found = {shared_files.LICENCE: root / "LICENSE"} if (root / "LICENSE").is_file() else {}
    return found | ({NAME: archive(root)} if config.extra["archive"] else {})


def on_page_read_source(page: SitePage, config: MkDocsConfig) -> str | None:
    """Return the page as Markdown, with its head as front matter."""
    source = _by_uri().get(page.file.src_uri)
    if source is None:
        return None
    keep = ("hide", "template", "search")
    meta = {"title": source.title, "description": source.description, "source_path": source.path.as_posix()}
    meta |= {key: source.meta[key] for key in keep if key in source.meta}
    meta["road"] = _build.rendered[source.id].road
    return f"---\n{yaml.safe_dump(meta, allow_unicode=True)}---\n\n{_build.rendered[source.id].markdown}"


def on_env(env: Environment, config: MkDocsConfig, files: Files) -> None:
    """Lead to what all editions share, and note what a page that is edited is built again with."""
    if _build.course.here.folder:
        env.filters |= shared_files.FILTERS
    _build.config, _build.files, _build.env = config, files, env


@event_priority(-100)
def on_pre_page(page: SitePage, config: MkDocsConfig, files: Files) -> SitePage:
    """mkdocs-jupyter publishes the notebook and links it; rendering stays with Material."""
    page.__dict__.pop("render", None)
    return page


@event_priority(-100)
def on_page_markdown(markdown: str, page: SitePage, config: MkDocsConfig, files: Files) -> None:
    """Do not turn a page that is as it was into HTML again."""
    page_cache.render_once(page, config, files)


def on_page_content(content: str, page: SitePage, config: MkDocsConfig, files: Files) -> str:
    """Swap the tokens for charts, stamps and tables; the ledger comes last, when all is known."""
    if page.file.src_uri in _build.ledger.chapters:
        return _build.ledger.chapters[page.file.src_uri].fill(content)
    source = _by_uri().get(page.file.src_uri)
    if source is None:
        return content
    light = slim(content, glossary.by_definition(_build.course.terms))
    filled = _build.rendered[source.id].fill(light).replace(ledger_pages.TOKEN, _build.ledger.index)
    return no_break_spaces(filled)


@event_priority(-100)
def on_page_context(context: Any, page: SitePage, config: MkDocsConfig, nav: Any) -> None:
    """Give the page its switch, and note what it says, for the search."""
    context["switch"] = _build.switch.on(page.file.url)
    if _build.course.here.folder:
        return  # the reference's words are searched
    if not (page.meta.get("search") or {}).get("exclude"):
        rank = search.rank(page.file.src_uri, page.meta)
        _build.said[page.url] = search.Said(page.url, str(page.title), rank, _sections(page))


def _sections(page: SitePage) -> list[search.Section]:
    content = page.content or ""
    place, key = ("sections", page.file.src_uri), digest(content)
    if KEPT.pages.get(place, (b"",))[0] != key:
        KEPT.pages[place] = key, search.sections(content)
    return KEPT.pages[place][1]  # type: ignore[no-any-return]


def on_post_page(output: str, page: SitePage, config: MkDocsConfig) -> str:
    """Put what stands behind the values of a page into a file of its own."""
    uri = PurePosixPath(page.file.dest_uri)
    light, told = value_facts.apart(output, f"{uri.stem}.values.js")
    if told:
        file = Path(config.site_dir) / uri.with_name(f"{uri.stem}.values.js")
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, told)
    return light


def on_post_build(config: MkDocsConfig) -> None:
    """Write the search's index, the ledger for programs, and what the next build need not do again."""
    if not _build.course.here.folder:
        _write_search(config)
    KEPT.write(Path(config.config_file_path).parent)
    write_atomically(Path(config.site_dir) / "ledger.json", ledger.ledger_json(_build.entries))
    _build.is_whole = True
    TURNS.sheets = list(map(str, config.extra_css))


def _write_search(config: MkDocsConfig) -> None:
    for name, text in search.scripts(_build.said.values(), _build.words).items():
        write_atomically(Path(config.site_dir) / name, text)


# --- a site that is served ---------------------------------------------------------------------------------


def on_serve(server: LiveReloadServer, config: MkDocsConfig, builder: Callable[[], None]) -> LiveReloadServer:
    """Build no more than the pages whose prose was edited, where nothing else was."""

    def build_what_was_edited() -> None:
        if not _built_again():
            builder()

    server.builder = build_what_was_edited
    return server


def _built_again() -> bool:
    """Build the pages again whose prose was edited; False where all must be built, if only to say what is wrong."""
    course, root = _build.course, _build.course.root
    was_whole, _build.is_whole = _build.is_whole, False
    now = incremental.look(root)
    edited = incremental.edited_pages(root, _build.seen, now, course.pages) if was_whole else None
    if edited is None:
        return False
    for page in edited:
        before = _build.rendered[page.id]
        after = _build.rendered[page.id] = render_again(course, page, _build.rendered)
        if not incremental.same_for_others(before, after):
            return False
        words.check_page(course, page)
    if course.problems or not all(map(_written_again, edited)):
        return False
    _write_search(_build.config)
    _build.seen, _build.is_whole = now, True
    log.info("Built again: %s", ", ".join(page.path.as_posix() for page in edited))
    return True


def _written_again(page: Page) -> bool:
    """Write a page of the site again; False where its anchors are others than before."""
    file = _build.files.get_file_from_path(site_uri(page.path.as_posix()))
    assert file is not None
    assert file.page is not None
    anchors = file.page.present_anchor_ids
    if page.runs:
        _write_notebook(page)
    _populate_page(file.page, _build.config, _build.files)
    served = _build.files.documentation_pages(inclusion=InclusionLevel.is_in_serve)
    _build_page(file.page, _build.config, served, _build.nav, _build.env)
    file.page.validate_anchor_links(files=_build.files, log_level=_build.config.validation.links.anchors)
    return file.page.present_anchor_ids == anchors
