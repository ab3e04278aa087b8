"""Whole numbers written as formulas over the sizes of a workload: "ceil(N / 256)"."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

from course_profile.errors import Unusable

_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def value(text: str | int, sizes: Mapping[str, int], where: str) -> int:
    """Return the value of a formula: + - * // over names and whole numbers, and ceil(a / b).

    Args:
        text: the formula, or a number.
        sizes: the names it may use.
        where: what it is for, for the message.
    Raises:
        Unusable: it is no such formula, or uses a name that is none.
    """
    if isinstance(text, int) and not isinstance(text, bool):
        return text
    try:
        return _value(ast.parse(str(text), mode="eval").body, sizes)
    except KeyError as error:
        names = ", ".join(sizes) or "none"
        raise Unusable(f"{where}: {text!r} has no size {error.args[0]}; there are {names}") from None
    except (SyntaxError, ValueError, ZeroDivisionError):
        raise Unusable(
            f"{where}: {text!r} is no formula; write + - * // over sizes, and ceil(N / 256)"
        ) from None


def _value(node: ast.expr, sizes: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.Name(id=name):
            return sizes[name]
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _OPERATIONS:
            return _OPERATIONS[type(operation)](_value(left, sizes), _value(right, sizes))
        case ast.Call(func=ast.Name(id="ceil"), args=[ast.BinOp(left=left, op=ast.Div(), right=right)]):
            return -(-_value(left, sizes) // _value(right, sizes))
    raise ValueError
