"""Blocks that list what the whole site has: its numbers, what moved, its words, its keys."""

from __future__ import annotations

from course_site.pages import glossary
from course_site.pages.blocks import Block
from course_site.site import ledger, ledger_pages
from course_site.site.render.writer import Writer


def every_number(writer: Writer, _block: Block) -> str:
    """Return the ledger's index, which is put in once every page has been rendered."""
    return writer.slot(ledger_pages.TOKEN)


def moved(writer: Writer, _block: Block) -> str:
    """Return what left its stated interval from one run to the next."""
    return ledger.moved_markdown(writer.course)


def words(writer: Writer, _block: Block) -> str:
    """Return the glossary."""
    return glossary.glossary_markdown(writer.course.terms)


def kitchen(writer: Writer, _block: Block) -> str:
    """Return the kitchen key."""
    return glossary.kitchen_markdown(writer.course.terms)


# Each as a page shows it, and what a reader gets for a tap on it.
_MARKS = (
    ("word", "a dotted word", "what it means"),
    ("number", "an underlined number", "which run it comes from"),
    ("sentence", "tested", "what the build checks before this sentence may appear here"),
)


def key(writer: Writer, _block: Block) -> str:
    """Return the marks of a page in three lines."""
    lines = "".join(f'<li><span class="{css}">{mark}</span>: {says}</li>' for css, mark, says in _MARKS)
    ask = "Tap one, or go there with the Tab key:"
    return writer.slot(f'<div class="key"><p>{ask}</p><ul>{lines}</ul></div>')
