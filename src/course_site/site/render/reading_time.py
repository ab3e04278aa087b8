"""The minutes that a page takes, by one rule, worked out from the page as it is shown.

The rule is for a newcomer whose first language is not that of the page. Readers are told it in docs/how_we_measure.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields

from course_site.pages import fences

WORDS_A_MINUTE = 150
LINES_A_MINUTE = 10  # of code; an empty line is none
PICTURE = 0.5  # a chart or a figure, minutes
PREDICTION = 1
EXERCISE = 4

_TAG = re.compile(r"<(?P<end>/?)(?P<tag>div|details)\b(?P<rest>[^>]*)>")
CODE = re.compile(r"`[^`]*`")
_CLASS = re.compile(r'class="(?P<first>[\w-]+)')
_MINUTES = re.compile(r'data-minutes="(?P<count>\d+)"')
_LINES = re.compile(r'data-lines="(?P<count>\d+)"')  # to be read, of a listing with more in it
_TOKEN = re.compile(r"slot\d+of\w+token")
_NO_WORDS = re.compile(
    r"<[^>]+>|\]\([^)]*\)|\[\^[\w.:-]+\]|\{:?[ ]?[.#][^}]*\}|^\|[-:| ]+\|$|\\[A-Za-z]+|&\w+;", re.MULTILINE
)
_WORD = re.compile(r"\w+(?:[.,'’/:_-]\w+)*")


@dataclass
class Minutes:
    """Time that something asks of its reader, in minutes."""

    reading: float = 0.0
    predicting: float = 0.0
    exercises: float = 0.0
    typing: float = 0.0

    @property
    def whole(self) -> int:
        """Their sum, of parts that are rounded as they are shown."""
        return sum(self.rounded().values())

    def rounded(self) -> dict[str, int]:
        """Whole minutes of each kind; what is there takes at least one."""
        taken = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: max(math.floor(minutes + 0.5), 1 if minutes else 0) for name, minutes in taken.items()}

    def __add__(self, other: Minutes) -> Minutes:
        names = [field.name for field in fields(self)]
        return Minutes(**{name: getattr(self, name) + getattr(other, name) for name in names})


@dataclass(frozen=True)
class _Piece:
    """Something on a page: how long it takes, and whether it is folded away."""

    minutes: Minutes
    is_folded: bool


def minutes(markdown: str, slots: dict[str, str], words: dict[str, str]) -> tuple[Minutes, Minutes]:
    """Minutes of what stands open on a page, and of what is folded.

    Args:
        markdown: the page, or a part of it; tokens stand where HTML belongs.
        slots, words: what they stand for, see `Rendered`.
    """
    shown, hidden = Minutes(), Minutes()
    for piece in _pieces(markdown, slots, words):
        if piece.is_folded:
            hidden += piece.minutes
        else:
            shown += piece.minutes
    return shown, hidden


def in_words(shown: Minutes, hidden: Minutes) -> str:
    """Return the line at a page's head."""
    said = {"reading": "reading", "predicting": "predicting", "exercises": "on exercises", "typing": "typing"}
    parts = [f"{count} {said[name]}" for name, count in shown.rounded().items() if count]
    whole = (shown + hidden).whole
    line = f"Core: {count_of(shown.whole)}" if whole > shown.whole else count_of(shown.whole)
    if len(parts) > 1:
        line += f": {', '.join(parts)}"
    return f"{line}. With all that is folded: {whole}." if whole > shown.whole else f"{line}."


def count_of(minutes: int) -> str:
    """Minutes in words."""
    return f"{minutes} minute{'s' * (minutes != 1)}"


def until_typing(markdown: str, slots: dict[str, str], words: dict[str, str]) -> float | None:
    """Minutes of what stands open before the first lab; None for a page without one that stands open."""
    before = Minutes()
    for piece in _pieces(markdown, slots, words):
        if not piece.is_folded:
            if piece.minutes.typing:
                return before.reading + before.predicting + before.exercises
            before += piece.minutes
    return None


def words_of(text: str) -> int:
    """Return how many words a reader sees in some Markdown."""
    return len(_WORD.findall(_NO_WORDS.sub(" ", text)))


def _pieces(markdown: str, slots: dict[str, str], words: dict[str, str]) -> Iterator[_Piece]:
    inside: list[str] = []  # what is open: the first class of each block
    for fenced in fences.lines(markdown):
        line = fenced.text
        in_lab, is_folded = "lab" in inside, any(name.startswith("details ") for name in inside)
        if fenced.part:
            if fenced.part == "code" and line.strip() and not in_lab:  # a lab's minutes are said at its head
                printed = ".output" in fenced.says
                length = words_of(line) / WORDS_A_MINUTE if printed else 1 / LINES_A_MINUTE
                yield _Piece(Minutes(reading=length), is_folded)
        else:
            for tag in _TAG.finditer(CODE.sub("", line)):
                if tag["end"]:
                    del inside[-1:]
                    continue
                css = _CLASS.search(tag["rest"])
                name = css["first"] if css else ""
                taken = _MINUTES.search(tag["rest"])
                if taken and "lab" not in inside:
                    yield _Piece(_of_block(name, int(taken["count"])), is_folded)
                is_fold = tag["tag"] == "details" and name != "reveal"
                inside.append(f"details {name}" if is_fold else name)
            if in_lab:
                continue
            for token in _TOKEN.findall(line):
                yield from _of_slot(slots[token], words.get(token, ""), is_folded)
            count = words_of(_TOKEN.sub(" ", line))
            yield _Piece(Minutes(reading=count / WORDS_A_MINUTE), is_folded)


def _of_block(name: str, count: int) -> Minutes:
    return Minutes(**{{"predict": "predicting", "exercise": "exercises", "lab": "typing"}[name]: count})


def _of_slot(raw: str, said: str, is_folded: bool) -> Iterator[_Piece]:
    if raw.startswith("<svg") and "aria-hidden" in raw.partition(">")[0]:
        return  # an icon beside words
    if "<svg" in raw:
        yield _Piece(Minutes(reading=PICTURE), is_folded)
    elif told := _LINES.search(raw.partition(">")[0]):
        yield _Piece(Minutes(reading=int(told["count"]) / LINES_A_MINUTE), is_folded)
    elif raw.startswith("<details"):
        opened = raw.partition(">")[0].endswith(" open")
        lines = [line for line in said.split("\n")[3:-1] if line.strip()]
        yield _Piece(Minutes(reading=len(lines) / LINES_A_MINUTE), is_folded or not opened)
    else:
        yield _Piece(Minutes(reading=words_of(raw) / WORDS_A_MINUTE), is_folded)
