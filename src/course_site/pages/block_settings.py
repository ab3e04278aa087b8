"""The YAML body of a block, held against the shape that its kind asks for, so that what is wrong is one line.

A shape is one of the names below, a list of one shape, or a table of them; a key that ends in `?` may be left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml

from course_site.pages.blocks import DirectiveError


@dataclass(frozen=True)
class Plain:
    """One value that is no list and no table: how it is called, and whether something is one."""

    called: str
    holds: Callable[[Any], bool]


Shape: TypeAlias = "Plain | tuple[Shape, ...] | list[Shape] | Mapping[str, Shape]"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


TEXT = Plain("text", lambda value: isinstance(value, str) and bool(value.strip()))
WORD = Plain("text or a number", lambda value: TEXT.holds(value) or _is_number(value))  # a label such as 4096
FLAG = Plain("true or false", lambda value: isinstance(value, bool))
COUNT = Plain("a whole number from 0 to 999", lambda value: type(value) is int and 0 <= value < 1000)
CELL = Plain("text, a number or nothing", lambda value: value in (None, "") or WORD.holds(value))

ROW = Plain(
    "a list of cells, or a table of them",
    lambda value: isinstance(value, dict) and all(map(CELL.holds, value.values())),
)


def one_of(*words: str) -> Plain:
    """Return one of these words."""
    return Plain(f"one of: {', '.join(words)}", lambda value: value in words)


def read(text: str, shape: Mapping[str, Shape]) -> dict[str, Any]:
    """Return the body of a block as `key: value`.

    Raises:
        DirectiveError: it is no such thing, a key is unknown or missing, or a value has another shape.
    """
    try:
        settings = yaml.load(text, yaml.CSafeLoader) if text.strip() else {}
    except (yaml.YAMLError, ValueError) as error:  # a date such as 2026-13-01 is a ValueError
        raise DirectiveError(f"its body is not YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(settings, dict):
        raise DirectiveError("its body is not `key: value` lines")
    _check(settings, shape, "")
    return settings


def _check(value: Any, shape: Shape, where: str) -> None:
    said = f"`{where}:` is {_short(value)}, and should be"
    if isinstance(shape, Plain):
        if not shape.holds(value):
            raise DirectiveError(f"{said} {shape.called}")
    elif isinstance(shape, tuple):  # one of several
        _check(value, _fitting(value, shape), where)
    elif isinstance(shape, list):
        if not isinstance(value, list) or not value:
            raise DirectiveError(f"{said} a list")
        for i, item in enumerate(value, 1):
            _check(item, shape[0], f"{where} {i}")
    else:
        if not isinstance(value, dict):
            raise DirectiveError(f"{said} a table of {', '.join(key.rstrip('?') for key in shape)}")
        known = {key.rstrip("?"): inner for key, inner in shape.items()}
        if unknown := [str(key) for key in value if key not in known]:
            place = f" in `{where}:`" if where else ""
            raise DirectiveError(
                f"unknown setting {', '.join(unknown)}{place}; known: {', '.join(sorted(known))}"
            )
        if missing := [key for key in shape if not key.endswith("?") and key not in value]:
            place = f"`{where}:` needs" if where else "it needs"
            raise DirectiveError(f"{place} the setting {missing[0]!r}")
        for key, item in value.items():
            _check(item, known[key], f"{where}, {key}" if where else str(key))


def _fitting(value: Any, shapes: tuple[Shape, ...]) -> Shape:
    """Return the shape whose kind of thing a value is; the last one where it is none's."""
    for shape in shapes:
        if isinstance(shape, Plain) and shape.holds(value):
            return shape
        if isinstance(value, list if isinstance(shape, list) else dict) and not isinstance(shape, Plain):
            return shape
    return shapes[-1]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}…"
