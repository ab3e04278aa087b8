"""The switch between the editions at the head of every page: plain links, which need no server and no script.

A script (docs/assets/js/edition.js) adds the heading that is being read, remembers the choice on the reader's device,
and leads who comes from elsewhere on to the edition that was chosen, where that one has the page.
"""

from __future__ import annotations

import html
import json
import posixpath
from functools import cached_property

from course_site.pages.page import Page
from course_site.pages.urls import site_uri
from course_site.sessions.on_page import OnPage
from course_site.site import ledger_pages
from course_site.site.course import Course
from course_site.site.editions import SiteEdition, across


class Switch:
    """The switches of one edition's pages.

    Args:
        first: the edition for readers who have not chosen, by its folder under records/; "" for the one at the root.
    """

    def __init__(self, course: Course, first: str) -> None:
        self._course, self._first = course, first

    @cached_property
    def _pages(self) -> dict[str, Page]:
        return {
            posixpath.splitext(site_uri(page.path.as_posix()))[0] + ".html": page
            for page in self._course.pages
        }

    def on(self, uri: str) -> OnPage:
        """Return the switch of a page by its place in the edition, such as lectures/l3_memory.html."""
        here = self._course.here
        folder = posixpath.dirname(here.address(uri)) or "."
        root = "" if folder == "." else posixpath.relpath(".", folder) + "/"
        several = len(self._course.editions) > 1
        nav, meta = (self._nav(uri), self._meta(uri)) if several else ("", "")
        return OnPage(nav, meta, here.folder, root, here.name if here.gpu else "")

    def _nav(self, uri: str) -> str:
        entries = "".join(f"<li>{self._entry(one, uri)}</li>" for one in self._course.editions)
        return f'<nav class="editions" aria-label="Numbers of which card"><ul>{entries}</ul></nav>'

    def _entry(self, there: SiteEdition, uri: str) -> str:
        name, here = html.escape(there.name), self._course.here
        if there.slug == here.slug:
            return f'<b aria-current="true">{name}</b>'
        lacks = (
            "" if self._has(there, uri) else f' class="lacks" title="The {name} has not measured this page"'
        )
        address = across(here, uri, there, self._place(there, uri))
        return f'<a href="{address}" data-edition="{there.key}"{lacks}>{name}</a>'

    def _meta(self, uri: str) -> str:
        here = self._course.here
        others = [one for one in self._course.editions if one.slug != here.slug and self._has(one, uri)]
        pages = json.dumps({one.key: across(here, uri, one, uri) for one in others})
        first = next((one.key for one in self._course.editions if one.slug == self._first and one.folder), "")
        more = f' data-first="{first}"' if first else ""
        if here.folder:
            searched = html.escape(self._course.editions[0].name)  # whose words the search knows
            more += f' data-folder="{here.folder}" data-searched="{searched}"'
        return f'<meta name="edition" content="{here.key}" data-pages="{html.escape(pages)}"{more}>'

    def _place(self, there: SiteEdition, uri: str) -> str:
        """Return where an edition has a page: the ledger's page of one that it has not measured is its index."""
        return uri if self._chapter(uri) is None or self._has(there, uri) else "numbers.html"

    def _has(self, there: SiteEdition, uri: str) -> bool:
        page = self._chapter(uri) or self._pages.get(uri)
        return page is None or self._course.has(there, page)

    def _chapter(self, uri: str) -> Page | None:
        """Return the page whose numbers a page of the ledger lists; None for any other page of the site."""
        folder, name = posixpath.split(uri)
        mine = [page for page in self._course.pages if f"{page.id}.html" == name]
        return mine[0] if mine and folder == ledger_pages.FOLDER else None
