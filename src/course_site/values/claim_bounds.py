"""The interval that a claim's condition guarantees for a ratio.

`a.us < 0.5 * b.us` says of b over a that it is at least 2; `abs(a / b - 1) < 0.06` that they differ by six in
a hundred at most. A sentence may type a ratio only where a bound of its condition holds it up, in the direction it
says.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass

Powers = tuple[tuple[str, int], ...]  # of what is no number in a product


@dataclass(frozen=True)
class Bounds:
    """The least and the most of each ratio in a condition, and how far from 1 a ratio may be."""

    ratios: tuple[tuple[float, float], ...]
    apart: tuple[float, ...]

    def hold(self, amount: float, *, at_most: bool, about: bool, percent: bool) -> bool:
        """Return whether a sentence may say this ratio.

        Args:
            amount: the factor, 0.06 of six in a hundred.
            at_most: the words before it make it an upper bound, as "less than" does.
            about: they make it a round one.
            percent: it was said in percent, so it may also be a difference.
        """
        if at_most:
            found = any(most <= amount * _SLACK for _, most in self.ratios)
            return found or (percent and any(apart <= amount * _SLACK for apart in self.apart))
        return any(
            least * _SLACK >= amount or (least >= 0.89 * amount and (about or most <= 1.11 * amount))
            for least, most in self.ratios
        )


_SLACK = 1.001  # 0.98 is two in a hundred less, and no number of a computer is quite so


@functools.lru_cache(maxsize=4096)
def bounds_of(condition: str) -> Bounds:
    """Return the bounds of a condition; none where it cannot be read, which is told elsewhere."""
    try:
        tree = ast.parse(condition.strip(), mode="eval").body
    except SyntaxError:
        return Bounds((), ())
    least: dict[Powers, float] = {}
    apart: list[float] = []
    for small, large in _pairs(tree):
        limit = number_of(large)
        if limit is not None and _is_offset(small):
            apart.append(limit)
        elif found := _least(small, large):
            ratio, bound = found
            least[ratio] = max(least.get(ratio, 0.0), bound)
            apart += (abs(1 / bound - 1), abs(bound - 1))
    ratios = [
        (bound, 1 / least[_upside_down(ratio)] if _upside_down(ratio) in least else math.inf)
        for ratio, bound in least.items()
    ]
    ratios += [(0.0, 1 / bound) for bound in least.values() if bound]
    return Bounds(tuple(ratios), tuple(apart))


def _least(small: ast.expr, large: ast.expr) -> tuple[Powers, float] | None:
    """Return the ratio that a comparison bounds from below, and its bound; None where it is none."""
    (low, over), (high, under) = _monomial(small), _monomial(large)
    ratio = _product(under, over, -1)
    return (ratio, low / high) if low > 0 and high > 0 and ratio else None  # low * over < high * under


def least_of(condition: str) -> dict[Powers, float]:
    """Return the least of every ratio that a condition bounds, by what it is a ratio of.

    The largest of several is below a bound if each of them is, and the smallest above one likewise.
    """
    least: dict[Powers, float] = {}
    for pair in _pairs(ast.parse(condition.strip(), mode="eval").body):
        for found in (_least(*one) for one in _each(*pair)):
            if found:
                least[found[0]] = max(least.get(found[0], 0.0), found[1])
    return least


def spans_of(condition: str) -> dict[Powers, tuple[float, float]]:
    """Return the least and the most of every ratio that a condition bounds, each ratio one way round alone."""
    try:
        least = least_of(condition)
    except SyntaxError:  # told elsewhere
        return {}
    spans: dict[Powers, tuple[float, float]] = {}
    for ratio, bound in least.items():
        upright = max(ratio, _upside_down(ratio), key=lambda powers: [power for _, power in powers])
        low, high = spans.get(upright, (0.0, math.inf))
        spans[upright] = (max(low, bound), high) if ratio == upright else (low, min(high, 1 / bound))
    return spans


def _each(small: ast.expr, large: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if _calls(small, "max"):
        yield from ((part, large) for part in small.args)  # type: ignore[attr-defined]
    elif _calls(large, "min"):
        yield from ((small, part) for part in large.args)  # type: ignore[attr-defined]
    else:
        yield small, large


def _calls(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def ranks_nothing(condition: str) -> bool:
    """Return whether a condition has an `or` in it: either part of it may be false."""
    return any(isinstance(node, ast.Or) for node in ast.walk(ast.parse(condition.strip(), mode="eval")))


def _pairs(tree: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the comparisons that all hold, each with its smaller side first."""
    if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And):
        for value in tree.values:
            yield from _pairs(value)
    elif isinstance(tree, ast.Compare):
        left = tree.left
        for operation, right in zip(tree.ops, tree.comparators, strict=True):
            if isinstance(operation, (ast.Lt, ast.LtE)):
                yield left, right
            elif isinstance(operation, (ast.Gt, ast.GtE)):
                yield right, left
            left = right


def number_of(node: ast.expr) -> float | None:
    """Return the number that a side of a comparison is; None where it is none."""
    coefficient, powers = _monomial(node)
    return None if powers else coefficient


def _is_offset(node: ast.expr) -> bool:
    """Return True for `abs(a / b - 1)`, how far two things are apart, and for the largest of several."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return False
    if node.func.id == "max":
        return all(map(_is_offset, node.args))
    inside = node.args[0]
    return (
        node.func.id == "abs"
        and isinstance(inside, ast.BinOp)
        and isinstance(inside.op, ast.Sub)
        and number_of(inside.right) == 1
    )


def _monomial(node: ast.expr) -> tuple[float, Powers]:
    """Return a product as its number and the powers of everything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return float(node.value), ()
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number, powers = _monomial(node.operand)
        return -number, powers
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        sign = 1 if isinstance(node.op, ast.Mult) else -1
        (left, mine), (right, theirs) = _monomial(node.left), _monomial(node.right)
        return left * right if sign > 0 else left / right if right else 0.0, _product(mine, theirs, sign)
    return 1.0, ((ast.unparse(node), 1),)


def _product(mine: Powers, theirs: Powers, sign: int) -> Powers:
    powers = dict(mine)
    for name, power in theirs:
        powers[name] = powers.get(name, 0) + sign * power
    return tuple(sorted((name, power) for name, power in powers.items() if power))


def _upside_down(ratio: Powers) -> Powers:
    return tuple((name, -power) for name, power in ratio)
