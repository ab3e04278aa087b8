"""Facts about the values of a page, for its popovers: every name once, in one list.

A page of five hundred values rests on some three hundred names, and most of its values are quotients of two of them. So
a value holds no more than its place in the list; popover.js puts the rest together. Without it a value is a link to its
row in the ledger, and its title says in one line what it is.
"""

from __future__ import annotations

import contextlib
import html
import json
import re
from typing import Any

from course_site.pages.page import Page
from course_site.site import ledger
from course_site.site.course import Course
from course_site.values.shown import unit_of_shown
from course_site.values.units import UnitsDiffer
from course_site.values.values import ExpressionError, Result, evaluate

ID = "behind-the-values"  # of the element that names the list's file, as popover.js looks it up
_BLOCK = re.compile(rf'<script type="application/json" id="{ID}">(.*?)</script>', re.DOTALL)
Facts = dict[str, Any]


class Behind:
    """Collects the values of one page while it is written, and those of parts of other pages that are shown on it."""

    def __init__(self, course: Course, page: Page, shown_on: Behind | None = None) -> None:
        self._course, self._page = course, page
        self._values: dict[tuple[str, str], tuple[int, Facts]] = shown_on._values if shown_on else {}
        self._names: dict[tuple[str, str], tuple[int, Facts]] = shown_on._names if shown_on else {}
        self._runs: dict[tuple[str, str], int] = shown_on._runs if shown_on else {}

    def place_of(self, expression: str, result: Result) -> int:
        """Return the place of a value in the block, which it takes where it first stands."""
        key = self._page.id, expression
        if key not in self._values:
            self._values[key] = len(self._values), {}
            self._values[key][1].update(self._value(expression, result))
        return self._values[key][0]

    def block(self) -> str:
        """Return the element with all of it; empty on a page without values."""
        if not self._values:
            return ""
        facts = {
            "runs": list(self._runs),
            "names": [facts for _, facts in self._names.values()],
            "values": [facts for _, facts in self._values.values()],
        }
        text = json.dumps(facts, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
        return f'<script type="application/json" id="{ID}">{text}</script>'

    def _value(self, expression: str, result: Result) -> Facts:
        """Return what is said of a value: of a name alone, what is said of the name."""
        if result.names == (expression,):
            return {"of": [self._place_of_name(expression)]}
        return self._worked_out(expression, result)

    def _worked_out(self, expression: str, result: Result) -> Facts:
        facts: Facts = {"is": expression, "value": ledger.number_words(result.value, self._unit(expression))}
        if result.spread is not None:
            facts["spread"] = f"{result.spread:.1%}"
        return facts | {"of": [self._place_of_name(name) for name in result.names]}

    def _unit(self, expression: str) -> str:
        scope = self._course.scopes[self._page.id]
        with contextlib.suppress(UnitsDiffer):
            unit = unit_of_shown(expression, scope)
            return str(unit) if unit.powers or unit.size != 1 else ""
        return ""

    def _place_of_name(self, name: str) -> int:
        key = self._page.id, name
        if key not in self._names:
            self._names[key] = len(self._names), {}
            self._names[key][1].update(self._name(name))
        return self._names[key][0]

    def _name(self, name: str) -> Facts:
        scope = self._course.scopes[self._page.id]
        found = scope.resolve(name)
        facts: Facts = {"name": name, "value": ledger.number_words(found.value, found.unit)}
        leaf = found.leaf or {}
        if leaf.get("kind") in ("measurement", "samples"):
            facts["n"] = leaf["n"]
        if "kernel" in leaf:
            facts["what"] = leaf["kernel"]
        if found.spread is not None:
            facts["spread"] = f"{found.spread:.1%}"
        home = ledger.home_of(self._course, self._page, name)
        if home is None:
            return facts
        if not isinstance(found.value, str):
            facts["row"] = f"{home.page.id}.{home.name}"
        record = home.record
        if (how := leaf.get("how")) in ledger.NOT_MEASURED:
            facts["how"] = how
        elif record and record.measured:
            run = record.edition["gpu"], ledger.date_words(record.meta["provenance"]["date"])
            facts["run"] = self._runs.setdefault(run, len(self._runs))
        define = home.course.scopes[home.page.id].defines.get(home.name)
        if define:
            facts |= (
                {"is": define.expression, "what": define.what} if define.what else {"is": define.expression}
            )
            if home.page is self._page:
                with contextlib.suppress(ExpressionError):
                    names = evaluate(define.expression, scope).names
                    facts["of"] = [self._place_of_name(part) for part in names]
        return facts


def apart(page: str, file: str) -> tuple[str, str]:
    """Return a page without its list, which nobody needs before a tap; and the list, as a script.

    Args:
        page: HTML.
        file: the name of the script's file, beside the page's own.
    Returns:
        the page, which names the file; and what belongs into it, empty where the page has no list.
    """
    found = _BLOCK.search(page)
    if not found:
        return page, ""
    named = f'<span id="{ID}" data-file="{html.escape(file)}" hidden></span>'
    return page[: found.start()] + named + page[found.end() :], f"PercentOfPeak.behind({found[1]});\n"
