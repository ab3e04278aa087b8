"""The headings of a page and their anchors, as the site will have them."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from course_labs.lab import Lab
from course_site.pages.fences import FENCED
from course_site.pages.page import Page

_HEADING = re.compile(r"^#{1,6}[ \t]+(?P<words>.+?)[ \t]*#*[ \t]*$", re.MULTILINE)
_OWN_ID = re.compile(r"\s*\{:?[^{}]*?#(?P<id>[\w-]+)[^{}]*\}$")
# What a heading says of its section: it is beyond the core of its page, and is folded. `{.beyond}`, or with an anchor
# of its own `{#anchor .beyond}`.
BEYOND = re.compile(r"[ \t]*\{:?(?P<others>[^{}\n]*)(?<=[ {:])\.beyond[ \t]*\}(?=[ \t]*$)", re.MULTILINE)


@functools.lru_cache(maxsize=512)
def _headings(texts: tuple[str, ...]) -> dict[str, str]:
    from markdown.extensions.toc import slugify, unique

    found: dict[str, str] = {}
    for match in _HEADING.finditer(unmarked("\n\n".join(map(without_code_blocks, texts)))):
        words, own = match["words"], _OWN_ID.search(match["words"])
        if own:
            words = words[: own.start()]
        words = re.sub(r"\[\^[^\]]+\]|[`*]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words)).strip()
        slug = own["id"] if own else unique(slugify(words, "-"), set(found))
        found[slug] = words
    return found


def unmarked(text: str) -> str:
    """Markdown whose headings say no more what is beyond the core."""

    def rest(match: re.Match[str]) -> str:
        others = match["others"].strip()
        return f" {{{others}}}" if others else ""

    return BEYOND.sub(rest, text)


def without_code_blocks(text: str) -> str:
    """Markdown without its fenced code, where a # begins no heading."""
    return FENCED.sub("", text)


def heading_lines(text: str) -> list[str]:
    """Return the headings of some Markdown as they are written, with their marks."""
    return [match[0] for match in _HEADING.finditer(without_code_blocks(text))]


def headings(page: Page) -> dict[str, str]:
    """Return the anchors of a page's headings, as the site will have them, with their words."""
    return _headings(tuple(cell.source for cell in page.cells if cell.kind == "markdown"))


def beyond_the_core(page: Page) -> frozenset[str]:
    """Return the anchors of a page's headings that stand in a folded section, its own heading among them."""
    texts = [without_code_blocks(cell.source) for cell in page.cells if cell.kind == "markdown"]
    lines = heading_lines("\n\n".join(texts))
    found, fold = set(), 0  # the level of the heading whose section is folded
    for anchor, line in zip(headings(page), lines, strict=False):
        level = len(line) - len(line.lstrip("#"))
        if level <= fold or not fold:
            fold = level if BEYOND.search(line) else 0
        if fold:
            found.add(anchor)
    return frozenset(found)


def section_at(page: Page, cell: int, offset: int = 0) -> str:
    """Return the anchor of the heading below which a place of a page stands, "" above the first one.

    Args:
        cell: the number of the cell, from 0.
        offset: where in the cell, if it is one of Markdown.
    """
    texts = [one.source for one in page.cells[:cell] if one.kind == "markdown"]
    if page.cells[cell].kind == "markdown":
        texts.append(page.cells[cell].source[:offset])
    above = len(_HEADING.findall("\n\n".join(map(without_code_blocks, texts))))
    return list(headings(page))[above - 1] if above else ""


def section_of_lab(lab: Lab, pages: Mapping[str, Page]) -> str:
    """page#anchor of the section that holds a lab, "" while its page is to come."""
    page = pages.get(lab.page)
    for number, cell in enumerate(page.cells) if page else ():
        at = cell.source.find(f"/// lab | {lab.name}\n") if cell.kind == "markdown" else -1
        if page and at >= 0:
            anchor = section_at(page, number, at)
            return f"{lab.page}#{anchor}" if anchor else ""
    return ""
