"""The choices of a prediction: a mark agrees with what the reveal prints, and words with the condition before them.

A typed `[x]` is nobody's measurement. Where its reveal begins with a recorded value, the number that is marked must be
the one that lies nearest to it. And a number in the words of a choice must lie inside its own condition, not inside
another's.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence

from course_site.lint.speed_words import WORD
from course_site.pages.choices import Choice
from course_site.values.claim_bounds import spans_of

_LARGE = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9}
_NUMBER = re.compile(
    r"^\W*(?:(?:about|nearly|still|some|roughly|around|only)\s+)?(?P<digits>\d+(?:[ \xa0,]\d{3})*(?:\.\d+)?)"
    r"(?:\s*(?P<large>hundred|thousand|million|billion))?\b",
    re.IGNORECASE,
)
_ROUND = re.compile(
    r"^\W*(?P<half>half\s+)?an?\s+(?P<large>hundred|thousand|million|billion)\b(?!\s+\w*illion)",
    re.IGNORECASE,
)
_WORDS = {word: number for number, word in enumerate(WORD.split("|")[:10], start=1)}
_SHARE = {"half": 2, "halves": 2, "third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10}
_SPOKEN = re.compile(
    rf"\b(?:(?P<n>an?|{'|'.join(_WORDS)})\s+)?(?P<share>{'|'.join(_SHARE)})s?\b|(?P<twice>\btwice\b)"
    rf"|\b(?P<times>{'|'.join(_WORDS)}|twenty|thirty)\s+times\b|(?<![\w.])(?P<digits>\d+(?:\.\d+)?)(?![\w.]|\s*×)",
    re.IGNORECASE,
)
MANY = {"twenty": 20, "thirty": 30}


def wrong_mark(choices: Sequence[Choice], value: float, behind: str) -> str:
    """Return why a typed mark is not what the reveal prints; "" where it is, or where that cannot be told.

    Args:
        value: the reveal's first value, as a number.
        behind: the words that follow it, such as *million*.
    """
    large = re.match(r"\W*(hundred|thousand|million|billion)\b", behind, re.IGNORECASE)
    printed = value * (_LARGE[large[1].casefold()] if large else 1.0)
    numbers = {choice.text: number for choice in choices if (number := _number(choice.text)) is not None}
    marked = next((choice.text for choice in choices if choice.is_right), None)
    if marked not in numbers or len(numbers) < 2 or printed <= 0:
        return ""
    apart = {text: abs(math.log(number / printed)) for text, number in numbers.items() if number > 0}
    nearest = min(apart, key=apart.__getitem__, default=marked)
    if marked in apart and apart[nearest] < apart[marked] - 1e-9:
        return f"marks {marked!r}, and its reveal prints {printed:g}, which is {nearest!r}: mark that"
    return ""


def _number(text: str) -> float | None:
    if round_number := _ROUND.match(text):
        return _LARGE[round_number["large"].casefold()] / (2 if round_number["half"] else 1)
    found = _NUMBER.match(text)
    if not found:
        return None
    return float(re.sub(r"[ \xa0,]", "", found["digits"])) * _LARGE.get(
        (found["large"] or "").casefold(), 1.0
    )


def wrong_words(choices: Sequence[Choice]) -> Iterator[str]:
    """Yield choices whose number lies outside its own condition, and inside that of another choice."""
    bounds = [spans_of(choice.condition) if choice.condition else {} for choice in choices]
    shared = set.intersection(*map(set, bounds)) if bounds and all(bounds) else set()
    if len(shared) != 1:
        return
    (key,) = shared
    spans = [bound[key] for bound in bounds]
    said = [next(iter(_amounts(choice.text)), None) for choice in choices]
    for (i, one), (j, other) in itertools.combinations(enumerate(said), 2):
        if one is None or other is None or not (_inside(one, spans[j]) and _inside(other, spans[i])):
            continue
        if not any(_inside(read, spans[i]) for read in _readings(one)) or not any(
            _inside(read, spans[j]) for read in _readings(other)
        ):
            yield (
                f"says {choices[i].text!r} under `{choices[i].condition}` and {choices[j].text!r} under "
                f"`{choices[j].condition}`: their words are exchanged, or a bound is wrong"
            )


def _amounts(text: str) -> list[float]:
    found = []
    for match in _SPOKEN.finditer(text):
        if match["share"]:
            count = _WORDS.get((match["n"] or "a").casefold(), 1)
            found.append(count / _SHARE[match["share"].casefold().removesuffix("s")])
        elif match["twice"]:
            found.append(2.0)
        elif match["times"]:
            found.append(float((_WORDS | MANY)[match["times"].casefold()]))
        else:
            found.append(float(match["digits"]))
    return found


def _readings(amount: float) -> Iterator[float]:
    """Yield what an amount may say: itself, in a hundred, how much is saved, or how much more it is."""
    for share in (amount, amount / 100) if amount >= 1 else (amount,):
        yield from (share, 1 - share, 1 + share)
    if amount:
        yield 1 / amount


def _inside(amount: float, span: tuple[float, float]) -> bool:
    return span[0] * 0.999 <= amount <= span[1] * 1.001
