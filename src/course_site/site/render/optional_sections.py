"""Folded sections beyond the core of a page: the section of every heading that is marked `{.beyond}`.

The heading stays where it is, with its anchor and its place in the table of contents. A section may run over cells of
code and charts, so it is folded when the whole page stands there as Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from course_site.pages import fences
from course_site.pages.blocks import DirectiveError
from course_site.pages.headings import BEYOND
from course_site.site.render import reading_time
from course_site.site.render.writer import details

_HEADING = re.compile(r"(#{1,6})[ \t]+\S")
_BLOCK = re.compile(r"<(?P<end>/?)(?:div|details)\b")


@dataclass(frozen=True)
class _Heading:
    line: int
    level: int
    text: str
    inside: bool  # of a block

    @property
    def beyond(self) -> bool:
        return bool(BEYOND.search(self.text))


def folded(markdown: str, slots: dict[str, str], words: dict[str, str]) -> str:
    """Return a page with its marked sections folded, each with its own minutes.

    Args:
        markdown: the page; tokens stand where HTML belongs.
        slots, words: what they stand for, see `Rendered`.
    Raises:
        DirectiveError: a mark that folds nothing: at the title, inside a block, inside a section that is folded.
    """
    lines = markdown.split("\n")
    every = list(_headings(markdown))
    parts: list[str] = []
    done, fold = 0, None
    for heading in every:
        said = heading.text.strip("# \t")
        if fold is not None and not heading.inside and heading.level <= fold.level:
            parts += _fold(lines, fold, heading.line, slots, words)
            done, fold = heading.line, None
        if not heading.beyond:
            continue
        if heading.level == 1:
            raise DirectiveError(f"{said}: a whole page cannot be beyond its core")
        if heading.inside:
            raise DirectiveError(f"{said}: is in a block, and only a section can be folded")
        if fold is not None:
            raise DirectiveError(f"{said}: its section is folded already, with {fold.text.strip('# ')!r}")
        parts += lines[done : heading.line]
        done, fold = heading.line, heading
    if fold is not None:
        parts += _fold(lines, fold, len(lines), slots, words)
        done = len(lines)
    return "\n".join([*parts, *lines[done:]])


def _headings(markdown: str) -> Iterator[_Heading]:
    depth = 0
    for number, line in enumerate(fences.lines(markdown)):
        if line.part:
            continue
        for tag in _BLOCK.finditer(reading_time.CODE.sub("", line.text)):
            depth += -1 if tag["end"] else 1
        found = _HEADING.match(line.text)
        if found:
            yield _Heading(number, len(found[1]), line.text.rstrip("\n"), depth > 0)


def _fold(
    lines: list[str], heading: _Heading, end: int, slots: dict[str, str], words: dict[str, str]
) -> list[str]:
    body = "\n".join(lines[heading.line + 1 : end])
    if not body.strip():
        raise DirectiveError(f"{heading.text.strip('# ')}: there is nothing to fold")
    core, _ = reading_time.minutes(body, slots, words)
    whole = core.whole
    summary = f"Beyond the core, {whole} minute{'s' * (whole != 1)}"
    return [lines[heading.line], "", *details("beyond", summary, body).split("\n"), ""]
