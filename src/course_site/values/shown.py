"""What is shown of a name: its unit."""

from __future__ import annotations

from course_site.values.units import COUNT, ONE, Unit, unit_of
from course_site.values.values import Expression, Resolved

COLUMN_UNITS = {"us": "µs", "w": "W", "mhz": "MHz", "tflops": "TFLOP/s", "c": "°C"}


def units_of_names(parsed: Expression, resolved: list[Resolved]) -> list[Unit]:
    """The unit of every name of an expression, in their order."""
    return [_unit(*pair) for pair in zip(parsed.names, resolved, strict=True)]


def _unit(name: str, found: Resolved) -> Unit:
    """The unit of one name; a recorded number without one is a count."""
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
