"""Numbers of a figure stand on its page too: in its alternative text, or in the section around it.

A figure is drawn by hand, and a number in it is typed where no other text sees it. The same number in words stands
beside it, so each of the two holds the other: what is changed in one place alone is found. A row of numbers that go on
evenly, such as the marks of an axis, is held by any one of them.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

from course_site.lint.number_words import COUNTED

_FIGURE = re.compile(r"^///[ \t]+figure[ \t]*\|[ \t]*(\S+)[ \t]*\n(.*?)^///[ \t]*$", re.MULTILINE | re.DOTALL)
_ALT = re.compile(r"^alt:(.*?)(?=^\w+:|\Z)", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^##+ ", re.MULTILINE)
_UNSEEN = re.compile(r"<style.*?</style>|<defs.*?</defs>|<\?.*?\?>|<!--.*?-->", re.DOTALL)
_TEXT = re.compile(r"<(?:text|title|desc)\b[^>]*>(.*?)</(?:text|title|desc)>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_GROUPED = re.compile(r"(?<=\d)[ ,\u00a0\u202f](?=\d{3}(?!\d))")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\d])")
_ANYWHERE = re.compile(r"\d+(?:\.\d+)?")
_RANGE = re.compile(r"(\d+)\s+(?:to|bis|–)\s+(\d+)")
_SUM = re.compile(r"(\d+)\s*\+\s*(\d+)")
_WORDS = {word: n for word, n in COUNTED.items() if 2 <= n <= 16} | {
    "twice": 2, "both": 2, "half": 2, "halves": 2, "pair": 2, "double": 2, "thirty-two": 32, "sixty-four": 64,
    "hundred": 100, "thousand": 1000,
}  # fmt: skip
_WORD = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b", re.IGNORECASE)
_ALWAYS = frozenset({0.0, 1.0})
_STEPS = (0.5, 1, 2, 4, 8, 16, 32, 100)


def files_of(prose: str, root: Path) -> list[Path]:
    """Return the drawings of a page that are there."""
    return [file for found in _FIGURE.finditer(prose) if (file := root / found[1]).is_file()]


def faults_of(prose: str, root: Path) -> Iterator[str]:
    """Yield every number that a figure, or its alternative text, alone has.

    Args:
        prose: of a page, in order.
    """
    for block in _FIGURE.finditer(prose):
        file = root / block[1]
        if not file.is_file():
            continue  # told where it is drawn
        said = _ALT.search(block[2])
        alt = said[1] if said else ""
        begins = [found.start() for found in _HEADING.finditer(prose)]
        start = max((at for at in begins if at <= block.start()), default=0)
        end = min((at for at in begins if at >= block.end()), default=len(prose))
        around = _supported(prose[start : block.start()] + prose[block.end() : end])
        drawn_text = _drawn(file.read_text(encoding="utf-8"))
        drawn, spoken = _numbers(drawn_text), _numbers(alt)
        by_words, by_lines = around | _supported(block[2]), around | _supported(drawn_text)
        held = by_words | by_lines
        for number in sorted(drawn - by_words - _ALWAYS):
            if not _in_a_row(number, drawn) and not _ends_range(number, drawn_text, held):
                yield _told(
                    f"{block[1]} draws {number:g}",
                    "neither its alternative text nor the section around it has it",
                )
        for number in sorted(spoken - by_lines - _ALWAYS):
            if not _ends_range(number, alt, held):
                yield _told(f"the alternative text of {block[1]} says {number:g}", "it is not in the figure")


def _told(what: str, why: str) -> str:
    return f"{what}, and {why}: mend the one or the other"


def _drawn(svg: str) -> str:
    texts = _TEXT.findall(_UNSEEN.sub(" ", svg))
    return "\n".join(html.unescape(_TAG.sub("", text)) for text in texts)


def _numbers(text: str) -> set[float]:
    """Return the numbers that a text says by digits; those grouped by threes are one."""
    return {float(number) for number in _NUMBER.findall(_GROUPED.sub("", text))}


def _supported(text: str) -> set[float]:
    """Return every number that a text has, in words, behind letters and in groups too, and of what it adds."""
    found = {float(one) + float(other) for one, other in _SUM.findall(text)}
    found |= {float(number) for way in (text, _GROUPED.sub("", text)) for number in _ANYWHERE.findall(way)}
    return found | {float(_WORDS[word.casefold()]) for word in _WORD.findall(text)}


def _in_a_row(number: float, drawn: set[float]) -> bool:
    """Return whether a number is one of three or more that go on evenly."""
    return any(
        {number + step * place for place in places} <= drawn
        for step in _STEPS
        for places in ((-1, 1), (1, 2), (-2, -1))
    )


def _ends_range(number: float, text: str, held: set[float]) -> bool:
    """Return whether a number ends a range whose length is told: 8 to 11 of four."""
    return any(
        float(last) == number and float(last) - float(first) + 1 in held
        for first, last in _RANGE.findall(text)
    )
