"""The unit of what is shown: of a name, and of an expression in a page's scope, worked out once."""

from __future__ import annotations

from course_site.values.units import COUNT, ONE, Unit, unit_of, unit_of_expression
from course_site.values.values import Expression, Resolved, Scope, parse

COLUMN_UNITS = {"us": "µs", "w": "W", "mhz": "MHz", "tflops": "TFLOP/s", "c": "°C"}


def units_of_names(parsed: Expression, resolved: list[Resolved]) -> list[Unit]:
    """Return the unit of every name of an expression, in their order."""
    return [_unit(*pair) for pair in zip(parsed.names, resolved, strict=True)]


def _unit(name: str, found: Resolved) -> Unit:
    """Return the unit of one name; a recorded number without one is a count."""
    leaf = found.leaf or {}
    if leaf.get("kind") == "trace":
        column = name.split(".")[-2]
        return unit_of(COLUMN_UNITS.get(column.rsplit("_", 1)[-1], "")) or COUNT
    unit = unit_of(found.unit)
    if unit == ONE:
        counted = leaf.get("kind") in ("quantity", "counted") or name.split(".")[-1] in leaf.get(
            "workload", {}
        ).get("dims", {})
        return COUNT if counted else ONE
    return unit or COUNT


def unit_of_shown(text: str, scope: Scope) -> Unit:
    """Return the unit of an expression.

    Raises:
        UnitsDiffer: it adds or compares what has different ones.
        BadExpression, UnknownName, NotHere: as in `values.evaluate`.
    """
    if text not in scope.units:
        parsed = parse(text)
        resolved = [scope.resolve(name) for name in parsed.names]
        scope.units[text] = unit_of_expression(parsed.tree, units_of_names(parsed, resolved))
    return scope.units[text]
