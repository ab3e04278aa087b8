"""Cards side by side: on the one page that holds values of several, each stands beside the name of its card.

Every other page is of one card, and a value that names another edition is refused where it is looked up. The text
beside a value is its sentence; of a table its row, its head and its caption; of a chart the title, the caption and the
words of the bar or the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from course_site.pages.placeholders import PLACEHOLDER, expressions
from course_site.pages.plain_text import sentences, without_code
from course_site.values.data_sheet import GPU
from course_site.values.values import ExpressionError, OfAnotherCard, Scope, parse

_NAME = re.compile(r"(?<![\w.\"'])[A-Za-z_]\w*(?:\.\w+)+(?:\.\*)?|(?<![\w.\"'])[A-Za-z_]\w*\.\*")


def names(text: str, card: str, scope: Scope) -> bool:
    """Return whether a text names a card, in words or by a value such as `{{ h100.gpu.name }}`."""
    if re.search(rf"(?<![\w^/-]){re.escape(card)}(?![\w/])", PLACEHOLDER.sub(" ", text), re.IGNORECASE):
        return True
    shown = {name for found in expressions(text) for name in _names_of(found)}
    return any(f".{name}".endswith(f".{GPU}.name") and card in scope.cards_of(name) for name in shown)


def _names_of(expression: str) -> tuple[str, ...]:
    try:
        return parse(expression).names
    except ExpressionError:  # a group, `page.name.*`; or it is told where the value is filled in
        return tuple(_NAME.findall(expression))


def faults_of(values: Iterable[str], beside: str, scope: Scope) -> Iterator[str]:
    """Yield what is wrong with values that share the text beside them: one line for each card that it does not name.

    Args:
        values: their expressions, or groups of them.
    """
    told: set[str] = set()
    for expression in values if scope.beside is not None else ():
        for card in sorted(cards_of([expression], scope)):
            if card not in told and not names(beside, card, scope):
                told.add(card)
                yield f"{expression.strip()!r} is of the {card}: name it beside the value, in words or as a value"


def of_another(values: Iterable[str], scope: Scope) -> Iterator[str]:
    """Yield what is wrong with values that a page of one card may not name, for texts that it does not show itself."""
    for name in (name for expression in values for name in _names_of(expression)):
        try:
            scope.other(name)
        except OfAnotherCard as error:
            yield str(error)


def faults_of_prose(text: str, scope: Scope, beside: str = "") -> Iterator[str]:
    """Yield what is wrong with the values of some Markdown, each beside its sentence.

    A row of a table has its head beside it.

    Args:
        beside: further words that stand beside every value of it.
    """
    if scope.beside is None or "{{" not in text:
        return
    bare, head = without_code(text), ""
    for start, end in sentences(bare):
        said = bare[start:end]
        is_row = said.lstrip().startswith("|")
        head = (head or said) if is_row else ""
        yield from faults_of(expressions(said), f"{said} {head} {beside}", scope)


def alike(groups: Iterable[Iterable[str]], scope: Scope) -> bool:
    """Return whether the values of every group, such as a row or a bar, are of the same cards.

    Words over them all then name the cards for all.
    """
    found = {cards_of(values, scope) for values in groups}
    return len(found - {frozenset()}) <= 1


def cards_of(values: Iterable[str], scope: Scope) -> frozenset[str]:
    """Return the cards of some values, or groups of them, that say their edition."""
    return frozenset(
        card for expression in values for name in _names_of(expression) for card in scope.cards_of(name)
    )
