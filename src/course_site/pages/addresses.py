"""Where a file of the repository lies in the site, and how one page of the site names another."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping

Address = Callable[[str], str | None]


def site_uri(path: str) -> str:
    """Place of a repository file in the site's source space: docs/ is the root, handbook/ stays a folder."""
    return path.removeprefix("docs/")


def address_from(page: str, pages: Mapping[str, object]) -> Address:
    """How a page of the site names another: a relative address, None for a page that is not there."""

    def address(path: str) -> str | None:
        target, _, fragment = path.partition("#")
        if target not in pages:
            return None
        there = posixpath.splitext(site_uri(target))[0] + ".html"
        folder = posixpath.dirname(site_uri(page)) or "."
        return posixpath.relpath(there, folder) + (f"#{fragment}" if fragment else "")

    return address
