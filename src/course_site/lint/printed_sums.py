"""Printed sums, done again with the digits that are printed: a reader with a pencil must come to what stands there.

Sums are `a × b = c`, chains of them, *a times b is c*, and *a against b, a factor of c*. Only the last printed digit of
the result may be rounded; behind a word such as *about* it may be off by one. Units say no more than by how many zeros
the two sides may differ. Whatever is not made of printed numbers alone, such as `4·N² = 36`, is left alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from course_site.pages.plain_text import plain_words

_NUMBER = re.compile(r"(?:\d{1,3}(?:[ ,]\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:e[-+]?\d\d?(?!\w))?")
_LONGEST_NUMBER = 20  # characters; what is longer is a name
_BINARY = re.compile(r"[01]\.[01]{4,}")  # in base two
_RAISED = re.compile(r"⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
RAISE = str.maketrans("0123456789-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁻")
_LOWER = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_FRACTIONS = {"½": 0.5, "¼": 0.25, "¾": 0.75, "⅛": 0.125, "⅓": 1 / 3, "⅔": 2 / 3}
_SIGNS = {"×": "*", "·": "*", "*": "*", "÷": "/", "/": "/", "+": "+", "−": "-", "=": "=", "≈": "≈", "%": "%"}
_BRACKETS = {"(": ")", "[": "]", "⌈": "⌉", "⌊": "⌋"}
_SPOKEN = re.compile(r"(times|plus|minus|divided by)(?= [\d(½¼¾])")
_SPOKEN_SIGNS = {"times": "*", "plus": "+", "minus": "-", "divided by": "/"}
# What is divided by a second is one unit, and no division.
_UNIT = re.compile(
    r"(?:[KMGT]i?B|[kMGTP]?FLOPS?|[kMGTP]?FLOPs?|B|bits?|bytes?|[kMG]Hz|[nµm]?s|[mk]?W)(?:/(?:s|B|byte|tick|ms))?(?![\w²³])"
)
_WITH_UNIT = rf"{_NUMBER.pattern})(?: ?{_UNIT.pattern})?"
_FACTOR = re.compile(
    rf"(?P<one>(?<![\w.]){_WITH_UNIT} (?:to|against|that became|became|over) (?P<other>{_WITH_UNIT}[,:]? a factor of "
    rf"(?P<about>about )?(?P<factor>{_NUMBER.pattern})(?![\d.]*[\w×·])"
)
_SCALED = re.compile(r"[kKMGTPnµm](?!\b)")  # a unit with a thousand, or a thousandth, before it
_BYTES = re.compile(r"[KMGT]i?B|B$|bytes?")
_SCALE_WORDS = frozenset({"thousand", "million", "billion"})
_WORD = re.compile(r"[^\W\d_][\w'’]*")
_EQUALS = frozenset({"is", "are", "makes", "make", "gives", "give"})
# No text has a sum in it without one of each.
_SAYS_EQUAL = re.compile(rf"[=≈]|(?<![^\W\d_])(?:{'|'.join(sorted(_EQUALS))})(?![\w'’])|a factor of ")
_HAS_A_NUMBER = re.compile(rf"[\d{''.join(_FRACTIONS)}]|e{_RAISED.pattern}")
_ABOUT = frozenset({"about", "near", "nearly", "roughly", "some", "around", "almost"})
# No name of a thing that is counted goes on across these.
_AND_ON = "and or so but that which what then than if with by from to at in on as not no only both"
_AND_IS = "was were has have had there it its here beside for"
_NO_THING = _EQUALS | _ABOUT | frozenset(f"{_AND_ON} {_AND_IS}".split())
_LONGEST_THING = 4  # words


class _Token(NamedTuple):
    kind: str  # number, raised, sign, open, close, unit, word, other
    text: str
    start: int
    end: int
    value: float = 0.0
    ulp: float = 0.0  # of a number's last printed digit
    last: float = 0.0  # of its last digit that is not 0


@dataclass(frozen=True)
class _Side:
    """One side of an equation."""

    value: float
    tokens: list[_Token]

    @property
    def is_number(self) -> bool:
        return not any(token.kind in ("sign", "open") and token.text != "%" for token in self.tokens)

    def words(self, kind: str) -> list[str]:
        return [token.text for token in self.tokens if token.kind == kind]


class _NoSum(Exception):
    """No sum of printed numbers."""


def wrong_sums(text: str) -> Iterator[tuple[str, str]]:
    """Yield every printed sum of a text that does not come out: how it stands there, and what its digits give."""
    for found, left, agrees in _sums(text):
        if not agrees:
            yield found, f"{left:.6g}"


def sums(text: str) -> list[str]:
    """Return every printed sum of a text."""
    return [found for found, _, _ in _sums(text)]


def _sums(text: str) -> Iterator[tuple[str, float, bool]]:
    text = plain_words(text)
    if not (_SAYS_EQUAL.search(text) and _HAS_A_NUMBER.search(text)):
        return
    tokens = list(_tokens(text))
    for at, token in enumerate(tokens):
        spoken = token.kind == "word" and token.text in _EQUALS
        if not spoken and not (token.kind == "sign" and token.text in "=≈"):
            continue
        left, (right, about) = _left(tokens, at, spoken), _right(tokens, at + 1)
        if left is None or right is None or (left.is_number and (right.is_number or len(left.tokens) > 1)):
            continue
        if spoken and (left.is_number or not right.is_number or _is_shared(tokens, right)):
            continue
        found = text[left.tokens[0].start : right.tokens[-1].end]
        yield found, left.value, _agree(left, right, about or token.text == "≈")
    for match in _FACTOR.finditer(text):
        one, other, factor = (_number(match[name], match.start(name)) for name in ("one", "other", "factor"))
        if one.value and other.value:
            units = [token for token in tokens if match.start() <= token.start < match.end("other")]
            quotients = (one.value / other.value, other.value / one.value)
            told = _Side(factor.value, [factor])
            agrees = any(_agree(_Side(value, units), told, bool(match["about"])) for value in quotients)
            yield match[0], max(quotients), agrees


def _is_shared(tokens: list[_Token], right: _Side) -> bool:
    """Return whether *128 a thread* or *4 for each* stands there: the sum was divided without a word."""
    number = tokens.index(right.tokens[0])
    return any(token.text in ("a", "an", "for", "per", "each") for token in tokens[number + 1 : number + 3])


# --- what stands there --------------------------------------------------------------------------


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        token = _token(text, at)
        yield token
        at = token.end


def _token(text: str, at: int) -> _Token:
    sign, before = text[at], text[at - 1] if at else " "
    if found := _NUMBER.match(text, at):
        if (
            before.isalnum()
            or before in "_."
            or _BINARY.fullmatch(found[0])
            or len(found[0]) > _LONGEST_NUMBER
        ):
            return _Token("other", found[0], at, found.end())
        return _number(found[0], at)
    if sign in _FRACTIONS:
        return _Token("number", sign, at, at + 1, _FRACTIONS[sign])
    if found := _RAISED.match(text, at):
        return _Token("raised", found[0], at, found.end(), float(found[0].translate(_LOWER)))
    if not before.isalnum() and (found := _UNIT.match(text, at)):
        return _Token("unit", found[0], at, found.end())
    if found := _SPOKEN.match(text, at):
        return _Token("sign", _SPOKEN_SIGNS[found[1]], at, found.end())
    if found := _WORD.match(text, at):
        if found[0] == "e" and _RAISED.match(text, found.end()):
            return _Token("number", "e", at, found.end(), math.e)
        return _Token("word", found[0], at, found.end())
    if sign == "-" and before == " " and text[at + 1 : at + 2] == " ":
        sign = "−"
    if sign in _SIGNS:
        return _Token("sign", _SIGNS[sign], at, at + 1)
    if sign in _BRACKETS or sign in _BRACKETS.values():
        return _Token("open" if sign in _BRACKETS else "close", sign, at, at + 1)
    return _Token("other", sign, at, at + 1)


def _number(printed: str, at: int) -> _Token:
    digits, _, power = printed.replace(" ", "").replace(",", "").partition("e")
    ulp = 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
    whole = digits.replace(".", "").lstrip("0")
    last = ulp * 10.0 ** (len(whole) - len(whole.rstrip("0")))
    return _Token(
        "number", printed, at, at + len(printed), float(digits) * 10.0 ** int(power or 0), ulp, last
    )


def _left(tokens: list[_Token], equals: int, spoken: bool) -> _Side | None:
    """Return the longest sum that ends here, unless it is a part of something that is no number."""
    first, words = equals, 0
    while first:
        token = tokens[first - 1]
        words = words + 1 if token.kind == "word" else 0
        if token.kind == "other" or (token.kind == "sign" and token.text in "=≈"):
            break
        if token.kind == "word" and (token.text in _NO_THING or words > _LONGEST_THING):
            break
        first -= 1
    for start in range(first, equals):
        part = tokens[start:equals]
        try:
            value, end = _sum(part, 0)
        except _NoSum:
            continue
        if end < len(part):
            continue
        if _goes_on_before(tokens, start) or (spoken and not _begins_a_sentence(tokens, start)):
            return None
        if len({token.end - token.start for token in part if token.text == "*"}) > 1:
            return None  # "3 × 4 times 4 × 5" are shapes
        return _Side(value, part)
    return None


def _goes_on_before(tokens: list[_Token], start: int) -> bool:
    """Return whether what stands before belongs to the sum, and is no printed number."""
    if not start:
        return False
    before = tokens[start - 1]
    if before.kind == "sign":
        return before.text not in "=≈"
    if before.kind in ("open", "close", "raised"):
        return True
    touches = before.end == tokens[start].start
    return before.text in "√^∑…~<>≤≥_\\\ufffc" or (touches and before.text not in ",;“„\"'‘")


def _begins_a_sentence(tokens: list[_Token], start: int) -> bool:
    return not start or tokens[start - 1].text in (
        ".",
        ":",
        ";",
        ",",
        "?",
        "!",
        "and",
        "so",
        "So",
        "then",
        "=",
    )


def _right(tokens: list[_Token], start: int) -> tuple[_Side | None, bool]:
    """Return the sum that begins here, and whether it is said to be about so."""
    about = False
    while start < len(tokens) and tokens[start].text in _ABOUT:
        about, start = True, start + 1
    part = tokens[start:]
    try:
        value, end = _sum(part, 0)
    except _NoSum:
        return None, about
    after = part[end] if end < len(part) else None
    if after:
        touches = after.start == part[end - 1].end
        if (after.kind == "sign" and after.text not in "=≈") or after.kind in ("open", "raised"):
            return None, about
        if touches and (after.kind == "word" or after.text in "^…_\\"):
            return None, about
        if after.text in _SCALE_WORDS:
            end += 1
    return _Side(value, part[:end]), about


# --- what it comes to ---------------------------------------------------------------------------


def _sum(tokens: list[_Token], at: int) -> tuple[float, int]:
    value, at = _product(tokens, at)
    while at < len(tokens) and tokens[at].kind == "sign" and tokens[at].text in "+-":
        other, end = _product(tokens, at + 1)
        value, at = value + other if tokens[at].text == "+" else value - other, end
    return value, at


def _product(tokens: list[_Token], at: int) -> tuple[float, int]:
    value, at = _factor(tokens, at)
    while at < len(tokens) and tokens[at].kind == "sign" and tokens[at].text in "*/":
        other, end = _factor(tokens, at + 1)
        if tokens[at].text == "/" and not other:
            raise _NoSum
        value, at = value * other if tokens[at].text == "*" else value / other, end
    return value, at


def _factor(tokens: list[_Token], at: int) -> tuple[float, int]:
    if at == len(tokens):
        raise _NoSum
    token = tokens[at]
    if token.kind == "sign" and token.text == "-":
        value, at = _factor(tokens, at + 1)
        return -value, at
    if token.kind == "number":
        value, at = token.value, at + 1
    elif token.kind == "open":
        value, at = _sum(tokens, at + 1)
        if at == len(tokens) or tokens[at].text != _BRACKETS[token.text]:
            raise _NoSum
        value, at = {"⌈": math.ceil, "⌊": math.floor}.get(token.text, float)(value), at + 1
    else:
        raise _NoSum
    if at < len(tokens) and tokens[at].kind == "raised" and tokens[at].start == tokens[at - 1].end:
        try:
            value, at = value ** tokens[at].value, at + 1
        except (OverflowError, ZeroDivisionError):
            raise _NoSum from None
    return value, _past_the_thing(tokens, at)


def _past_the_thing(tokens: list[_Token], at: int) -> int:
    """Past a unit, and past the words for what is counted where the sum goes on behind them."""
    while at < len(tokens) and (
        tokens[at].kind == "unit" or (tokens[at].kind == "sign" and tokens[at].text == "%")
    ):
        at += 1
    end = at
    while (
        end < len(tokens)
        and end - at <= _LONGEST_THING
        and tokens[end].kind in ("word", "unit")
        and tokens[end].text not in _NO_THING
        and (tokens[end].text.islower() or tokens[end].text[:2].isupper())
    ):
        end += 1
    goes_on = end == len(tokens) or (tokens[end].kind == "sign" and tokens[end].text not in "=≈")
    return end if goes_on or (end < len(tokens) and tokens[end].kind == "close") else at


def _agree(left: _Side, right: _Side, about: bool) -> bool:
    room = abs(right.value) * 1e-9
    if right.is_number:
        printed = next(token for token in right.tokens if token.kind == "number")
        room += printed.last if about else printed.ulp / 2
    return any(abs(left.value * scale - right.value) <= room for scale in _scales(left, right))


def _scales(left: _Side, right: _Side) -> set[float]:
    """Return the factors by which the two sides may differ: per cent, thousands, 1024 for 1000, eight bits."""
    units = left.words("unit") + right.words("unit")
    scales = {1.0}
    if "%" in left.words("sign") + right.words("sign"):
        scales |= {100.0, 0.01}
    if any(_SCALED.match(unit) for unit in units) or _SCALE_WORDS & {
        *left.words("word"),
        *right.words("word"),
    }:
        scales = {scale * 1000.0**k for scale in scales for k in range(-5, 6)}
    if any(re.match(r"[KMGT]i?B", unit) for unit in units):
        scales = {scale * 1.024**k for scale in scales for k in range(-4, 5)}
    if any(unit.startswith("bit") for unit in units) and any(_BYTES.match(unit) for unit in units):
        scales |= {scale * 8 for scale in scales} | {scale / 8 for scale in scales}
    return scales
