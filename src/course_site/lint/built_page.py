"""The visible text of a built page, and the last check of it for typed numbers and for sums.

The page is read as HTML, after everything has been put together, so it does not matter how a number came in: by
Markdown, an attribute, an entity, a template or a setting. Values of a record, code, drawn charts and what others are
cited for are known by the elements that only the build makes.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from course_site.lint.lint import BARE
from course_site.lint.printed_sums import RAISE, wrong_sums
from course_site.lint.typed_numbers import FILL, HEADER_UNIT, NUMBER, RATE, TIME, in_sentence, is_excused
from course_site.pages.build_cache import SEEN, digest
from course_site.pages.plain_text import CITE, HELD, plain_words, sentences

# Elements that stand in a line of text; whatever else there is begins a text of its own.
_IN_LINE = frozenset(
    {
        "a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "del", "dfn", "em", "i", "ins", "kbd", "label", "mark",
        "meter", "output", "progress", "q", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "tspan", "u",
        "var", "wbr",
    }
)  # fmt: skip
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)
_SPOKEN = ("alt", "title", "aria-label", "placeholder", "content")
# What the build fills from records, and what shows code: by the class of its element.
MADE = frozenset({"value", "tested", "chart", "data", "stamp", "origin", "highlight", "waits", "ledger"})
_DRAWN = frozenset(
    {
        "text", "g", "path", "rect", "line", "circle", "polyline", "polygon", "ellipse", "use", "defs", "marker",
        "clippath",
    }
)  # fmt: skip
# What says how a sentence is held up; like those, no author writes them.
GIVEN = frozenset({"claim", "predict", "choices", "reveal", "footnote-ref"})
_CODE = frozenset({"code", "pre", "kbd", "samp", "math"})
_NO_SUMS = (MADE - {"value"}) | _CODE
_UNIT = re.compile(rf"{RATE}|{TIME}|%")
_ENDS_IN_NUMBER = re.compile(rf"^\s*{NUMBER}\s*$")
_BEGINS_WITH_UNIT = re.compile(
    rf"\s*(?:{RATE}|{TIME}|[MG]Hz|[mk]?W|watts?|%|per\s?cent|cycles|ticks)\s*[.,;]?\s*$"
)
_RAW = re.compile(r"\[\^[\w.:-]+\]")
_CELL_NUMBER = re.compile(r"(?<![A-Za-z0-9_.])\d+(?:[.,]\d+)*")
_SKIPPED = frozenset({"script", "style", "template", "noscript"})
_FOOTNOTE = re.compile(r"fnref\d*:(.+)")
_NOTE = re.compile(r"fn:(.+)")


@dataclass(frozen=True)
class Piece:
    """A text of a page, such as a paragraph, a cell or an alternative text.

    Attributes:
        line: where it begins in the HTML.
        condition: of the claim it stands in; None outside of one.
        kinds: the classes and tags it stands in.
        head: of a cell, what stands above its column.
        note: the key of the source that it is a note on, which cites it as long as the note is.
        printed: the text with its values in it, and its powers raised; "" where a picture says it.
    """

    line: int
    text: str
    condition: str | None
    kinds: frozenset[str]
    head: str = ""
    note: str = ""
    printed: str = ""


class _Open(NamedTuple):
    tag: str
    kinds: frozenset[str]
    made: bool
    silent: bool
    condition: str | None
    note: str = ""  # the key of the source that this is a note on


class Words:
    """Collects the texts of a page from the events of an HTML parser."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.unresolved: list[tuple[int, str]] = []  # citations that stand on the page as they were typed
        self._open: list[_Open] = []
        self._words: list[str] = []
        self._printed: list[str] = []  # the same, with the values in it
        self._line = 0
        self._heads: list[str] = []  # of the table that is open
        self._head = ""
        self._column = 0  # the first one names the rows

    def start(self, tag: str, values: dict[str, str], line: int) -> None:
        """Begin an element."""
        classes = frozenset(values.get("class", "").split())
        if tag in ("text", "br"):
            self._append(" ")  # of a picture: a number and its unit may be two texts, or two lines of one
        elif tag not in _IN_LINE and tag not in _DRAWN:
            self.flush()
        above = self._open[-1] if self._open else _Open("", frozenset(), False, False, None)
        condition = values.get("data-condition") if "claim" in classes else None
        made = above.made or bool(classes & MADE)
        if not made:
            self._spoken(tag, values, line)
        if tag == "table":
            self._heads = []
        elif tag == "tr":
            self._column = 0
        if tag == "sup" and (cited := _FOOTNOTE.fullmatch(values.get("id", ""))):
            self._words.append(f"[^{cited[1]}]")
        if tag not in _VOID:
            silent = above.silent or tag in _SKIPPED or "footnote-ref" in classes
            kinds = above.kinds | classes | {tag}
            held = made or tag in _CODE
            note = _NOTE.fullmatch(values.get("id", ""))
            said = condition or above.condition
            self._open.append(
                _Open(tag, kinds, held or above.made, silent, said, note[1] if note else above.note)
            )

    def end(self, tag: str) -> None:
        """End an element, and what was left open in it."""
        if tag not in _IN_LINE and tag not in _DRAWN:
            self.flush()
        corner = tag == "td" and not self._column  # above the names of the rows, where there is no head
        if (tag == "th" or corner) and self._column == len(self._heads):
            self._heads.append(self._head)
        if tag in ("td", "th"):
            self._head = ""
            self._column += 1
        for i in range(len(self._open) - 1, -1, -1):
            if self._open[i].tag == tag:
                del self._open[i:]
                break

    def text(self, data: str, line: int) -> None:
        """Add words to the element that is open."""
        inside = self._open[-1] if self._open else None
        if not data.strip():
            if self._words:
                self._append(" ")
        elif not inside or not inside.silent:
            if not self._words:
                self._line = line
            held = bool(inside and inside.made)
            if not held and (mark := _RAW.search(data)):
                self.unresolved.append((line, mark[0]))
            if inside and inside.tag == "code" and not inside.kinds & {*MADE, "pre"}:  # within a line
                held = not BARE.fullmatch(data)
                if held:
                    self.pieces.append(Piece(line, data, inside.condition, inside.kinds))
            self._append(HELD if held else data, self._as_printed(data, inside))

    def _append(self, words: str, printed: str | None = None) -> None:
        self._words.append(words)
        self._printed.append(words if printed is None else printed)

    @staticmethod
    def _as_printed(data: str, inside: _Open | None) -> str:
        if inside is None:
            return data
        if inside.kinds & _NO_SUMS:
            return HELD
        return data.translate(RAISE) if "sup" in inside.kinds else data

    def _spoken(self, tag: str, values: dict[str, str], line: int) -> None:
        inside = self._open[-1] if self._open else None
        for name in _SPOKEN:
            if values.get(name, "").strip() and not (tag == "meta" and values.get("name") == "viewport"):
                kinds = inside.kinds if inside else frozenset()
                self.pieces.append(Piece(line, values[name], inside.condition if inside else None, kinds))

    def flush(self) -> None:
        """End a text."""
        text = " ".join("".join(self._words).split())
        printed = " ".join("".join(self._printed).split())
        self._words.clear()
        self._printed.clear()
        if text.strip(f"{HELD} ."):
            inside = self._open[-1] if self._open else None
            kinds = inside.kinds if inside else frozenset()
            head = self._heads[self._column] if "td" in kinds and 0 < self._column < len(self._heads) else ""
            if "th" in kinds:
                self._head = text
            condition, note = (inside.condition, inside.note) if inside else (None, "")
            self.pieces.append(Piece(self._line, text, condition, kinds, head, note, printed))


