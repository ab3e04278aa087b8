"""A condition in words: what a claim rests on, as a sentence that needs no Python.

`a.us > b.us` is *the time of a is more than the time of b*. The sentence is made from the same tree that is tested,
so it cannot say something else; a shape without words of its own is read out, sum by sum.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from course_site.values.shown import units_of_names
from course_site.values.units import UnitsDiffer, number_in, unit_of_expression
from course_site.values.values import Expression, Resolved, Scope, parse

LONGEST = 90  # a longer `what:` would bury the sentence; its name is shorter

_COMPARED = {
    ast.Lt: "is less than", ast.LtE: "is at most", ast.Gt: "is more than", ast.GtE: "is at least",
    ast.Eq: "equals", ast.NotEq: "differs from",
}  # fmt: skip
_MIRRORED = {
    ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE, ast.Eq: ast.Eq, ast.NotEq: ast.NotEq,
}  # fmt: skip
_DONE = {ast.Add: "plus", ast.Sub: "minus", ast.Mult: "times", ast.Div: "divided by", ast.Pow: "to the power"}
# What a measurement is asked for; of what is left over the attribute's own name is said.
_ASKED = {
    "us": "the time of", "ms": "the time of", "s": "the time of",
    "tflops": "the speed of", "gflops": "the speed of", "gb_per_s": "the speed of", "tb_per_s": "the speed of",
    "of_peak": "the share of peak of", "of_compute": "the share of peak arithmetic of",
    "of_bandwidth": "the share of peak bandwidth of", "floor_us": "the least possible time of",
    "memory_floor_us": "the least time that memory allows of",
    "compute_floor_us": "the least time that arithmetic allows of",
    "n": "the number of samples of", "spread": "the spread of", "error": "the error of",
    "allowed": "the error allowed to",
    "host_us": "the host's own time for", "host_bound": "the number of host-bound samples of",
    "sm_mhz": "the clock during", "memory_mhz": "the memory clock during", "power_w": "the power during",
    "temperature_c": "the temperature during", "hbm_gb": "the least traffic of", "hbm_mb": "the least traffic of",
    "gflop": "the number of operations of",
}  # fmt: skip
_COUNTED = {
    **dict.fromkeys(("read_bytes", "read_gb"), "the number of bytes read by"),
    **dict.fromkeys(("write_bytes", "write_gb"), "the number of bytes written by"),
    **dict.fromkeys(("bytes", "gb", "mb"), "the number of bytes moved by"),
    "kernels": "the number of kernels started by",
    "ms": "the time of",
}
_REDUCED = {
    "first": "the first", "last": "the last", "min": "the smallest", "max": "the largest", "mean": "the mean",
    "median": "the median",
}  # fmt: skip
# A plain quantity whose name ends so was recorded as what it says.
_NAMED = {
    "us": "the time of", "ms": "the time of", "gb_per_s": "the speed of", "tflops": "the speed of",
    "mhz": "the clock of",
}  # fmt: skip
_SHARES = frozenset({"of_peak", "of_compute", "of_bandwidth", "spread"})


def in_words(condition: str, scope: Scope) -> list[str]:
    """Return a condition as sentences that all hold together, one for each part of an `and`.

    Raises:
        BadExpression, UnknownName, NotHere: as in `values.evaluate`.
    """
    expression = parse(condition)
    teller = _Teller(expression, [scope.resolve(name) for name in expression.names], scope)
    return [teller.truth(part) for part in _parts(expression.tree)]


def _parts(node: ast.expr) -> list[ast.expr]:
    """Return the parts of an `and`, and the links of a chain that no `between` says."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return [part for value in node.values for part in _parts(value)]
    return list(_links(node)) if isinstance(node, ast.Compare) and not _is_between(node) else [node]


def _links(node: ast.Compare) -> Iterator[ast.expr]:
    left = node.left
    for operation, right in zip(node.ops, node.comparators, strict=True):
        yield ast.Compare(left, [operation], [right])
        left = right


def _is_between(node: ast.Compare) -> bool:
    """`0.9 < a / b < 1.1`, `0.4 * a < b < 0.9 * a`: one thing between two numbers, or two multiples of another."""
    if len(node.ops) != 2 or not all(isinstance(operation, (ast.Lt, ast.LtE)) for operation in node.ops):
        return False
    low, high = _multiple(node.left), _multiple(node.comparators[1])
    return low is not None and high is not None and _same(low[1], high[1])


