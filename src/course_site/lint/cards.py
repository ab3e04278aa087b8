"""One text, one card: a value measured on another card than its page's stands only beside that card's name.

The text beside a value is its sentence; of a table its row, its head and its caption; of a chart the title, the caption
and the words of the bar or the line; of a sheet's part everything that stands in the part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from course_site.pages.placeholders import PLACEHOLDER, expressions
from course_site.pages.plain_text import sentences, without_code
from course_site.values.data_sheet import GPU, short_name
from course_site.values.values import ExpressionError, Scope, parse

_NAME = re.compile(r"(?<![\w.\"'])[A-Za-z_]\w*(?:\.\w+)+(?:\.\*)?|(?<![\w.\"'])[A-Za-z_]\w*\.\*")


def names(text: str, gpu: str, home: str, scope: Scope) -> bool:
    """Return whether a text names a card, in words or by a value such as `{{ w2.gpu.name }}`."""
    word = short_name(gpu) if short_name(gpu) != short_name(home) else gpu
    if re.search(rf"(?<![\w^/-]){re.escape(word)}(?![\w/])", PLACEHOLDER.sub(" ", text), re.IGNORECASE):
        return True
    shown = {name for found in expressions(text) for name in _names_of(found)}
    return any(f".{name}".endswith(f".{GPU}.name") and gpu in scope.cards_of(name) for name in shown)


def _names_of(expression: str) -> tuple[str, ...]:
    try:
        return parse(expression).names
    except ExpressionError:  # a group, `page.name.*`; or it is told where the value is filled in
        return tuple(_NAME.findall(expression))


def faults_of(values: Iterable[str], beside: str, home: str, scope: Scope) -> Iterator[str]:
    """Yield what is wrong with values that share the text beside them: one line for each card that it does not name.

    Args:
        values: their expressions, or groups of them.
        home: the card of the page that they are printed on; "" where several stand side by side by necessity.
    """
    told: set[str] = set()
    for expression in values if home else ():
        for gpu in sorted(cards_of([expression], scope)):
            if gpu not in (home, *told) and not names(beside, gpu, home, scope):
                told.add(gpu)
                yield (
                    f"{expression.strip()!r} is of an {gpu}, and this page of an {home}: name the {short_name(gpu)} "
                    "beside it, or take a value of the page's own card"
                )


def faults_of_prose(text: str, home: str, scope: Scope, beside: str = "") -> Iterator[str]:
    """Yield what is wrong with the values of some Markdown, each beside its sentence.

    A row of a table has its head beside it.

    Args:
        beside: further words that stand beside every value of it.
    """
    if not home or "{{" not in text:
        return
    bare, head = without_code(text), ""
    for start, end in sentences(bare):
        said = bare[start:end]
        is_row = said.lstrip().startswith("|")
        head = (head or said) if is_row else ""
        yield from faults_of(expressions(said), f"{said} {head} {beside}", home, scope)


def of_one(texts: Iterable[str], scope: Scope) -> bool:
    """Return whether all values in some texts are of one card at most.

    Words over them all then name the card for all.
    """
    shown = (found for text in texts for found in expressions(text))
    return len(cards_of(shown, scope)) <= 1


def cards_of(values: Iterable[str], scope: Scope) -> frozenset[str]:
    """Return the cards of some values, or groups of them."""
    return frozenset(
        card for expression in values for name in _names_of(expression) for card in scope.cards_of(name)
    )
