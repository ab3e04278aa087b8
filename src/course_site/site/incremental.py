"""An edit of a served site: what was edited, and whether it touches no more than the prose of the pages it is in.

Prose is what stands between headings and blocks, and in blocks that hold prose. Nothing but its own page is made from
it, save what `same_for_others` looks at. Whatever else is edited, everything is built anew.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from course_site.pages import blocks
from course_site.pages.bibliography import cited_keys
from course_site.pages.blocks import KINDS, Block
from course_site.pages.headings import heading_lines
from course_site.pages.page import Page, read_page
from course_site.pages.parts import pages_quoted_by
from course_site.site.render.rendered import Rendered

Look = Mapping[str, tuple[int, int]]
# At the top of a repository, what no page is made from: what is hidden, and what is built.
_BUILT = frozenset({"site", "build", "wheelhouse"})


def look(root: Path) -> Look:
    """Return every file that a page could be made from, with its date and its size."""
    found: dict[str, tuple[int, int]] = {}
    todo = [(entry, entry.name) for entry in os.scandir(root) if entry.name not in _BUILT]
    while todo:
        entry, name = todo.pop()
        if entry.name.startswith(".") or entry.name == "__pycache__":
            continue
        if entry.is_dir():
            todo += [(inside, f"{name}/{inside.name}") for inside in os.scandir(entry)]
        else:
            with contextlib.suppress(FileNotFoundError):  # what an editor wrote for a moment
                stat = entry.stat()
                found[name] = stat.st_mtime_ns, stat.st_size
    return found


def edited_pages(root: Path, before: Look, now: Look, pages: Iterable[Page]) -> list[Page] | None:
    """Return the pages whose prose was edited, as they are now; None where anything else was.

    Args:
        before, now: what `look` saw when these pages were read, and what it sees now.
    """
    names = {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
    known = {page.path.as_posix(): page for page in pages}
    if not names or not names <= known.keys() & now.keys():  # none: somewhere where nobody looked
        return None
    if names & set().union(*map(pages_quoted_by, known.values())):  # parts of it stand on other pages, too
        return None
    try:
        found = [read_page(root / name, root) for name in sorted(names)]
        same = all(_outline(page) == _outline(known[page.path.as_posix()]) for page in found)
    except (OSError, ValueError):  # the build says what is wrong
        return None
    return found if same else None


def same_for_others(before: Rendered, after: Rendered) -> bool:
    """Return whether a page has the same values, sources and minutes: ledger, bibliography and home show these."""
    minutes = [tuple(part.whole for part in one.minutes) for one in (before, after)]
    return before.shown == after.shown and before.cited == after.cited and minutes[0] == minutes[1]


def _outline(page: Page) -> list[Any]:
    """Return all of a page but its prose."""
    cells: list[Any] = []
    for cell in page.cells:
        if cell.kind == "markdown":
            cells.append([_without_prose(blocks.parse(cell.source)), cited_keys(cell.source)])
        else:
            cells.append(cell)
    return [page.path, page.id, page.title, page.description, page.needs, page.meta, *cells]


def _without_prose(nodes: Iterable[str | Block]) -> list[Any]:
    return [heading_lines(node) if isinstance(node, str) else _block(node) for node in nodes]


def _block(block: Block) -> list[Any]:
    parts = {"": block.body, **block.parts}
    inside = {name: _without_prose(nodes) for name, nodes in parts.items()}
    holds_prose = KINDS[block.kind].body in ("prose", "words")
    return [block.kind, block.argument, block.minutes, inside if holds_prose else block]
