"""Parts of other pages: a figure, a chart, a table, a claim, a text that one page shows and another has.

`/// part | docs/lectures/l3_memory.py#how-far-is-it | chart`: the first chart between that heading and
the next.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

from course_site.pages.blocks import Block, DirectiveError, parse, walk_blocks
from course_site.pages.fences import lines
from course_site.pages.headings import heading_lines, headings
from course_site.pages.page import Page

# What can stand on a page of its own: who asks a question, or shows code, leads to the page that does.
QUOTED = ("figure", "chart", "table", "claim", "text")


def place_of(argument: str) -> tuple[str, str, str]:
    """Return the page, the anchor and the kind that the head of a block names.

    Raises:
        DirectiveError: it names fewer, or a kind of block that is quoted nowhere.
    """
    place, bar, kind = (part.strip() for part in argument.rpartition("|"))
    path, mark, anchor = place.partition("#")
    if not (bar and mark and path and anchor):
        raise DirectiveError("write `/// part | docs/PAGE.py#heading | chart`")
    if kind not in QUOTED:
        raise DirectiveError(f"{kind!r} is not quoted from other pages; known: {', '.join(QUOTED)}")
    return path, anchor, kind


def part_of(argument: str, which: int, pages: Mapping[str, Page]) -> tuple[Page, str, Block]:
    """Return the page that a part is of, the words of the heading that it stands below, and the part.

    Args:
        argument: of the block.
        which: of the blocks of that kind below that heading, from 1.
        pages: all pages, by their paths.
    Raises:
        DirectiveError: there is no such page, heading or block.
    """
    path, anchor, kind = place_of(argument)
    page = pages.get(path)
    if page is None:
        raise DirectiveError(f"there is no page {path}")
    if anchor not in headings(page):
        raise DirectiveError(f"{path} has no heading #{anchor}")
    found = [block for block in _below(page, anchor) if block.kind == kind]
    if not 1 <= which <= len(found):
        have = {0: f"no {kind}", 1: f"one {kind}"}.get(len(found), f"{len(found)} blocks of kind {kind}")
        raise DirectiveError(f"{path}#{anchor} has {have}, and number {which} is asked for")
    return page, headings(page)[anchor], found[which - 1]


def _below(page: Page, anchor: str) -> Iterable[Block]:
    """Yield the blocks between a heading and the next one, those inside of others too."""
    for section, text in _sections(page):
        if section == anchor:
            yield from walk_blocks(parse(text))


@functools.lru_cache(maxsize=512)
def _sections(page: Page) -> list[tuple[str, str]]:
    """Return the prose of a page in pieces, each with the anchor of the heading below which it stands."""
    anchors, found, above = ["", *headings(page)], [], 0
    for cell in page.cells:
        if cell.kind != "markdown":
            continue
        start = 0  # a section begins and ends amid a cell
        for at in _headings_in(cell.source):
            found.append((anchors[above], cell.source[start:at]))
            start, above = at, above + 1
        found.append((anchors[above], cell.source[start:]))
    return found


def _headings_in(text: str) -> list[int]:
    """Return where in some Markdown the lines of its headings end."""
    places, at = [], 0
    for line in lines(text):
        at += len(line.text)
        if not line.part and heading_lines(line.text):
            places.append(at)
    return places


def pages_quoted_by(page: Page) -> set[str]:
    """Return the paths of the pages that a page shows parts of."""
    found = set()
    for cell in page.cells:
        if cell.kind == "markdown" and "/// part" in cell.source:
            found |= {
                place_of(block.argument)[0]
                for block in walk_blocks(parse(cell.source))
                if block.kind == "part"
            }
    return found
