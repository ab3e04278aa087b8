"""The notebook published beside a page: fresh prose, values filled in, charts as pictures, outputs.

It is taken home: a mark leads to its source, all sources stand in a last cell, and a link leads to the site.
"""

from __future__ import annotations

import base64
import json
import posixpath
import re
from typing import Any

from course_site.charts import plots
from course_site.pages.bibliography import reference
from course_site.pages.code_spans import outside_verbatim
from course_site.pages.headings import unmarked
from course_site.pages.page import Page
from course_site.pages.plain_text import CITE
from course_site.pages.urls import site_uri
from course_site.records.record import MIME
from course_site.site.course import Course
from course_site.site.render.rendered import Rendered

_CALLOUT = re.compile(
    r'^<div class="callout \w+" markdown="1">\n\n<p class="kind">(?P<kind>[^<]*)</p>\n+(?P<body>.*?)\n\n</div>$',
    re.DOTALL | re.MULTILINE,
)
_TARGET = re.compile(r"(?<=\]\()[^)\s]+")


def published_notebook(course: Course, page: Page, rendered: Rendered) -> str:
    """Return the page as a notebook that anybody can open and, on a GPU, run."""
    cells: list[dict[str, Any]] = []
    cited: dict[str, int] = {}
    for kind, content in rendered.cells:
        if kind == "markdown":
            cells.append(_cell("markdown", _taken_home(_plain(content, rendered), course, page, cited)))
        else:
            cell, outputs = content
            cells.append({**_cell("code", cell.source), "execution_count": None, "outputs": _shown(outputs)})
    if cited:
        sources = (f"{number}. {reference(course.sources[key])}" for key, number in cited.items())
        cells.append(_cell("markdown", "\n".join(["## Sources", "", *sources])))
    for number, entry in enumerate(cells, start=1):
        entry["id"] = f"cell-{number:03d}"
    record = course.records.get(page.id)
    stamp = {}
    if record and record.measured:
        stamp = {"measured_on": record.edition, "date": record.meta["provenance"]["date"]}
    notebook = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
            "percent_of_peak": {"page": page.path.as_posix(), **stamp},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _cell(kind: str, source: str) -> dict[str, Any]:
    return {"cell_type": kind, "metadata": {}, "source": source}


def _plain(markdown: str, rendered: Rendered) -> str:
    """Markdown without the site's own HTML: a value is its text, a block is its words."""
    text = re.sub(r'<(?:a|span) class="value"[^>]*>(.*?)</(?:a|span)>', r"\1", markdown)
    for token in rendered.slots:
        drawn = rendered.pictures.get(token) if token in text else None
        text = text.replace(token, _picture(*drawn) if drawn else rendered.words.get(token, ""))
    text = unmarked(text)
    text = _CALLOUT.sub(_as_quotation, text)
    text = re.sub(r'<(p|legend) class="ask">(.*?)</\1>', r"**\2**", text)
    text = re.sub(r"^- <label>(?:<span>)?(.*?)</span></label>$", r"- \1", text, flags=re.MULTILINE)
    text = re.sub(r"<summary>(.*?)</summary>", r"<summary>\1</summary>\n", text)
    text = re.sub(r"^</?(?:div|fieldset)[^>]*>$", "", text, flags=re.MULTILINE)
    text = re.sub(r' markdown="\w+"', "", text)
    text = re.sub(r"^\{: [^}]*\}$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^(`{3,}) \{ \.(\w+)[^}]*\}$", r"\1\2", text, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _taken_home(text: str, course: Course, page: Page, cited: dict[str, int]) -> str:
    """Markdown that needs nothing of the site: marks with their sources' addresses, links to the site's pages.

    Args:
        cited: the sources' numbers, in the order of their first marks; new ones are added.
    """

    def mark(found: re.Match[str]) -> str:
        if found[1] not in course.sources:
            return found.group()
        number = cited.setdefault(found[1], len(cited) + 1)
        return f"[\\[{number}\\]](<{course.sources[found[1]].url}>)"

    def link(found: re.Match[str]) -> str:
        return _address(found.group(), site_uri(page.path.as_posix()), course.about.site_url)

    return outside_verbatim(text, lambda part: CITE.sub(mark, _TARGET.sub(link, part)))


def _address(target: str, here: str, site: str) -> str:
    """Return a link's target as it is on the site: whole where its address is known, else from the page's folder."""
    path, hash_, anchor = target.partition("#")
    if re.match(r"\w+:", target) or target.startswith("<"):
        return target
    stem, suffix = posixpath.splitext(path or posixpath.basename(here))
    path = f"{stem}.html" if suffix in (".py", ".md") else path
    if site:
        path = site + posixpath.normpath(posixpath.join(posixpath.dirname(here), path))
    return f"{path}{hash_}{anchor}"


def _as_quotation(callout: re.Match[str]) -> str:
    """Return a callout as Markdown has it: its kind in bold, and a bar along all of it."""
    body = f"**{callout['kind']}**\n\n{callout['body']}"
    return "\n".join(f"> {line}".rstrip() for line in body.splitlines())


def _picture(svg: str, alt: str) -> str:
    """Return a picture that stands alone: every colour falls back to its own, on white paper."""
    svg = plots.standalone(svg)
    if "xmlns=" not in svg.split(">", 1)[0]:
        svg = svg.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    data = base64.b64encode(svg.encode()).decode()
    words = alt.replace("[", "(").replace("]", ")").replace("\n", " ")
    return f"![{words}](data:image/svg+xml;base64,{data})"


def _shown(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the outputs as recorded; of a recording only the line that says what was recorded."""
    kept = []
    for output in outputs:
        data = output.get("data", {})
        if MIME in data:
            output = {**output, "data": {"text/plain": data["text/plain"]}}
        kept.append(output)
    return kept
