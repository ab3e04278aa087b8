"""A cited figure is one that its source is known for: a footnote excuses no other number.

Whoever reads a source notes in the bibliography which of its figures the pages lean on. A sentence that cites it and
types a performance number may type these, and no others: no figure of ours, and none that was mistyped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from course_site.lint.lint import BARE
from course_site.lint.typed_numbers import in_sentence
from course_site.pages.bibliography import Entry
from course_site.pages.placeholders import PLACEHOLDER
from course_site.pages.plain_text import CITE, Text, plain, sentences

_PARAGRAPHS = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+|]|\d+\.)\s)")
_DIGIT = re.compile(r"\d|\btwice\b|\btimes\b|\bhalf\b")
_NUMBER = re.compile(r"(?<![\w.])\d{1,3}(?:[ ,]\d{3})+(?![\w])|(?<![\w.])\d+(?:\.\d+)?(?!\w)")
_TICKS = re.compile(r"\d[\d.]*\s+(?:ticks|(?:clock\s+)?cycles|clocks)\b", re.IGNORECASE)
_YEAR = re.compile(r"19[5-9]\d|20(?:0[1-9]|[1-3]\d)")
_FOUR = {"twice": 2, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "eight": 8, "ten": 10, "half": 0.5}
_WORD = re.compile(rf"\b(?:{'|'.join(_FOUR)})\b", re.IGNORECASE)


def faults_of(text: str, sources: Mapping[str, Entry]) -> Iterator[str]:
    """Yield the figures of some Markdown that none of the sources cited beside them is known for, a line each."""
    for paragraph in _PARAGRAPHS.split(text) if "[^" in text else ():
        if "[^" in paragraph and _DIGIT.search(PLACEHOLDER.sub("", CITE.sub("", paragraph))):
            yield from _of_paragraph(paragraph, sources)


def _of_paragraph(text: str, sources: Mapping[str, Entry]) -> Iterator[str]:
    said = plain(Text.of(text), BARE)[0].text
    for start, end in sentences(said):
        sentence = said[start:end]
        keys = [key for key in dict.fromkeys(CITE.findall(sentence)) if key in sources]
        if not (keys and _DIGIT.search(CITE.sub("", sentence))):
            continue
        hits = in_sentence(sentence, in_claim=False, condition=None)
        known = {figure for key in keys for figure in sources[key].figures}
        found = _numbers(sentence, " ".join(excerpt for _, excerpt, _ in hits)) if hits else _ticks(sentence)
        for shown, number in found:
            if number not in known:
                yield (
                    f"{shown!r} is cited from {' and '.join(f'[^{key}]' for key in keys)}, and is none of the figures "
                    "that docs/bibliography.toml notes of it: correct it, or read the source and note it in `figures`"
                )


def _ticks(sentence: str) -> Iterator[tuple[str, float]]:
    """Yield the latencies of a sentence, which are counted in ticks and no speed; numbers with a point, too."""
    if _TICKS.search(sentence):
        for match in _NUMBER.finditer(CITE.sub(" ", sentence)):
            if "." in match[0] or _TICKS.match(sentence, sentence.find(match[0])):
                yield match[0], float(re.sub(r"[ ,]", "", match[0]))


def _numbers(sentence: str, excerpts: str) -> Iterator[tuple[str, float]]:
    """Yield the figures of a sentence, and the numbers in words of what it says about speed."""
    for match in _NUMBER.finditer(CITE.sub(" ", sentence)):
        if not _YEAR.fullmatch(match[0]):
            yield match[0], float(re.sub(r"[ ,]", "", match[0]))
    for match in _WORD.finditer(excerpts):
        yield match[0], float(_FOUR[match[0].casefold()])
