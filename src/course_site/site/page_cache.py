"""Cache of rendered pages, keyed by everything that goes into them.

MkDocs turns every page into HTML at every build, which depends on little more than the page's own text.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

from course_site.pages.build_cache import KEPT, digest

# What `Page.render` leaves on a page.
RESULTS = ("content", "toc", "_title_from_render", "present_anchor_ids", "links_to_anchors")


class _Heard(logging.Handler):
    """Notes that something was said."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.any = False

    def emit(self, record: logging.LogRecord) -> None:
        self.any = True


def render_once(page: Page, config: MkDocsConfig, files: Files) -> None:
    """Let `page.render` answer from what is kept, where text and files are those of the build before.

    A page that MkDocs warned about is rendered, and warned about, each time.
    """
    render: Callable[..., None] = page.render

    def kept(config: MkDocsConfig, files: Files) -> None:
        settings = re.sub(r" at 0x[0-9a-f]+", "", repr((config.markdown_extensions, config.mdx_configs)))
        key = digest(page.markdown, page.file.src_uri, _addresses(files, len(files)), settings)
        found = KEPT.pages.get(("html", page.file.src_uri))
        if found is not None and found[0] == key:
            page.__dict__.update(found[1])
            page.links_to_anchors = _in_these(files, found[1]["links_to_anchors"])
            return
        heard, log = _Heard(), logging.getLogger("mkdocs")
        log.addHandler(heard)
        try:
            render(config, files)
        finally:
            log.removeHandler(heard)
        if heard.any:
            KEPT.pages.pop(("html", page.file.src_uri), None)
        else:
            results = {name: page.__dict__.get(name) for name in RESULTS}
            links = results["links_to_anchors"]
            results["links_to_anchors"] = links and {file.src_uri: anchors for file, anchors in links.items()}
            KEPT.pages["html", page.file.src_uri] = key, results

    page.render = kept  # type: ignore[method-assign]


@functools.lru_cache(maxsize=1)  # the same for every page of a build
def _addresses(files: Files, count: int) -> bytes:
    """Return a name for the files of a build: links are looked up among them and written relative to a page's own."""
    return digest(count, [(file.src_uri, file.url, file.inclusion.name) for file in files])


def _in_these(files: Files, links: dict[str, dict[str, str]] | None) -> dict[Any, dict[str, str]] | None:
    """Return the links with the same files as objects of this build, so that their anchors are checked anew."""
    if links is None:
        return None
    named = {files.get_file_from_path(uri): anchors for uri, anchors in links.items()}
    return {file: anchors for file, anchors in named.items() if file is not None}
