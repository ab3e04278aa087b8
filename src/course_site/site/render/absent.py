"""A page that an edition does not have: one line that says why and leads to the edition that has it, and its headings.

No number of another card stands there. The headings keep their anchors, so that a link to one still leads to its words,
and goes on from there.
"""

from __future__ import annotations

import html

from course_site.pages.headings import headings
from course_site.site.editions import SiteEdition
from course_site.site.render.writer import Writer


def markdown(writer: Writer) -> str:
    """Return the page as Markdown."""
    page, there = writer.page, writer.course.elsewhere(writer.page)
    anchors = iter(headings(page).items())
    first, _ = next(anchors, ("", ""))
    entries = "".join(
        f'<li id="{anchor}">{_link(writer, there, anchor, words)}</li>' for anchor, words in anchors
    )
    parts = [f"# {page.title} {{#{first}}}" if first else f"# {page.title}"]
    parts.append(f'<div class="banner absent"><p>{_why(writer)} {_where(writer, there)}</p></div>')
    parts.append(html.escape(page.description, quote=False))
    parts.append(f'<ul class="its-headings">{entries}</ul>' if entries else "")
    return "\n\n".join(filter(None, parts)) + "\n"


def dashes(writer: Writer) -> str:
    """Return the line under a page's title that says what its dashes mean."""
    card, there = html.escape(writer.course.here.name), writer.course.editions[0]
    link = _link(writer, there, "", f"the same page of the {there.name}")
    found = f" It is on {link}." if there.slug != writer.course.slug else ""
    return f'<p class="dashes">A dash (—) stands for a number that the {card} has not measured.{found}</p>'


def _why(writer: Writer) -> str:
    card = html.escape(writer.course.here.name)
    lacks = writer.course.edition.lacking.get(writer.page.path.as_posix())
    if lacks:
        return f"<strong>Not on the {card}.</strong> This page {html.escape(lacks)}."
    return f"<strong>The {card} has not measured this page yet.</strong>"


def _where(writer: Writer, there: SiteEdition | None) -> str:
    if there is None:
        return "Nor has any other card." if len(writer.course.editions) > 1 else ""
    return f"Here it is, {_link(writer, there, '', f'measured on the {there.name}')}."


def _link(writer: Writer, there: SiteEdition | None, anchor: str, words: str) -> str:
    said = html.escape(words, quote=False)
    if there is None:
        return said
    address = writer.in_edition(there) + (f"#{anchor}" if anchor else "")
    return f'<a href="{address}" data-edition="{there.key}">{said}</a>'
