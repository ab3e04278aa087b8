"""The shell around the stage for MkDocs, and for ProperDocs, which is the same: no more than what they ask for.

It hands Material one Markdown text per page, and mkdocs-jupyter one executed notebook. One edition is built; what it
is, and how, comes from the environment: COURSE_EDITION, COURSE_DRAFT, COURSE_REBUILT, and by COURSE_FIRST the edition
that a reader sees first. What all editions share the reference writes.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment
from mkdocs.commands.build import _build_page, _populate_page
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.livereload import LiveReloadServer
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.nav import Link, Navigation
from mkdocs.structure.pages import Page as SitePage

from course_site.pages.page import Page
from course_site.pages.urls import site_uri
from course_site.site import incremental, navigation, page_cache, shared_files, words
from course_site.site.log_filter import quieten
from course_site.site.stage import Stage, StageFailed, stage
from course_site.site.turns import TURNS

log = logging.getLogger("course")
log.parent = logging.getLogger("mkdocs")  # what the stage says is printed with what MkDocs says
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
    stage: Stage
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
    try:
        staged = _build.stage = stage(
            root,
            os.environ.get("COURSE_EDITION"),
            config.nav or [],
            first=os.environ.get("COURSE_FIRST", ""),
            draft=os.environ.get("COURSE_DRAFT") == "1",
            rebuilt=os.environ.get("COURSE_REBUILT") == "1",
            serves=_build.serves,
        )
    except StageFailed as error:
        raise PluginError(str(error)) from None
    config.nav = staged.nav or None
    config.extra.update(staged.extra)
    config.site_url = staged.course.about.site_url
    config.theme.static_templates -= staged.templates_of_others
    return config


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Lead the foot of a page along its own road; home is before it, and a half of the course ends there."""
    pages = {page.file.src_uri: page for page in nav.pages}
    roads = navigation.roads(config.nav or [])
    halves = [half for half, _ in _build.stage.course.maps.road.halves]
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


@event_priority(-100)  # after mkdocs-jupyter, which would replace our files by its own
def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Put our pages in the place of the scripts MkDocs would copy, publish notebooks, add what no file says."""
    staged = _build.stage
    if not config.site_url and (empty := files.get_file_from_path("sitemap.xml")):
        files.remove(empty)
    for uri, page in staged.pages.items():
        existing = files.get_file_from_path(uri)
        if page.path.suffix == ".md" and existing is not None:
            continue
        if existing is not None:
            files.remove(existing)
        file = PageFile(
            uri, src_dir=None, dest_dir=config.site_dir, use_directory_urls=config.use_directory_urls
        )
        file.generated_by = "course_site"
        if notebook := staged.notebook(page):
            file.abs_src_path = str(notebook)
        files.append(file)
    for uri, content in staged.others():
        how: dict[str, Any] = (
            {"abs_src_path": str(content)} if isinstance(content, Path) else {"content": content}
        )
        files.append(File.generated(config, uri, **how))
    for uri, chapter in staged.ledger.chapters.items():
        inclusion = InclusionLevel.NOT_IN_NAV  # the index leads there
        files.append(File.generated(config, uri, content=chapter.markdown, inclusion=inclusion))
    return files


def on_page_read_source(page: SitePage, config: MkDocsConfig) -> str | None:
    """Return the page as Markdown, with its head as front matter."""
    return _build.stage.markdown(page.file.src_uri)


def on_env(env: Environment, config: MkDocsConfig, files: Files) -> None:
    """Lead to what all editions share, and note what a page that is edited is built again with."""
    if _build.stage.course.here.folder:
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
    return _build.stage.filled(page.file.src_uri, content)


@event_priority(-100)
def on_page_context(context: Any, page: SitePage, config: MkDocsConfig, nav: Any) -> None:
    """Give the page its switch, and note what it says, for the search."""
    context["switch"] = _build.stage.switch.on(page.file.url)
    _build.stage.hear(page.file.src_uri, page.url, str(page.title), page.meta, page.content or "")


def on_post_page(output: str, page: SitePage, config: MkDocsConfig) -> str:
    """Put what stands behind the values of a page into a file of its own."""
    return _build.stage.write_apart(output, Path(config.site_dir), page.file.dest_uri)


def on_post_build(config: MkDocsConfig) -> None:
    """Write what stands on all pages together."""
    _build.stage.finish(Path(config.site_dir))
    _build.is_whole = True
    TURNS.sheets = list(map(str, config.extra_css))


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
    course, root = _build.stage.course, _build.stage.course.root
    was_whole, _build.is_whole = _build.is_whole, False
    now = incremental.look(root)
    edited = incremental.edited_pages(root, _build.seen, now, course.pages) if was_whole else None
    if edited is None:
        return False
    for page in edited:
        if not incremental.same_for_others(*_build.stage.render_again(page)):
            return False
        words.check_page(course, page)
    if course.problems or not all(map(_written_again, edited)):
        return False
    _build.stage.write_search(Path(_build.config.site_dir))
    _build.seen, _build.is_whole = now, True
    log.info("Built again: %s", ", ".join(page.path.as_posix() for page in edited))
    return True


def _written_again(page: Page) -> bool:
    """Write a page of the site again; False where its anchors are others than before."""
    file = _build.files.get_file_from_path(site_uri(page.path.as_posix()))
    assert file is not None
    assert file.page is not None
    anchors = file.page.present_anchor_ids
    _build.stage.notebook(page)
    _populate_page(file.page, _build.config, _build.files)
    served = _build.files.documentation_pages(inclusion=InclusionLevel.is_in_serve)
    _build_page(file.page, _build.config, served, _build.nav, _build.env)
    file.page.validate_anchor_links(files=_build.files, log_level=_build.config.validation.links.anchors)
    return file.page.present_anchor_ids == anchors
