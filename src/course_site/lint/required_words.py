"""The words without which a pattern cannot match: a cheap look that spares most sentences a slow search.

A pattern such as `(?:\\d+|twice) times` matches nothing in a text without "times", nor in one with neither a digit nor
"twice". Such words are read off the pattern itself, so none can be forgotten when the pattern changes.
"""

from __future__ import annotations

import functools
import importlib
import math
import re
import string
from collections.abc import Iterable, Iterator
from typing import Any

from course_site.pages.plain_text import lowered

DIGIT = "\\d"  # stands for any digit; no text in lower case holds it as a word
_RANGE = 20  # characters: a longer range says too little
_MOST = 0.9  # of all texts, by estimate: a set that more of them pass spares too little

Alternatives = frozenset[str]  # one of these is in every text that matches


def required(pattern: re.Pattern[str]) -> tuple[Alternatives, ...]:
    """Return sets of lower-case words: a text that matches holds at least one word of each.

    Nothing is required where the parser of `re` is not where it is in the versions that we know.
    """
    try:
        tree = importlib.import_module("re._parser").parse(pattern.pattern, pattern.flags)
    except (ImportError, AttributeError):
        return ()
    found = {each for each in _of_sequence(tree) if _share(each) < _MOST}
    return tuple(sorted(found, key=lambda each: (_share(each), sorted(each))))


def _of_sequence(items: Iterable[tuple[Any, Any]]) -> Iterator[Alternatives]:
    run = ""
    for kind, what in items:
        name = str(kind)
        if name == "LITERAL" and (sign := _sign(what)):
            run += sign
            continue
        if run:
            yield frozenset({run})
            run = ""
        if name == "IN":
            signs = list(_of_set(what))
            if all(signs):
                yield frozenset(signs)
        elif name == "SUBPATTERN":
            yield from _of_sequence(what[3])
        elif name == "ATOMIC_GROUP":
            yield from _of_sequence(what)
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") and what[0]:
            yield from _of_sequence(what[2])
        elif name == "BRANCH":
            branches = [min(_of_sequence(branch), key=_share, default=None) for branch in what[1]]
            if all(branches):
                yield frozenset().union(*filter(None, branches))
    if run:
        yield frozenset({run})


def _of_set(items: Iterable[tuple[Any, Any]]) -> Iterator[str]:
    """Yield the signs of a set of characters, with "" for what cannot be listed."""
    for kind, what in items:
        name = str(kind)
        if name == "LITERAL":
            yield _sign(what)
        elif name == "RANGE" and what[1] - what[0] < _RANGE:
            yield from map(_sign, range(what[0], what[1] + 1))
        elif name == "CATEGORY" and str(what) == "CATEGORY_DIGIT":
            yield DIGIT
        else:
            yield ""


def _sign(code: int) -> str:
    """Return a character in lower case; "" for one with a twin that only a search without case takes for it."""
    sign = chr(code)
    return sign.lower() if sign.isascii() or sign.lower() == sign.upper() or sign == "µ" else ""


def _share(words: Alternatives) -> float:
    """Return a rough estimate of how many texts hold one of these words."""
    return 1 - math.prod(1 - _SHARES.get(word, 0.4 ** len(word)) for word in words)


_SHARES = {" ": 0.99, ".": 0.9, "-": 0.5, ",": 0.5, DIGIT: 0.5, "it": 0.9} | dict.fromkeys(
    string.ascii_lowercase, 0.9
)


class Guarded:
    """Patterns, each searched for only where the words stand that it requires.

    Args:
        patterns: each by itself, or with hints in front: words of which one must stand in a text, too.
    """

    def __init__(self, *patterns: re.Pattern[str] | tuple[Iterable[str], re.Pattern[str]]) -> None:
        pairs = [each if isinstance(each, tuple) else ((), each) for each in patterns]
        self.patterns = [pattern for _, pattern in pairs]
        self.required = [tuple(filter(None, (frozenset(hints), *required(each)))) for hints, each in pairs]
        # The rarest words of each pattern lead to it: of a hundred patterns a text calls for three.
        self._always = {place for place, words in enumerate(self.required) if not words}
        self._called_by: dict[str, list[int]] = {}
        for place, words in enumerate(self.required):
            for word in min(words, key=_share, default=()):
                self._called_by.setdefault(word, []).append(place)
        _know(word for words in self.required for each in words for word in each)

    def places(self, words: frozenset[str]) -> Iterator[int]:
        """Yield the places of the patterns that may match a text with these words, in order."""
        called = set(self._always)
        for word in words & self._called_by.keys():
            called.update(self._called_by[word])
        for place in sorted(called):
            if not any(words.isdisjoint(each) for each in self.required[place]):
                yield place

    def finditer(self, text: str, words: frozenset[str]) -> Iterator[re.Match[str]]:
        """Yield every match of each pattern in a text; `words` are those of `words_in`."""
        for place in self.places(words):
            yield from self.patterns[place].finditer(text)

    def found_in(self, text: str, words: frozenset[str]) -> bool:
        """Return whether one of them is found in a text; `words` are those of `words_in`."""
        return any(self.patterns[place].search(text) for place in self.places(words))


_SHORT: set[str] = set()
_BY_START: dict[str, set[str]] = {}  # longer words by their first three letters
_ANY_DIGIT = re.compile(r"\d")


def _know(words: Iterable[str]) -> None:
    for word in words:
        if word != DIGIT:
            (_SHORT if len(word) < 3 else _BY_START.setdefault(word[:3], set())).add(word)


@functools.lru_cache(maxsize=256)  # a sentence is asked about several times in a row
def words_in(text: str) -> frozenset[str]:
    """Return which of the words that guarded patterns require stand in a text; those of its parts are among them."""
    low = lowered(text)
    found = {word for word in _SHORT if word in low}
    for start in _BY_START.keys() & {low[i : i + 3] for i in range(len(low) - 2)}:
        found.update(word for word in _BY_START[start] if word in low)
    if _ANY_DIGIT.search(text):
        found.add(DIGIT)
    return frozenset(found)