def typed_numbers(pieces: list[Piece], keys: Collection[str]) -> Iterator[tuple[int, str, str]]:
    """Line, excerpt and reason of every typed number among the texts of a page.

    Args:
        keys: of the bibliography; who cites one speaks of somebody else's number.
    """
    before = Piece(0, "", None, frozenset())
    for piece in pieces:
        if "choices" in piece.kinds:
            continue
        noted = piece.note in keys
        cited = is_excused(piece.text, noted or any(key in keys for key in CITE.findall(piece.text)))
        number = None if cited else _CELL_NUMBER.search(piece.text)
        if number and number[0] not in ("0", "1", "100") and HEADER_UNIT.search(piece.head):
            yield piece.line, f"{number[0]} under {piece.head}", f"a typed number in a table; {FILL}"
        if (
            _ENDS_IN_NUMBER.search(before.text)
            and _BEGINS_WITH_UNIT.match(piece.text)
            and "td" not in piece.kinds
        ):
            yield (
                piece.line,
                f"{before.text} {piece.text}",
                f"a typed number and its unit, one after the other; {FILL}",
            )
        before = piece
        in_code = "code" in piece.kinds
        for excerpt, why in _typed_in(
            plain_words(piece.text), "claim" in piece.kinds, piece.condition, frozenset(keys), noted
        ):
            # Words of a picture stand beside each other as they were drawn, and code compares no speeds: only a unit
            # ties a number to the next.
            if not (in_code or "svg" in piece.kinds) or _UNIT.search(excerpt):
                yield piece.line, excerpt, why


def wrong_sums_of(pieces: list[Piece]) -> Iterator[tuple[int, str, str]]:
    """Line, sum and what its digits give, of every printed sum of a page that does not come out."""
    for piece in pieces:
        if piece.kinds & _CODE:
            continue
        for found, gives in _wrong_sums(piece.printed or piece.text):
            yield piece.line, found, gives


@functools.lru_cache(maxsize=65536)
def _wrong_sums(text: str) -> tuple[tuple[str, str], ...]:
    name = digest("sums", text)
    if SEEN.is_clean(name):
        return ()
    found = tuple(wrong_sums(text))
    if not found:
        SEEN.clean(name)
    return found


@functools.lru_cache(maxsize=65536)  # navigation stands on every page
def _typed_in(
    text: str, in_claim: bool, condition: str | None, keys: frozenset[str], noted: bool
) -> tuple[tuple[str, str], ...]:
    name = digest("seen", text, in_claim, condition, sorted(keys) if "[^" in text else "", noted)
    if SEEN.is_clean(name):
        return ()
    found = []
    for start, end in sentences(text):
        sentence = text[start:end]
        if not is_excused(sentence, noted or any(key in keys for key in CITE.findall(sentence))):
            found += [hit[1:] for hit in in_sentence(sentence, in_claim=in_claim, condition=condition)]
    if not found:
        SEEN.clean(name)
    return tuple(found)
