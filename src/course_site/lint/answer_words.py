"""Answers, worked out again: an exercise's, a board's, an exit ticket's.

What an answer says and its question does not is its own: a number, in figures or in words, a *yes*, a piece of code.
A module beside the sheets works each of them out, in the order in which the answer says them. Printed sums are done
again by `printed_sums`, so their results need no module.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from course_site.lint.number_words import COUNTED, LARGE
from course_site.lint.printed_sums import sums
from course_site.pages.placeholders import PLACEHOLDER
from course_site.pages.plain_text import plain_words

_WORDS: dict[str, tuple[float, ...]] = {word: (float(n),) for word, n in COUNTED.items() if n > 1}
_WORDS |= {"hundred": (100.0,), "twice": (2.0,), "half": (0.5,), "halves": (0.5,), "quarter": (0.25,)}
# A fifth is a share, or the one after the fourth.
_WORDS |= {
    word: (1 / n, float(n))
    for n, word in enumerate(["third", "fourth", "fifth", "sixth", "seventh", "eighth"], 3)
}
_WORDS |= {"sixteenth": (1 / 16, 16.0)}
_WORDS |= {f"{word}s": _WORDS[word] for word in ("third", "quarter", "eighth")}
_LARGE = {word: scale for word, scale in LARGE.items() if word not in _WORDS}
_FIGURES = re.compile(
    r"(?<![\w.])(?P<figures>\d{1,3}(?:[ ,]\d{3})+(?![\d\w])|\d+(?:\.\d+)?)(?P<raised>⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)?(?!\w)"
    rf"(?:\s(?P<of>{'|'.join(_LARGE)})\b)?",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+")
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_PIECE = re.compile(r"^ *```\w*\n(?P<fence>.*?)^ *```|`(?P<span>[^`]+)`", re.DOTALL | re.MULTILINE)
_MADE = re.compile(
    r" (?:[-+*/%<>&|^]|//|[<>=]=) |\w[\[(](?![)\]])|\w<\w|="
)  # a formula, a call: more than a name
_CODE, _ITEM = "\ue000", "\ue001"  # where a piece of code was, and the number of an item
_VERDICT = re.compile(
    rf"(?:\A|\([a-h]\) |: |{_ITEM} ?)(?P<says>yes|no|true|false)(?=[,.:;]|$)", re.IGNORECASE
)
_LETTER = re.compile(r"(?<![\w`])\((?P<letter>[a-h])\)")
_LIST = re.compile(
    r"(?<![\w.,])\d+(?:\.\d+)?(?:(?: · |, | and |, and | )\d+(?:\.\d+)?(?![\w.,]\d)){2,}(?!\w)"
)
_NOT_SAID = re.compile(r"\[\^[^\]]*\]|\]\([^)]*\)|<[^<>]*>|[*]{1,2}(?=\S)|(?<=\S)[*]{1,2}")
_STAGES = re.compile(r"\bstages?\s\d(?:(?:, | and | to )\d)*", re.IGNORECASE)
_NUMBERED = re.compile(r"^ *\d\. ", re.MULTILINE)


@dataclass(frozen=True)
class _Said:
    """A number, a verdict or a piece of code that a text says.

    Attributes:
        means: what it may mean: a third is a share, or the one after the second.
        ulp: of the last digit that is said.
        known: its question says it, or a printed sum has it as its result.
    """

    at: int
    shown: str
    means: tuple[float | bool | str, ...]
    ulp: float = 0.0
    known: bool = False

    def is_(self, worked: object) -> bool:
        """Return whether this is how a thing that was worked out is said."""
        said = self.means[0]
        if callable(worked):
            try:
                return isinstance(said, str) and bool(worked(said))
            except Exception:  # of a piece of code, whatever it is
                return False
        if isinstance(said, (bool, str)) or isinstance(worked, (bool, str)):
            return type(said) is type(worked) and said == worked
        assert isinstance(worked, (int, float))
        return any(abs(worked - float(number)) <= self.ulp * 0.4999 + 1e-9 for number in self.means)


def faults_of(question: str, answer: str, worked: Any, *, words: bool = True) -> Iterator[str]:
    """Yield what an answer says otherwise than it was worked out, in one line.

    Args:
        question: all that is given: what it says may stand in the answer.
        worked: what was worked out: numbers, True for *yes*, words that stand in the answer, functions of a piece of
            code, and sequences of these, in the order of the answer; None where there is nothing.
        words: numbers in words count too. *Two* may be said of anything; what was worked out must be said all the same.
    """
    plain, code = _without_code(answer, question)
    told = [*(code if words else ()), *_letters(plain), *(_verdicts(plain) if words else ())]
    numbers, items = _numbers(plain, words), list(_items(worked))
    asked = [said.means[0] for said in _numbers(_flat(question), True)] if numbers else []
    listed = _listed_anew(plain, asked) if numbers else set()

    def fault(given: set[Any]) -> str:
        known = (
            replace(said, known=True)
            if said.shown.lower() == "two" or (said.means[0] in given and said.at not in listed)
            else said
            for said in numbers
        )
        left = sorted([*told, *known], key=lambda said: said.at)
        return _compared(plain.casefold(), left, items) if items else _untold(plain, left, worked)

    given = set(asked)
    if (found := fault(given)) and numbers:  # sums are asked where they matter
        given |= {_numbers(result, False)[-1].means[0] for result in _results(plain)}
        found = fault(given)
    if found:
        yield found


def _untold(plain: str, left: list[_Said], worked: Any) -> str:
    """Return what nothing works out; "" where there is nothing of the kind."""
    new = next((said.shown for said in left if not said.known), "")
    parts = worked is None and (len(_LETTER.findall(plain)) > 1 or plain.count(_ITEM) > 1)
    return f"nothing works out {repr(new) if new else 'its parts'}" if new or parts else ""


def _compared(plain: str, left: list[_Said], items: list[Any]) -> str:
    """Return the first thing that is not said as it was worked out; "" where all is."""
    place, i = 0, 0
    for item in items:
        if isinstance(item, str) and not any(said.means[0] == item for said in left[i:]):
            found = plain.find(" ".join(item.casefold().split()), place)
            if found < 0:
                return f"does not say {item!r} where it was worked out"
            place = found + len(item)
            while i < len(left) and left[i].at < place:
                if left[i].at < found and not left[i].known:
                    return f"says {left[i].shown!r}, and {item!r} is worked out there"
                i += 1
            continue
        while i < len(left) and left[i].known and not left[i].is_(item):
            i += 1
        if i == len(left) or not left[i].is_(item):
            shown = f"says {left[i].shown!r}" if i < len(left) else "ends"
            return f"{shown}, and {_shown(item)} is worked out there"
        place, i = left[i].at + 1, i + 1
    new = next((said.shown for said in left[i:] if not said.known), "")
    return f"says {new!r} after all that is worked out" if new else ""


def _shown(item: object) -> str:
    if isinstance(item, bool):
        return "yes" if item else "no"
    return f"{item:.8g}" if isinstance(item, (int, float)) else "other code" if callable(item) else repr(item)


def _items(worked: Any) -> Iterator[Any]:
    if isinstance(worked, (list, tuple)):
        for part in worked:
            yield from _items(part)
    elif worked is not None:
        yield worked


# --- what a text says --------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def _flat(text: str) -> str:
    """Return a text as it is read: values, citations, addresses and marks left out, in one line."""
    text = _NUMBERED.sub(f" {_ITEM} ", PLACEHOLDER.sub(" … ", text))
    return _STAGES.sub("…", " ".join(plain_words(_NOT_SAID.sub(" " if "<" in text else "", text)).split()))


def _without_code(answer: str, question: str) -> tuple[str, list[_Said]]:
    """Return an answer as it is read, and the pieces of code in it that its question does not show."""
    pieces: list[str] = []
    asked = " ".join(question.split())

    def taken(match: re.Match[str]) -> str:
        piece = match["fence"] or " ".join(match["span"].split())
        if not match["fence"] and (piece in asked or not _MADE.search(piece)):
            return " … " if piece in asked else piece
        pieces.append(piece)
        return f" {_CODE} "

    plain = _flat(_PIECE.sub(taken, answer))
    places = [match.start() for match in re.finditer(_CODE, plain)]
    return plain, [_Said(at, piece, (piece,)) for at, piece in zip(places, pieces, strict=True)]


def _numbers(plain: str, words: bool) -> list[_Said]:
    """Return the numbers of a text in their order; *134 million* is one."""
    found = []
    for match in _FIGURES.finditer(plain):
        digits = re.sub(r"[ ,]", "", match["figures"])
        scale = _LARGE[match["of"].casefold()] if match["of"] else 1.0
        number, ulp = float(digits), 10.0 ** -len(digits.partition(".")[2]) * scale
        if match["raised"]:
            number, ulp = number ** float(match["raised"].translate(_RAISED)), 0.0
        found.append(_Said(match.start(), match[0], (number * scale,), ulp))
    return sorted([*found, *_spelled(plain, found)], key=lambda said: said.at) if words else found


def _spelled(plain: str, figures: list[_Said]) -> Iterator[_Said]:
    """Yield the numbers in words; what belongs to figures is said already."""
    low = plain.lower() if len(plain.lower()) == len(plain) else plain
    taken = {said.at + len(said.shown) for said in figures}
    end = 0
    for match in _WORD.finditer(low):
        word = match[0]
        if not (word in _WORDS or word in _LARGE) or match.start() < end or match.end() in taken:
            continue
        means = _WORDS.get(word) or (_LARGE[word],)
        end, after = match.end(), _WORD.match(low, match.end() + 1)
        scale = _LARGE.get(after[0], 1.0) if after and word in _WORDS and low[end] == " " else 1.0
        if after and scale > 1:
            end = after.end()
        yield _Said(match.start(), plain[match.start() : end], tuple(number * scale for number in means))


def _listed_anew(plain: str, asked: list[Any]) -> set[int]:
    """Return the places of the numbers in a list, of three or more, that the question does not have in this order."""
    found: set[int] = set()
    for match in _LIST.finditer(plain):
        numbers = _numbers(match[0], False)
        values = [said.means[0] for said in numbers]
        if not any(asked[i : i + len(values)] == values for i in range(len(asked))):
            found |= {match.start() + said.at for said in numbers}
    return found


def _results(plain: str) -> list[str]:
    return [found for found in sums(plain) if _FIGURES.search(found)]


def _verdicts(plain: str) -> list[_Said]:
    return [
        _Said(match.start("says"), match["says"], (match["says"].casefold() in ("yes", "true"),))
        for match in _VERDICT.finditer(plain)
    ]


def _letters(plain: str) -> list[_Said]:
    """Return the letters of an answer that picks some, or takes them out of their order."""
    found = list(_LETTER.finditer(plain))
    letters = [match["letter"] for match in found]
    if letters == sorted(set(letters)) and letters[:1] == ["a"]:
        return []
    return [_Said(match.start(), match[0], (match["letter"],)) for match in found]
