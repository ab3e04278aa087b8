"""Fenced code: how it is written, so that no back tick in it closes it early, and where in some Markdown it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

LANGUAGES = {".cu": "cuda", ".cuh": "cuda", ".py": "python", ".toml": "toml", ".md": "markdown"}

# Code ends at a line of marks of the same kind, as many or more, or else with the text. `says` stands behind the first.
FENCED = re.compile(
    r"(?P<open>^[ \t>]*(?P<marks>(?P<mark>[`~])(?P=mark){2,})(?P<says>[^\n]*)(?:\n|\Z))"
    r"(?P<code>.*?)(?P<end>^[ \t>]*(?P=marks)(?P=mark)*[ \t]*(?:\n|\Z)|\Z)",
    re.MULTILINE | re.DOTALL,
)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


class Line(NamedTuple):
    """A line of Markdown, with its end; `part` is what it is of fenced code: open, code, end, or nothing."""

    text: str
    part: str = ""
    says: str = ""  # behind the marks that open the code


def fenced(text: str, attributes: str) -> str:
    """Return a fenced block; `attributes` are its classes and options, such as `.python title="…"`."""
    fence = "`" * max(3, 1 + max((len(m) for m in re.findall(r"`+", text)), default=0))
    return f"{fence} {{ {attributes} }}\n{text}\n{fence}"


def lines(text: str) -> Iterator[Line]:
    """Yield every line of some Markdown, in order."""
    done = 0
    for match in FENCED.finditer(text):
        yield from (Line(line) for line in _LINE.findall(text[done : match.start()]))
        for part in ("open", "code", "end"):
            yield from (Line(line, part, match["says"]) for line in _LINE.findall(match[part]))
        done = match.end()
    yield from (Line(line) for line in _LINE.findall(text[done:]))
