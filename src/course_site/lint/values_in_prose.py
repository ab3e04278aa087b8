"""A value is tied to its words: its format, its names and the unit behind it.

Reject a `{{ value }}` that no record can change, that adds a literal of its own, or whose unit contradicts the next
word.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import numpy as np

from course_site.values.shown import unit_of_shown
from course_site.values.units import ONE, Unit, UnitsDiffer, number_in, unit_of
from course_site.values.values import (
    Define,
    Expression,
    ExpressionError,
    Resolved,
    Scope,
    evaluate,
    format_value,
    parse,
)

FORMAT = re.compile(r",?(?:\.\d)?[fdeg%]?")
FAR = 1000.0  # where a name stands beside another in a max or min
_MARKUP = r"(?:[\s\xa0*_~]|&nbsp;|&#160;|</?\w+>)*"
_WORD = (
    r"(?:(?:[GMTkK]?FLOPs?|[kKMGTP]i?B|B|bits?|T?OP)(?:/(?:s|clk|B)|\s+(?:a|per)\s+(?:second|tick))?|FLOPS"
    r"|[GMTP]FLOPS|[µmn]?s|[MGk]?Hz|W|%|×(?!\s*[\d{(])|°C|ticks|cycles|milliseconds|microseconds|nanoseconds|seconds|per\s?cent)"
)
_BEHIND = re.compile(rf"{_MARKUP}(?P<word>{_WORD})(?![\w/⁻])(?P<rate>\s+in\s+a\s+second)?")
# `{{ a }} and {{ b }} µs`: what is between two values of one unit
_BETWEEN = re.compile(rf"{_MARKUP}(?:and|to|or|[,/;–-]|against|of){_MARKUP}\{{\{{[^{{}}]*\}}\}}")
_SPOKEN = {
    "milliseconds": "ms", "microseconds": "µs", "nanoseconds": "ns", "seconds": "s", "percent": "%", "bits": "bit",
    "FLOPs": "FLOP",
}  # fmt: skip


# The unit that ends the head of a column: "to the card, GB/s", "time (µs)".
_HEAD = re.compile(rf"(?:^|[\s,(])(?P<word>{_WORD})\)?\s*$")


def unit_of_head(text: str) -> str:
    """Return the unit at the end of a column's head; empty where it says none."""
    found = _HEAD.search(text)
    return found["word"] if found else ""


def units_said(text: str) -> list[Unit]:
    """Return every unit that a text names, such as the label of an axis."""
    found = re.finditer(rf"(?<![\w/])(?P<word>{_WORD})(?![\w/⁻])", text)
    return [unit for match in found if (unit := _unit_of_words(match["word"]))]


def unit_behind(text: str) -> Unit | None:
    """Return the unit that prose says behind a value; of several values in a row, the one behind the last."""
    alone = True
    while between := _BETWEEN.match(text):
        text, alone = text[between.end() :], False
    found = _BEHIND.match(text)
    if not found or (found["word"] == "×" and not alone):
        return None
    return _unit_of_words(found["word"] + (" a second" if found["rate"] else ""))


def _unit_of_words(words: str) -> Unit | None:
    plain = re.sub(r"\s+(?:a|per)\s+", "/", words).replace("/second", "/s").replace("/tick", "/clk")
    plain = re.sub(r"FLOPS$", "FLOP/s", plain)
    plain = re.sub(r"(?<=[KMGTPk])FLOPs", "FLOP", plain)
    return unit_of(_SPOKEN.get(plain.replace(" ", ""), plain))


def faults_of(expression: str, spec: str, behind: str, scope: Scope) -> Iterator[str]:
    """Yield what is wrong with a value of prose, each in one line.

    Args:
        spec: its format.
        behind: the prose that follows it.
    """
    if not FORMAT.fullmatch(spec):
        yield f"the format {spec!r}: write one such as .1f, .0%, ,.0f, .2e or d"
        return
    try:
        parsed = parse(expression)
        resolved = [scope.resolve(name) for name in parsed.names]
        if any(isinstance(found.value, str) for found in resolved):
            return
        unit = unit_of_shown(expression, scope)
        yield from _unmoved(parsed, resolved, spec, scope)
    except UnitsDiffer as error:
        yield f"{expression!r}: {error}"
        return
    except ExpressionError:
        return  # it is told where the value is filled in
    if spec.endswith("%"):
        if not unit.is_said_by(ONE):
            yield f"{expression!r} is in {unit}, and a percentage has no unit"
        return
    said = unit_behind(behind)
    if said and not unit.is_said_by(said):
        yield f"{expression!r} is in {unit}, and the words after it say {said}"


def defined_faults(found: Define, scope: Scope) -> Iterator[str]:
    """Yield what is wrong with a name that a page defines."""
    unit = unit_of(found.unit)
    parsed = parse(found.expression)
    if parsed.names and unit:
        try:
            computed = unit_of_shown(found.expression, scope)
        except UnitsDiffer as error:
            yield str(error)
            return
        if not computed.is_said_by(unit):
            yield f"it is in {computed}, and `unit:` says {found.unit}"
    if parsed.names:
        for number in _typed(parsed):
            yield f"it has the typed number {number:g} in it: record it by name, or define it with its source"


def _unmoved(parsed: Expression, resolved: list[Resolved], spec: str, scope: Scope) -> Iterator[str]:
    """Yield numbers that somebody typed into an expression, and names that do not count in it."""
    text = parsed.text
    if not parsed.names:
        yield f"{text!r} has no name in it: a value comes from a record"
        return
    values = [found.value for found in resolved]
    shown = format_value(evaluate(text, scope).value, spec)
    if re.fullmatch(r"([\w.]+) / \1", text):  # the row that the others are compared with
        return
    for i, name in enumerate(parsed.names):
        if not any(_moves(parsed, values, i, factor, spec, shown) for factor in (2.0, 0.5, FAR, 1 / FAR)):
            yield f"{text!r} says {shown} whatever {name} is"
    for node in ast.walk(parsed.tree):
        if isinstance(node, ast.Call) and any(number_in(part) is not None for part in node.args):
            yield f"{text!r} lets a typed number through: min, max, median and abs take names"
    yield from (
        f"{text!r} has the typed number {number:g} in it: record it by name" for number in _typed(parsed)
    )


def _moves(parsed: Expression, values: list[float], i: int, factor: float, spec: str, shown: str) -> bool:
    changed = [(value or FAR**4) * factor if i == j else value for j, value in enumerate(values)]
    try:
        return format_value(parsed.compute(changed), spec) != shown
    except ExpressionError:
        return True  # such as a division by zero: it counts


def _typed(parsed: Expression) -> Iterator[float]:
    """Yield numbers that are none of a sum by hand: no whole one, no power of ten, no half, quarter or eighth."""
    for node in ast.walk(parsed.tree):
        number = number_in(node) if isinstance(node, ast.Constant) else None
        if number and number * 8 != int(number * 8) and not np.isclose(np.log10(number) % 1, 0):
            yield number
