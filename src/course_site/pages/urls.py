"""Addresses in the site: of files of the repository, and from one page to another."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from pathlib import Path

# What a page may show a file of. No hidden file is among them, and nothing outside.
SHOWN = ("docs", "handbook", "labs", "proposals", "src", "tests")

Address = Callable[[str], str | None]


def site_uri(path: str) -> str:
    """Place of a repository file in the site's source space: docs/ is the root, handbook/ stays a folder."""
    return path.removeprefix("docs/")


def artifact_uri(page: str, name: str) -> str:
    """Return where the site publishes a file that a page's cell made: in a folder beside the page."""
    return f"{posixpath.splitext(site_uri(page))[0]}.artifacts/{name}"


def shown_file(root: Path, name: str) -> Path:
    """Return a file of the repository that a page may show.

    Raises:
        ValueError: there is none, or it lies where no page may look.
    """
    parts = posixpath.normpath(name).split("/")
    path = root.joinpath(*parts)
    inside = name == "/".join(parts) and parts[0] in SHOWN and not any(part.startswith(".") for part in parts)
    if not inside or not path.resolve().is_relative_to(root.resolve()):
        raise ValueError(f"{name}: a page shows files below {', '.join(SHOWN)} only, by their plain path")
    if not path.is_file():
        raise ValueError(f"there is no file {name}")
    return path


def address_from(page: str, pages: Mapping[str, object]) -> Address:
    """Return how a page of the site names another: a relative address, None for a page that is not there."""

    def address(path: str) -> str | None:
        target, _, fragment = path.partition("#")
        if target not in pages:
            return None
        there = posixpath.splitext(site_uri(target))[0] + ".html"
        folder = posixpath.dirname(site_uri(page)) or "."
        return posixpath.relpath(there, folder) + (f"#{fragment}" if fragment else "")

    return address
