"""Blocks that list what the whole site has: its numbers, what moved, its words, the key to the kitchen, its sources."""

from __future__ import annotations

from course_site.pages import bibliography, glossary
from course_site.pages.blocks import Block
from course_site.site import ledger, ledger_pages
from course_site.site.render.writer import Writer


def every_number(writer: Writer, _block: Block) -> str:
    """The ledger's index, which is put in once every page has been rendered."""
    return writer.slot(ledger_pages.TOKEN)


def moved(writer: Writer, _block: Block) -> str:
    """What left its stated interval from one run to the next."""
    return ledger.moved_markdown(writer.course)


def words(writer: Writer, _block: Block) -> str:
    """The glossary."""
    return glossary.glossary_markdown(writer.course.terms)


def kitchen(writer: Writer, _block: Block) -> str:
    """The kitchen key."""
    return glossary.kitchen_markdown(writer.course.terms)


def sources(writer: Writer, _block: Block) -> str:
    """The bibliography."""
    return bibliography.bibliography_markdown(writer.course.sources)
