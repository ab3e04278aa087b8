"""The choices of a prediction: a mark agrees with what the reveal prints, and words with the condition before them.

A typed `[x]` is nobody's measurement. Where its reveal begins with a recorded value, the number that is marked must be
the one that lies nearest to it. And a number in the words of a choice must lie inside its own condition, not inside
another's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence

from course_site.lint.number_words import COUNTED
from course_site.pages.choices import Choice
from course_site.values.claim_bounds import spans_of

_LARGE = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9}
_NUMBER = re.compile(
    r"^\W*(?:(?:about|nearly|still|some|roughly|around|only|the\s+(?:first|last|next))\s+)?"
    r"(?P<digits>\d+(?:[ \xa0,]\d{3})*(?:\.\d+)?)"
    r"(?:\s*(?P<large>hundred|thousand|million|billion))?\b",
    re.IGNORECASE,
)
_ROUND = re.compile(
    r"^\W*(?P<half>half\s+)?an?\s+(?P<large>hundred|thousand|million|billion)\b(?!\s+\w*illion)",
    re.IGNORECASE,
)
_WORDS = {word: number for word, number in COUNTED.items() if number <= 10}
_SHARE = {"half": 2, "halves": 2, "third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10}
_ANY = "|".join(_WORDS)
_SPOKEN = re.compile(
    rf"\b(?:(?P<n>an?|{_ANY})\s+)?(?P<share>{'|'.join(_SHARE)})s?\b(?:\s+of\s+(?P<of>\d+|it\b))?"
    rf"|(?P<twice>\btwice\b)|(?<!far less than )\b(?P<times>{_ANY}|twenty|thirty)(?=\s+(?:times|or|to|in)\b|$)"
    r"|(?<![\w.])(?<!× )(?P<digits>\d+(?:\.\d+)?)(?![\w.]|\s*×)",
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
    """Yield choices that say something else than their conditions: a number outside, words of another's span.

    The numbers of one prediction are all read alike: as they stand, in a hundred, as what is left or what is more.
    """
    bounds = [spans_of(choice.condition) if choice.condition else {} for choice in choices]
    shared = set.intersection(*map(set, bounds)) if bounds and all(bounds) else set()
    if len(shared) != 1 or any(len(bound) > 1 for bound in bounds):
        return
    (key,) = shared
    spans = [bound[key] for bound in bounds]
    said = [_amounts(choice.text) for choice in choices]
    outside: list[int] | None = None
    for reading in _READINGS:
        left = [
            i
            for i, (amounts, span) in enumerate(zip(said, spans, strict=True))
            if not all(_lies(reading, amount, span, choices[i].text) for amount in amounts)
        ]
        outside = left if outside is None or len(left) < len(outside) else outside
    for i in outside or ():
        yield (
            f"says {choices[i].text!r} under `{choices[i].condition}`, and that number lies outside: are words "
            "exchanged, or is a bound wrong?"
        )
    if len(key) > 1 and not outside:
        yield from _other_side(choices, spans)


def _other_side(choices: Sequence[Choice], spans: Sequence[tuple[float, float]]) -> Iterator[str]:
    """Yield choices that say *the same* where two things are not so."""
    for choice, (low, high) in zip(choices, spans, strict=True):
        if _SAME.search(choice.text) and not low * 0.98 <= 1 <= high * 1.02:
            yield (
                f"says {choice.text!r} under `{choice.condition}`, where the two are never the same: are words "
                "exchanged, or is a bound wrong?"
            )


_SAME = re.compile(
    r"^(?:\w+:\s)?(?:about\s+)?(?:as\s+(?:long|fast|many|quick|busy)\b|the\s+same\b|level\s+with|close\s+to"
    r"|alike\b|both\s+the\s+same|as\s+good\b|no\s+better\b|hardly\b|within\b)",
    re.IGNORECASE,
)
_LOOSE = re.compile(r"\b(?:less|fewer|under|below|up\s+to|at\s+most|more|above)\b", re.IGNORECASE)


def _lies(reading: Callable[[float], float], amount: float, span: tuple[float, float], text: str) -> bool:
    """Return whether a number, read so, lies in a span; one that is said as a bound may lie a little outside."""
    read = reading(amount)
    slack = 1.13 if _LOOSE.search(text) else 1.04
    return read > 0 and span[0] / slack <= read <= span[1] * slack


def _amounts(text: str) -> list[float]:
    """Return the numbers of a choice, in figures or words; those of *in a hundred* as shares."""
    found: list[float] = []
    hundredths = 100 if re.search(r"%|\bin a hundred\b", text) else 1
    for match in _SPOKEN.finditer(text):
        if match["share"] and match["of"] == "it" and found:
            continue  # of a number that is said
        if match["share"]:
            count = _WORDS.get((match["n"] or "a").casefold(), 1)
            share = count / _SHARE[match["share"].casefold().removesuffix("s")]
            whole = re.search(rf"\b({_ANY})\s+and\s+$", text[: match.start()], re.IGNORECASE)
            of = float(match["of"]) if (match["of"] or "").isdigit() else 1.0
            found.append((share + (_WORDS[whole[1].casefold()] if whole else 0)) * of)
        elif match["twice"]:
            found.append(2.0)
        elif match["times"]:
            found.append(float((_WORDS | MANY)[match["times"].casefold()]) / hundredths)
        else:
            found.append(float(match["digits"]) / hundredths)
    return found


_PLAIN: tuple[Callable[[float], float], ...] = (
    lambda amount: amount,
    lambda amount: amount / 100,
    lambda amount: 1 - amount,
    lambda amount: 1 + amount,
    lambda amount: 1 - amount / 100,
    lambda amount: 1 + amount / 100,
)
_READINGS = (*_PLAIN, *((lambda amount, plain=plain: 1 / (plain(amount) or math.inf)) for plain in _PLAIN))