def _multiple(node: ast.expr) -> tuple[float, ast.expr | None] | None:
    """So many times something; a number is so many times nothing else."""
    number = number_in(node)
    if number is not None:
        return number, None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        number = number_in(node.left)
        return None if number is None else (number, node.right)
    return None


def _same(one: ast.expr | None, other: ast.expr | None) -> bool:
    return (ast.dump(one) if one else "") == (ast.dump(other) if other else "")


class _Teller:
    def __init__(self, expression: Expression, resolved: list[Resolved], scope: Scope) -> None:
        self._names = expression.names
        self._resolved = resolved
        self._scope = scope
        self._units = units_of_names(expression, resolved)
        groups = {name.partition(".")[0] for name in expression.names}
        deep = all(name.count(".") >= 2 for name in expression.names)
        self._group = f"{groups.pop()}." if len(groups) == 1 and len(expression.names) > 1 and deep else ""

    # --- what is true ---

    def truth(self, node: ast.expr) -> str:
        """Return a part that is true or not, as a sentence without its full stop."""
        if isinstance(node, ast.BoolOp):
            both = " and " if isinstance(node.op, ast.And) else ", or "
            return both.join(self.truth(value) for value in node.values)
        if not isinstance(node, ast.Compare):
            return self.amount(node)
        if _is_between(node):
            return self._between(node)
        if len(node.ops) > 1:
            return " and ".join(self.truth(link) for link in _links(node))
        left, operation, right = node.left, type(node.ops[0]), node.comparators[0]
        if number_in(left) is not None:  # `2 < a` is said of a
            left, operation, right = right, _MIRRORED[operation], left
        number = number_in(right)
        if number is None:
            return f"{self.amount(left)} {_COMPARED[operation]} {self.amount(right)}"
        return self._near(left, operation, number) or self._held_against(
            left, f"{_COMPARED[operation]} {{}}", number
        )

    def _between(self, node: ast.Compare) -> str:
        low, high = _multiple(node.left), _multiple(node.comparators[1])
        thing = node.comparators[0]
        if not low or not high:
            return ""
        if low[1] is not None:
            ends = f"{_number(low[0])} and {_number(high[0])} times {self.amount(low[1])}"
            return f"{self.amount(thing)} is between {ends}"
        return self._held_against(thing, "is between {} and {}", low[0], high[0])

    def _held_against(self, thing: ast.expr, phrase: str, *numbers: float) -> str:
        """Return a thing against numbers; a ratio of two alike is so many times the other."""
        ratio = self._ratio(thing)
        if ratio:
            said = phrase.format(*map(_number, numbers))
            return f"{self.amount(ratio[0])} {said} times {self.amount(ratio[1])}"
        unit = " %" if self._is_share(thing) else self._unit(thing)
        said = phrase.format(*(_number(number * 100 if unit == " %" else number) for number in numbers))
        return f"{self.amount(thing)} {said}{unit}"

    def _near(self, node: ast.expr, operation: type[ast.cmpop], far: float) -> str:
        """`abs(a / b - 1) < 0.06`, `abs(a - b) < 2`: how far two things are apart; "" for anything else."""
        pair = self._apart(node)
        if pair is None or operation in (ast.Eq, ast.NotEq):
            return ""
        close = operation in (ast.Lt, ast.LtE)
        one, other, is_relative = pair
        if is_relative:
            words = "is within {} % of" if close else "is more than {} % away from"
            return f"{self.amount(one)} {words.format(_number(far * 100))} {self.amount(other)}"
        words = f"{_COMPARED[operation]} {_number(far)}{self._unit(one)} away from"
        return f"{self.amount(one)} {words} {self.amount(other)}"

    def _apart(self, node: ast.expr) -> tuple[ast.expr, ast.expr, bool] | None:
        """Return what `abs` holds apart, and whether as a part of the second: `abs(a / b - 1)`, or `abs(a - b)`."""
        if not (isinstance(node, ast.Call) and _function(node) == "abs"):
            return None
        inside = node.args[0]
        if not (isinstance(inside, ast.BinOp) and isinstance(inside.op, ast.Sub)):
            return None
        ratio = self._ratio(inside.left)
        if ratio and number_in(inside.right) == 1:
            return (*ratio, True)
        return inside.left, inside.right, False

    def _ratio(self, node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
        """Return the two sides of a division whose answer is a plain number of times."""
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)):
            return None
        if number_in(node.left) is not None or number_in(node.right) is not None:
            return None
        alike = self._unit(node.left) == self._unit(node.right)
        return (node.left, node.right) if alike else None

    # --- how much ---

    def amount(self, node: ast.expr, *, inside: bool = False) -> str:
        """Return a quantity, a number, or what is worked out of them.

        It is in brackets where another sum goes on around it.
        """
        if isinstance(node, ast.Name):
            return self._named(int(node.id[1:]))
        number = number_in(node)
        if number is not None:
            return _number(number)
        if isinstance(node, ast.UnaryOp):
            return f"{'minus ' * isinstance(node.op, ast.USub)}{self.amount(node.operand, inside=True)}"
        if isinstance(node, ast.Call):
            return self._called(node)
        if isinstance(node, ast.BinOp):
            said = (
                f"{self.amount(node.left, inside=not _goes_on(node, node.left))} {_DONE[type(node.op)]} "
                f"{self.amount(node.right, inside=True)}"
            )
            return f"({said})" if inside else said
        return f"({self.truth(node)})"

    def _called(self, node: ast.Call) -> str:
        function = _function(node)
        if function == "abs":
            pair = self._apart(node)
            if pair is None:
                return f"the size of {self.amount(node.args[0], inside=True)}"
            kind = "relative difference" if pair[2] else "difference"
            return f"the {kind} between {self.amount(pair[0])} and {self.amount(pair[1])}"
        said = [self.amount(argument) for argument in node.args]
        which = "largest" if function == "max" else "smallest"
        return f"the {which} of {', '.join(said[:-1])} and {said[-1]}" if len(said) > 1 else said[0]

    def _named(self, number: int) -> str:
        """Return one quantity: what its page says that it is, or what was asked of it and its recorded name."""
        name, leaf = self._names[number], self._resolved[number].leaf
        if leaf is None:
            what = self._what(name)
            return f"“{what}”" if what and len(what) <= LONGEST else self._quoted(name)
        stem, _, last = name.rpartition(".")
        if leaf["kind"] == "measurement":
            return f"{_ASKED.get(last, f'{last} of')} {self._quoted(stem)}"
        if leaf["kind"] == "counted":
            return f"{_COUNTED.get(last, f'{last} of')} {self._quoted(stem)}"
        if leaf["kind"] == "trace":
            stem, _, column = stem.rpartition(".")
            return f"{_REDUCED[last]} {column.replace('_', ' ')} of {self._quoted(stem)}"
        return f"{_NAMED[last]} {self._quoted(stem)}" if last in _NAMED and stem else self._quoted(name)

    def _quoted(self, name: str) -> str:
        """Return a recorded name as it is spoken, without the group that all names share; quotes show where it ends."""
        return f"“{name.removeprefix(self._group).replace('.', ' ').replace('_', ' ')}”"

    def _what(self, name: str) -> str:
        """Return what the page that defines a name says that it is; another page's name has its page before it."""
        if name in self._scope.defines:
            return self._scope.defines[name].what
        page, _, rest = name.partition(".")
        other = self._scope.others(page)
        return other.defines[rest].what if other and rest in other.defines else ""

    def _unit(self, node: ast.expr) -> str:
        """Return the unit of a part, with a blank before it.

        It is empty for a plain number, and where there is no telling.
        """
        try:
            unit = unit_of_expression(node, self._units)
        except UnitsDiffer:
            return ""
        return f" {unit}" if unit.powers or unit.size != 1 else ""

    def _is_share(self, node: ast.expr) -> bool:
        """Return whether it is a part of a whole, which is read as a percentage."""
        if isinstance(node, ast.Call):
            return _function(node) != "abs" and all(map(self._is_share, node.args))
        if not isinstance(node, ast.Name):
            return False
        number = int(node.id[1:])
        leaf = self._resolved[number].leaf or {}
        return leaf.get("kind") == "measurement" and self._names[number].rpartition(".")[2] in _SHARES


def _function(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _goes_on(node: ast.BinOp, left: ast.expr) -> bool:
    """Return whether it reads on from left to right, as `a - b - c` and `a * b * c`; others are in brackets."""
    if not isinstance(left, ast.BinOp):
        return False
    alike = ((ast.Add, ast.Sub), (ast.Mult, ast.Div))
    return any(isinstance(node.op, kinds) and isinstance(left.op, kinds) for kinds in alike)


def _number(value: float) -> str:
    return f"{value:,.10g}"
