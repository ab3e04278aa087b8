"""Units: what an expression is measured in, and whether the word behind its value says the same.

A unit is a size and a power of each base: a GB/s is 10⁹ B¹ s⁻¹. In an expression a power of ten or of 1024 that
multiplies or divides is a change of unit: `a.us / 1000` is in ms. Any other number counts something and leaves the unit
as it is. What was recorded as a plain count may stand for bytes or operations.
"""

from __future__ import annotations

import ast
import math
import re
from dataclasses import dataclass

_SIZES = {"": 1.0, "n": 1e-9, "µ": 1e-6, "u": 1e-6, "m": 1e-3, "k": 1e3, "K": 1e3}
_SIZES |= {letter: 1e3**power for power, letter in enumerate("MGTP", start=2)}
_SIZES |= {f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTP", start=1)}
_BASES = {
    "s": ("s", 1.0),
    "B": ("B", 1.0),
    "bit": ("B", 1 / 8),
    "FLOP": ("FLOP", 1.0),
    "OP": ("FLOP", 1.0),
    "W": ("W", 1.0),
    "Hz": ("clk/s", 1.0),
    "clk": ("clk", 1.0),
    "cycles": ("clk", 1.0),
    "ticks": ("clk", 1.0),
    "°C": ("°C", 1.0),
}
_FACTOR = re.compile(
    rf"(?P<size>{'|'.join(sorted(filter(None, _SIZES), key=len, reverse=True))})?(?P<base>{'|'.join(_BASES)})"
)
_NAMED = (
    "%", "s", "ms", "µs", "ns", "B", "kB", "MB", "GB", "KiB", "MiB", "GiB", "MB/s", "GB/s", "TB/s", "FLOP", "GFLOP",
    "GFLOP/s", "TFLOP/s", "FLOP/B", "clk", "MHz", "GHz", "B/clk", "FLOP/clk", "W", "°C",
)  # fmt: skip
COUNTED = frozenset({"B", "FLOP", "clk"})  # what a plain count may be a count of


@dataclass(frozen=True)
class Unit:
    """A size and the powers of its bases; `counts` is true where a plain count is one of its factors."""

    size: float = 1.0
    powers: tuple[tuple[str, int], ...] = ()
    counts: bool = False

    def __str__(self) -> str:
        """Return the unit as a person writes it where it has a name, otherwise size and powers."""
        if not self.powers and self.size == 1:
            return "plain numbers"
        for name in _NAMED:
            if (unit := unit_of(name)) and unit.powers == self.powers and math.isclose(unit.size, self.size):
                return name
        bases = [base if power == 1 else f"{base}^{power}" for base, power in self.powers]
        return " ".join([f"{self.size:g}", *bases])

    def times(self, other: Unit, power: int = 1) -> Unit:
        """Return the unit of a product, or with power -1 of a quotient."""
        powers = dict(self.powers)
        for base, exponent in other.powers:
            powers[base] = powers.get(base, 0) + power * exponent
        kept = tuple(sorted((base, exponent) for base, exponent in powers.items() if exponent))
        return Unit(self.size * other.size**power, kept, self.counts or other.counts)

    def is_said_by(self, word: Unit) -> bool:
        """Return whether a value of this unit may be followed by that word.

        Prose may say "for each byte" further on. A plain count may be one of bytes, operations or ticks, in millions.
        """
        mine, theirs = dict(self.powers), dict(word.powers)
        apart = {base for base in {*mine, *theirs} if mine.get(base, 0) != theirs.get(base, 0)}
        if not apart <= COUNTED:
            return False
        if not self.counts and any(base in theirs or mine[base] > 0 for base in apart):
            return False
        return (self.counts and not mine) or math.isclose(self.size, word.size, rel_tol=1e-9)


ONE, COUNT = Unit(), Unit(counts=True)
PERCENT = Unit(0.01)


def unit_of(text: str) -> Unit | None:
    """Return the unit of a name such as "GB/s", "FLOP/clk", "%", "1" or "×"; None for a word that is none."""
    if text in ("1", "×", "x", ""):
        return ONE
    if text == "%":
        return PERCENT
    found = ONE
    for number, part in enumerate(text.split("/")):
        match = _FACTOR.fullmatch(part)
        if not match:
            return None
        base, size = _BASES[match["base"]]
        factor = Unit(size * _SIZES[match["size"] or ""])
        for power, name in enumerate(base.split("/")):
            factor = factor.times(Unit(1.0, ((name, 1),)), -1 if power else 1)
        found = found.times(factor, -1 if number else 1)
    return found


class UnitsDiffer(ValueError):
    """Two units that cannot be added or compared."""


def unit_of_expression(tree: ast.expr, units: list[Unit]) -> Unit:
    """Return the unit of a checked expression (`values.parse`), whose names have these units.

    Raises:
        UnitsDiffer: it adds or compares what is measured in different units.
    """
    return _Units(units).of(tree)


class _Units:
    def __init__(self, units: list[Unit]) -> None:
        self._units = units

    def of(self, node: ast.expr) -> Unit:
        if isinstance(node, ast.Name):
            return self._units[int(node.id[1:])]
        if isinstance(node, ast.Constant):
            return COUNT
        if isinstance(node, ast.BinOp):
            return self._of_operation(node)
        if isinstance(node, ast.UnaryOp):
            return self.of(node.operand)
        if isinstance(node, ast.Call):
            return self._same(node.args)
        if isinstance(node, ast.Compare):
            self._same([node.left, *node.comparators])
        if isinstance(node, ast.BoolOp):
            for value in node.values:
                self.of(value)
        return ONE

    def _of_operation(self, node: ast.BinOp) -> Unit:
        left, right = self.of(node.left), self.of(node.right)
        if isinstance(node.op, (ast.Add, ast.Sub)):
            unit = self._same([node.left, node.right])
            if unit.powers and (_is_number(node.left) or _is_number(node.right)):
                raise UnitsDiffer(f"it adds a typed number to {unit}")
            return unit
        if isinstance(node.op, ast.Mult):
            for number, unit in ((node.right, left), (node.left, right)):
                if change := _change(number, unit):
                    return Unit(unit.size / change, unit.powers, unit.counts)
            return left.times(right)
        if isinstance(node.op, ast.Div):
            if change := _change(node.right, left):
                return Unit(left.size * change, left.powers, left.counts)
            return left.times(right, -1)
        power = int(number_in(node.right) or 0)
        return Unit(
            left.size**power, tuple((base, exponent * power) for base, exponent in left.powers), left.counts
        )

    def _same(self, nodes: list[ast.expr]) -> Unit:
        units = [self.of(node) for node in nodes if not _is_number(node)]
        for unit in units[1:]:
            if not (unit.is_said_by(units[0]) or units[0].is_said_by(unit)):
                raise UnitsDiffer(f"it adds or compares {units[0]} and {unit}")
        return max(units, key=lambda unit: len(unit.powers), default=ONE)


def _is_number(node: ast.expr) -> bool:
    return not any(isinstance(part, ast.Name) for part in ast.walk(node))


def number_in(node: ast.expr) -> float | None:
    """Return the number that a part of an expression is; None where it is none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return float(node.value)
    return None


def _change(node: ast.expr, unit: Unit) -> float:
    """Return the factor by which a number changes the unit; 0 where it is one that counts.

    A fraction times 100 is in %.
    """
    value = number_in(node) or 0.0
    if value == 100 and unit == ONE:
        return value
    for base in (1000.0, 1024.0):
        power = round(math.log(value, base)) if value > 0 else 0
        if power and math.isclose(value, base**power, rel_tol=1e-12):
            return value
    return 0.0
