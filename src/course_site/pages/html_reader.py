"""A reader of HTML that is fast on what this build writes: well-formed tags, found by one expression each.

Whatever else a page holds (a bare `<`, a tag that is left open, a processing instruction) is left to the parser of the
standard library, for the whole of that page: the events are the same in either way.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser

_ATTRIBUTE = r"""\s+([^\s/>="'<]+)(?:="([^"]*)"|='([^']*)'|=([^\s"'=<>`/]+(?=[\s>]|\Z)))?"""
_ATTRIBUTES = re.compile(_ATTRIBUTE)
_TAG = re.compile(
    r"<(?:([A-Za-z][A-Za-z0-9:-]*)((?:" + re.sub(r"\((?!\?)", "(?:", _ATTRIBUTE) + r")*+)\s*+(/?)>"
    r"|/([A-Za-z][A-Za-z0-9:-]*)\s*+>|!--(?:(?!--).)*+-->|!(?i:doctype)\b[^>\[]*>)",
    re.DOTALL,
)
_RAW = {name: re.compile(rf"</{name}\s*>", re.IGNORECASE) for name in ("script", "style")}
# Without its semicolon a reference is read in one way by some versions of Python, and in another by others.
_ODD_REFERENCE = re.compile(r"&(?!#?\w+;)")

_Attributes = list[tuple[str, str | None]]
_Tag = tuple[str, str, _Attributes]  # start, end, alone or nothing; its name; its attributes
_Event = tuple[
    int, str, str, _Attributes
]  # place, a tag's kind or data, its name or the words, its attributes


class HtmlReader(HTMLParser):
    """`HTMLParser` for a whole text at once: `handle_starttag`, `handle_endtag` and `handle_data` are told of it."""

    def reset(self) -> None:
        """Forget what was read."""
        super().reset()
        self._read: str | None = None
        self._at = self._counted = 0
        self._line = 1

    def feed(self, data: str) -> None:
        """Read a text."""
        events = None if self._read is not None or self.rawdata else _events(data)
        if events is None:
            super().feed(data)
            return
        self._read = data
        for self._at, kind, name, attributes in events:
            if kind == "data":
                self.handle_data(name)
            elif kind == "end":
                self.handle_endtag(name)
            elif kind == "start":
                self.handle_starttag(name, attributes)
            elif kind == "alone":
                self.handle_startendtag(name, attributes)
        self._read = None

    @property
    def line(self) -> int:
        """The line of what is told, the first of a text is 1."""
        if self._read is None:
            return self.getpos()[0]
        self._line += self._read.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line


def _events(text: str) -> list[_Event] | None:
    """Tell what a text says, in order; None where it holds something that is not well-formed."""
    found: list[_Event] = []
    at = 0
    while (start := text.find("<", at)) >= 0:
        if at < start:
            found.append((at, "data", unescape(text[at:start]), []))
        tag, at = _tag_at(text, start)
        if tag is None:
            return None
        kind, name, _ = tag
        found.append((start, *tag))
        if kind == "start" and name in _RAW:
            if (end := _RAW[name].search(text, at)) is None:
                return None
            if at < end.start():
                found.append((at, "data", text[at : end.start()], []))
            at = end.start()
    if at < len(text):
        found.append((at, "data", unescape(text[at:]), []))
    return found


def _tag_at(text: str, start: int) -> tuple[_Tag | None, int]:
    """Return the tag that begins at a place, and where it ends."""
    end = text.find(">", start) + 1
    tag = _tag(text[start:end])
    if tag is None and (match := _TAG.match(text, start)):  # one with a ">" in it
        tag, end = _tag(match.group()), match.end()
    return tag, end


@functools.lru_cache(maxsize=16384)  # most tags of a page stand on it many times, and on the others
def _tag(text: str) -> _Tag | None:
    match = _TAG.fullmatch(text)
    if match is None or _ODD_REFERENCE.search(text):
        return None
    opened, attributes, closes, closed = match.groups()
    if closed:
        return "end", closed.lower(), []
    if not opened:
        return "", "", []
    return "alone" if closes else "start", opened.lower(), list(_pairs(attributes))


def _pairs(attributes: str) -> Iterator[tuple[str, str | None]]:
    for match in _ATTRIBUTES.finditer(attributes):
        value = match[match.lastindex] if match.lastindex and match.lastindex > 1 else None
        yield match[1].lower(), unescape(value) if value else value
