"""Values: names in prose become numbers of a record, with their unit, their spread and where they came from.

`{{ flash.tflops:.0f }}` is parsed with `ast`, checked against a whitelist, and only then handed to a small
evaluator. Every name has its resamples beside its value, the medians that another run may find (`uncertainty.py`): they
give a claim its confidence and every derived number its spread. Measurements of one group are resampled together.
"""

from __future__ import annotations

import ast
import functools
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from simpleeval import DEFAULT_OPERATORS, EvalWithCompoundTypes

from course_kernels.measure.derive import ATTRIBUTES, derive
from course_kernels.measure.machine import Machine
from course_kernels.measure.record_types import Measurement
from course_site.values.data_sheet import GPU, NAMES, sheet_of, short_name
from course_site.values.uncertainty import VARYING, BetweenRuns, factors, interval

Number = float
# Columns of a trace whose reduction differs from run to run, by the last word of their names.
VARYING_COLUMNS = frozenset({unit.casefold() for unit in VARYING} | {"us"})
KERNEL_TIME = "gpu__time_duration.sum"  # the profiler's time of a kernel, and the units that it comes in
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
Leaf = dict[str, Any]


class ExpressionError(ValueError):
    """Base of the errors a page author can cause in an expression."""


class UnknownName(ExpressionError):
    """A name that no record of the site has.

    Args:
        hint: looks for what may have been meant, once somebody reads the message: who only asks whether there is such
            a name does not wait for it.
    """

    def __init__(self, message: str, hint: Callable[[], str] = str) -> None:
        super().__init__(message)
        self._hint = hint

    def __str__(self) -> str:
        return super().__str__() + self._hint()


class BadExpression(ExpressionError):
    """An expression outside the whitelist, or one that cannot be computed."""


class OfAnotherCard(ExpressionError):
    """A value that names its edition on a page of one card, or does not on the page of several."""


class NotHere(ExpressionError):
    """Base of what no author is to blame for: this edition cannot know the value, and another one does."""


class NotOnThisCard(NotHere):
    """A value that this card does not have.

    It needs a data-sheet peak that we have no entry for, a kernel that a library did not take here, or a part of the
    page that the card could not run.
    """


class NotMeasuredYet(NotHere):
    """A value of a page that has no numbers now: it waits for a card, or its record no longer holds."""


@dataclass(frozen=True)
class Resolved:
    """One name of an expression: its value, its resampled values and its unit; text has no resamples."""

    value: Any
    resamples: Any = None
    unit: str = ""
    leaf: Leaf | None = None

    @functools.cached_property
    def spread(self) -> float | None:
        """Half the interval that is stated (`uncertainty.interval`), relative to the value; None for text."""
        return _spread_of(self.value, self.resamples)


@dataclass(frozen=True)
class Result:
    """A computed expression: the value, a resampled distribution (or None for text), the names it used."""

    value: Any
    resamples: Any
    names: tuple[str, ...]
    unit: str = ""

    @functools.cached_property
    def spread(self) -> float | None:
        """Half the interval that is stated (`uncertainty.interval`), relative to the value; None for text."""
        return _spread_of(self.value, self.resamples)


def _spread_of(value: Any, resamples: Any) -> float | None:
    if np.ndim(resamples) == 0 or not value:  # text's None has no dimension either
        return None
    low, high = interval(resamples)
    return (high - low) / 2 / abs(value)


@dataclass
class Define:
    """A named derived value of a page."""

    name: str
    expression: str
    unit: str = "1"
    what: str = ""


def _no_page(_page_id: str) -> Scope | None:
    return None


@dataclass
class Scope:
    """The names one page can see: what it recorded, what it defined, and the other pages by their ids.

    `run` tells the run of its record from others, and `terms` is what is known of runs made apart. A page that
    is `awaited` has no record, so none of its names is an error; nor is one that is `known` to the reference, where
    this card could not run all of the page. `gpu` is the card of the edition: `gpu.name` and what its data sheet says
    can be asked for like what was recorded. Other pages are of the same edition. By one of the `prefixes`, each with
    its card's name, a value of another edition is named; only the page that has them `beside` finds it.
    """

    page_id: str
    names: dict[str, Any]
    machine: Machine | None
    run: str = ""
    terms: BetweenRuns | None = None
    awaited: bool = False
    gpu: str = ""
    defines: dict[str, Define] = field(default_factory=dict)
    others: Callable[[str], Scope | None] = _no_page
    prefixes: Mapping[str, str] = field(default_factory=dict)
    beside: Callable[[str], Scope | None] | None = None
    known: Callable[[str], bool] | None = None
    _cache: dict[str, Resolved] = field(default_factory=dict)
    units: dict[str, Any] = field(default_factory=dict)  # of expressions, see `shown.unit_of_shown`
    _results: dict[str, Result] = field(default_factory=dict)
    _busy: set[str] = field(default_factory=set)

    # --- names ---------------------------------------------------------------------------------

    def resolve(self, name: str) -> Resolved:
        """Return the value of a dotted name.

        Raises:
            UnknownName: nothing by that name, here or on the page it names.
            OfAnotherCard: see `other`.
            NotOnThisCard: this card does not have the value.
            NotMeasuredYet: it is a name of a page that is awaited, or rests on one.
        """
        if name not in self._cache:
            self._cache[name] = self._resolve(name)
        return self._cache[name]

    def _resolve(self, name: str) -> Resolved:
        parts = name.split(".")
        if name in self.defines:
            return self._resolve_define(name)
        if parts[0] in self.names:
            leaf, rest = self._find_leaf(parts)
            return self._leaf_value(name, leaf, rest)
        if parts[0] == GPU and self.gpu:
            return self._sheet_value(name, parts[1:])
        other = self.other(name)
        if other is not None:
            return other.own(".".join(parts[1:]))
        raise self._unknown(name, parts)

    def own(self, name: str) -> Resolved:
        """Return the value of a name that another page asks this one for; one of its own, and no third page's."""
        if self.awaited and name not in self.defines and name.partition(".")[0] != GPU:
            raise self._unknown(name, name.split("."))
        return self.resolve(name)

    def other(self, name: str) -> Scope | None:
        """Return the scope that the first part of a dotted name leads to: another page, or another edition.

        Raises:
            OfAnotherCard: it is an edition, and this page is of one card; or it is none where every value says one.
        """
        first, _, rest = name.partition(".")
        if not rest:
            return None
        if first not in self.prefixes:
            other = self.others(first)
            if other is not None and self.beside is not None:
                named = " or ".join(f"{prefix}.{name}" for prefix in self.prefixes)
                raise OfAnotherCard(f"{name!r} does not say of which card: write {named}")
            return other
        if self.beside is None:
            raise OfAnotherCard(
                f"{name!r} is of the {self.prefixes[first]}, and every page but one is of one card, whole: "
                f"write {rest!r}, which each edition fills with its own"
            )
        return self.beside(first)

    def sheet_of(self, name: str) -> Machine | None:
        """Return the data sheet of the card that a name's value was measured on."""
        other = None if name.partition(".")[0] in self.names else self.other(name)
        return other.sheet_of(name.partition(".")[2]) if other else self.machine

    def cards_of(self, name: str) -> frozenset[str]:
        """Return the cards that a name's value is of, where a page has several; none where nothing has this name."""
        first, _, rest = name.partition(".")
        if name in self.defines:
            return self._cards_of_define(name)
        if rest and self.beside is not None and first in self.prefixes:
            return frozenset({self.prefixes[first]})
        return frozenset()

    def _cards_of_define(self, name: str) -> frozenset[str]:
        """Return the cards of everything that it is made of.

        None where that cannot be read, or is a number of a source.
        """
        if name in self._busy:
            return frozenset()
        self._busy.add(name)
        try:
            parts = parse(self.defines[name].expression).names
            return frozenset(card for part in parts for card in self.cards_of(part))
        except ExpressionError:  # told where it is evaluated
            return frozenset()
        finally:
            self._busy.discard(name)

    def _sheet_value(self, name: str, rest: list[str]) -> Resolved:
        """Return the page's card by its short name, and what its data sheet says, see `machine.py`."""
        asked = ".".join(rest)
        if asked == "name":
            model = short_name(self.gpu)
            return Resolved(model, None, "", {"kind": "text", "value": model})
        if self.machine is None:
            raise NotOnThisCard(f"{name!r} needs the data sheet of this card")
        sheet = sheet_of(self.machine)
        if asked not in sheet and asked in NAMES:
            raise NotOnThisCard(f"{name!r} needs what our data sheet of this card does not say")
        if asked not in sheet:
            raise UnknownName(f"unknown value {name!r}: of a card there are name, {', '.join(NAMES)}")
        value, unit = sheet[asked]
        return Resolved(value, None, unit, {"kind": "quantity", "how": "given", "value": value, "unit": unit})

    def _unknown(self, name: str, parts: list[str]) -> ExpressionError:
        if self.awaited:
            return NotMeasuredYet(f"{name!r} of {self.page_id} is not measured yet")
        if self.known is not None and self.known(name):
            return NotOnThisCard(f"{name!r} of {self.page_id} was not measured on this card")
        return UnknownName(f"unknown value {name!r}", lambda: self._hint(parts))

    def _hint(self, parts: list[str]) -> str:
        from difflib import get_close_matches

        known = [*self.defines, *self.leaf_names()]
        close = get_close_matches(".".join(parts[:-1]), known) or get_close_matches(".".join(parts), known)
        return f"; did you mean {close[0]!r}?" if close else ""

    def _resolve_define(self, name: str) -> Resolved:
        if name in self._busy:
            raise BadExpression(f"{name!r} is defined by itself")
        self._busy.add(name)
        try:
            result = evaluate(self.defines[name].expression, self)
        finally:
            self._busy.discard(name)
        return Resolved(result.value, result.resamples, self.defines[name].unit)

    def _find_leaf(self, parts: list[str]) -> tuple[Leaf, list[str]]:
        node: Any = self.names
        for depth, part in enumerate(parts):
            if part not in node:
                raise self._unknown(".".join(parts), parts)
            node = node[part]
            if "kind" in node:
                return node, parts[depth + 1 :]
        raise UnknownName(
            f"{'.'.join(parts)!r} names a group of values; it goes on with one of: {', '.join(node)}"
        )

    def _leaf_value(self, name: str, leaf: Leaf, rest: list[str]) -> Resolved:
        kind = leaf["kind"]
        if kind == "measurement":
            return self._measured(name, leaf, rest)
        if kind == "samples":
            return self._sampled(name, leaf, rest)
        if kind == "quantity" and not rest:
            return Resolved(leaf["value"], self._drawn(leaf, name, leaf["value"]), leaf["unit"], leaf)
        if kind == "text" and not rest:
            return Resolved(leaf["value"], None, "", leaf)
        if kind == "counted" and len(rest) == 1:
            return self._counted(name, leaf, rest[0])
        if kind == "counted" and len(rest) == 3 and rest[0] == "kernel":
            return self._counted_kernel(name, leaf, rest[1], rest[2])
        if kind == "trace" and len(rest) == 2:
            return self._traced(name, leaf, *rest)
        raise UnknownName(f"unknown value {name!r}: a {kind} has no {'.'.join(rest) or 'value of its own'!r}")

    def _measured(self, name: str, leaf: Leaf, rest: list[str]) -> Resolved:
        if len(rest) != 1:
            raise UnknownName(f"{name!r} is a measurement; ask for one of: {', '.join(ATTRIBUTES)}")
        attribute = rest[0]
        dims = leaf["workload"]["dims"]
        if attribute in dims:
            return Resolved(dims[attribute], None, "1", leaf)
        if attribute not in ATTRIBUTES:
            raise UnknownName(f"unknown value {name!r}: a measurement has {', '.join(ATTRIBUTES)}")
        median = leaf["quantiles_us"]["0.5"]
        stem = name.removesuffix(f".{attribute}")
        if attribute == "spread":
            return self._spread(leaf, stem, median)
        if attribute == "host_us":
            middle = leaf["host_us"]["0.5"]
            return Resolved(middle, self._drawn(leaf, name, middle, kind="host", blocks=False), "µs", leaf)
        measurement = Measurement.from_json(leaf)
        value = derive(measurement, attribute, median, self.machine)
        if value is None:
            raise NotOnThisCard(f"{name!r} needs a data-sheet peak of this card")
        medians = self._drawn(leaf, stem, median)
        resamples = None if medians is None else derive(measurement, attribute, medians, self.machine)
        return Resolved(value, resamples, ATTRIBUTES[attribute][0], leaf)

    def _drawn(
        self, leaf: Leaf, stem: str, median: float, kind: str | None = None, blocks: bool = True
    ) -> np.ndarray | None:
        """Medians that another run may find; None where nothing varies."""
        if not blocks:
            leaf = {key: value for key, value in leaf.items() if key not in ("blocks", "blocks_us")}
        drawn = factors(leaf, name=stem, run=self.run, terms=self.terms, kind=kind)
        return None if drawn is None else median * drawn

    def _spread(self, leaf: Leaf, stem: str, median: float) -> Resolved:
        """Half the stated interval over the median: the spread that the page and the ledger state."""
        drawn = self._drawn(leaf, stem, median)
        return Resolved(Result(median, drawn, (stem,)).spread or 0.0, None, "1", leaf)

    def _sampled(self, name: str, leaf: Leaf, rest: list[str]) -> Resolved:
        median, unit = leaf["quantiles"]["0.5"], leaf["unit"]
        scales = {"us": (1.0, "µs"), "ms": (1e-3, "ms"), "s": (1e-6, "s")} if unit == "µs" else {}
        stem = name.removesuffix("." + ".".join(rest)) if rest else name
        if rest == ["n"]:
            return Resolved(leaf["n"], None, "1", leaf)
        if rest == ["spread"]:
            return self._spread(leaf, stem, median)
        if rest and (len(rest) > 1 or rest[0] not in scales):
            raise UnknownName(
                f"unknown value {name!r}: samples have n, spread{''.join(f', {s}' for s in scales)}"
            )
        scale, unit = scales[rest[0]] if rest else (1.0, unit)
        return Resolved(median * scale, self._drawn(leaf, stem, median * scale), unit, leaf)

    def _counted(self, name: str, leaf: Leaf, attribute: str) -> Resolved:
        read, write = leaf["read_bytes"], leaf["write_bytes"]
        table = {
            "read_bytes": (read, "B"), "write_bytes": (write, "B"), "bytes": (read + write, "B"),
            "read_gb": (read / 1e9, "GB"), "write_gb": (write / 1e9, "GB"), "gb": ((read + write) / 1e9, "GB"),
            "mb": ((read + write) / 1e6, "MB"), "kernels": (len(leaf["kernels"]), "1"),
        }  # fmt: skip
        if attribute not in table:
            raise UnknownName(f"unknown value {name!r}: a counted traffic has {', '.join(table)}")
        value, unit = table[attribute]
        drawn = (
            None if attribute == "kernels" else self._drawn(leaf, name.removesuffix(f".{attribute}"), value)
        )
        return Resolved(value, drawn, unit, leaf)

    def _counted_kernel(self, name: str, leaf: Leaf, kernel: str, attribute: str) -> Resolved:
        """Look up one kernel of a call by its name: its traffic, or the time that the profiler gave it."""
        mine = [one for one in leaf["kernels"] if one["name"] == kernel]
        if not mine:
            known = ", ".join(dict.fromkeys(one["name"] for one in leaf["kernels"]))
            raise NotOnThisCard(f"{name!r} needs a kernel that was not started: those counted are {known}")
        if attribute != "ms":
            read, write = (sum(one[which] for one in mine) for which in ("read_bytes", "write_bytes"))
            return self._counted(
                name, {**leaf, "read_bytes": read, "write_bytes": write, "kernels": mine}, attribute
            )
        times = [one.get("metrics", {}).get(KERNEL_TIME) for one in mine]
        if None in times:
            raise UnknownName(f"unknown value {name!r}: no time was counted")
        value = sum(1e3 * SECONDS[time["unit"]] * time["value"] for time in times)
        stem = name.removesuffix(f".{attribute}")
        return Resolved(value, self._drawn(leaf, stem, value, kind="quantity counted in ms"), "ms", leaf)

    def _traced(self, name: str, leaf: Leaf, column: str, reducer: str) -> Resolved:
        reducers: dict[str, Callable[[list[float]], float]] = {
            "first": lambda c: c[0], "last": lambda c: c[-1], "min": min, "max": max,
            "mean": lambda c: sum(c) / len(c), "median": lambda c: float(np.median(c)),
        }  # fmt: skip
        if column not in leaf["columns"] or reducer not in reducers:
            raise UnknownName(
                f"unknown value {name!r}: the trace has {', '.join(leaf['columns'])}, each with {', '.join(reducers)}"
            )
        unit = column.rsplit("_", 1)[-1] if "_" in column else "1"
        value = reducers[reducer](leaf["columns"][column])
        varies = unit.casefold() in VARYING_COLUMNS
        return Resolved(value, self._drawn(leaf, name, value, kind="trace") if varies else None, unit, leaf)

    def leaf_names(self) -> list[str]:
        """Dotted names of every recorded leaf."""
        return [name for name, _ in walk_leaves(self.names)]

    def group(self, pattern: str) -> list[tuple[str, Leaf]]:
        """Return the leaves matched by `name`, `name.*` or `name.*.part`, in recorded order.

        `page.name.*` is another page's.

        Raises:
            UnknownName: nothing matches.
        """
        parts = pattern.removesuffix(".*").split(".")
        if parts[0] not in self.names:
            other = self.other(".".join(parts))
            if other is not None and not other.awaited:
                found = other.group(".".join([*parts[1:], *(["*"] if pattern.endswith(".*") else [])]))
                return [(f"{parts[0]}.{name}", leaf) for name, leaf in found]
            raise (other or self)._unknown(pattern, parts)
        node: Any = self.names
        stem = parts[: parts.index("*")] if "*" in parts else parts
        for part in stem:
            if part not in node:
                raise self._unknown(pattern, parts)
            node = node[part]
        if "kind" in node:
            return [(".".join(stem), node)]
        found = list(walk_leaves(node, ".".join(stem) + "."))
        if stem != parts:
            found = [(name, leaf) for name, leaf in found if _fits(name.split("."), pattern.split("."))]
        if not found:
            raise UnknownName(f"unknown value {pattern!r}", lambda: self._hint(parts))
        return found


def _fits(name: list[str], pattern: list[str]) -> bool:
    """Return whether a star stands for each part that differs; the last one may stand for several."""
    as_long = len(name) == len(pattern) or (pattern[-1] == "*" and len(name) > len(pattern))
    return as_long and all(wanted in ("*", part) for part, wanted in zip(name, pattern, strict=False))


def written_out(expression: str, scope: Scope, within: tuple[str, ...] = ()) -> str:
    """Return an expression with everything that pages define written out, in the names that a scope can see.

    Args:
        within: the definitions, each with its page, that this expression is of.
    Raises:
        BadExpression: as `parse`, and for a name that is defined by itself.
    """
    for name in parse(expression).names:
        first, _, rest = name.partition(".")
        place = f"{scope.page_id}.{name}" if name in scope.defines else name
        if place in within:
            raise BadExpression(f"{name!r} is defined by itself")
        if name in scope.defines:
            inner = written_out(scope.defines[name].expression, scope, (*within, place))
        elif first in scope.names or not rest or (other := scope.other(name)) is None:
            continue
        elif rest in other.defines:
            inner = written_out(other.defines[rest].expression, other, (*within, place))
            for theirs in parse(inner).names:
                if theirs.partition(".")[0] in (*other.names, GPU):
                    inner = _put(inner, theirs, f"{first}.{theirs}")
        else:
            continue
        expression = _put(expression, name, f"({inner})")
    return expression


def _put(expression: str, name: str, instead: str) -> str:
    return re.sub(rf"(?<![\w.]){re.escape(name)}(?![\w.])", instead, expression)


def walk_leaves(node: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Leaf]]:
    """Dotted name and leaf of everything recorded under a node."""
    for name, child in node.items():
        if "kind" in child:
            yield prefix + name, child
        else:
            yield from walk_leaves(child, f"{prefix}{name}.")


# --- expressions --------------------------------------------------------------------------------

_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.USub, ast.UAdd)
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_ALLOWED = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.And, ast.Or, ast.Constant,
    ast.Name, ast.Attribute, ast.Call, ast.Load, *_OPERATORS, *_COMPARISONS,
)  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": lambda *values: _fold(np.minimum, values),
    "max": lambda *values: _fold(np.maximum, values),
    "median": lambda *values: np.median(np.stack(np.broadcast_arrays(*values)), axis=0),
    "abs": np.abs,
}


# simpleeval guards a product against text repeated without end, and takes a thousand resamples for such a text.
_ARITHMETIC = {**DEFAULT_OPERATORS, ast.Mult: operator.mul}


def _fold(function: Any, values: tuple[Any, ...]) -> Any:
    result = values[0]
    for value in values[1:]:
        result = function(result, value)
    return result


class _Evaluator(EvalWithCompoundTypes):  # type: ignore[misc]
    """simpleeval over arrays: a chain of comparisons and `and`/`or` hold element by element."""

    def _eval_compare(self, node: ast.Compare) -> Any:
        left, result = self._eval(node.left), None
        for operation, comparator in zip(node.ops, node.comparators, strict=True):
            right = self._eval(comparator)
            step = self.operators[type(operation)](left, right)
            result = step if result is None else np.logical_and(result, step)
            left = right
        return result

    def _eval_boolop(self, node: ast.BoolOp) -> Any:
        function = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
        return _fold(function, tuple(self._eval(value) for value in node.values))


@dataclass(frozen=True)
class Expression:
    """A checked expression: its text, its tree with every dotted name replaced by a variable, and those names."""

    text: str
    tree: ast.expr
    names: tuple[str, ...]

    def compute(self, values: list[Any]) -> Any:
        """Return the value when the names have these values, in order.

        Raises:
            BadExpression: it has none, for a division by zero or a power too large.
        """
        names = {f"v{i}": value for i, value in enumerate(values)}
        evaluator = _Evaluator(operators=_ARITHMETIC, names=names, functions=_FUNCTIONS)
        try:
            with np.errstate(all="ignore"):
                return evaluator.eval("", previously_parsed=self.tree)
        except Exception as error:
            raise BadExpression(f"{self.text!r} cannot be computed: {error}") from None


@functools.lru_cache(maxsize=8192)  # lists, maps and figures ask for the same ones again and again
def parse(text: str) -> Expression:
    """Check an expression against the whitelist.

    Raises:
        BadExpression: anything but names, attributes, numbers, arithmetic, comparisons, and/or, min, max, median, abs.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        raise BadExpression(f"{text.strip()!r} is not an expression") from None
    names: list[str] = []

    class Names(ast.NodeTransformer):
        def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
            return self._name(node)

        def visit_Name(self, node: ast.Name) -> ast.AST:
            return self._name(node)

        def visit_Call(self, node: ast.Call) -> ast.AST:
            if not (isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS) or node.keywords:
                raise BadExpression(f"{text.strip()!r}: only min, max, median and abs can be called")
            node.args = [self.visit(argument) for argument in node.args]
            return node

        def _name(self, node: ast.AST) -> ast.AST:
            parts: list[str] = []
            inner: ast.AST = node
            while isinstance(inner, ast.Attribute):
                parts.append(inner.attr)
                inner = inner.value
            if not isinstance(inner, ast.Name):
                raise BadExpression(f"{text.strip()!r}: only names have attributes")
            dotted = ".".join([inner.id, *reversed(parts)])
            if dotted not in names:
                names.append(dotted)
            return ast.copy_location(ast.Name(f"v{names.index(dotted)}", ast.Load()), node)

    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED) or (
            isinstance(node, ast.Constant) and not isinstance(node.value, (int, float))
        ):
            raise BadExpression(f"{text.strip()!r}: {type(node).__name__} is not allowed in an expression")
    return Expression(text.strip(), Names().visit(tree.body), tuple(names))


def evaluate(text: str, scope: Scope) -> Result:
    """Compute an expression and its resamples in a page's scope, once for all who ask.

    The prose, the list behind a page's values, the ledger and the check of units ask for the same one.

    Raises:
        UnknownName, BadExpression, OfAnotherCard, NotOnThisCard, NotMeasuredYet.
    """
    if text not in scope._results:
        scope._results[text] = _evaluate(text, scope)
    return scope._results[text]


def _evaluate(text: str, scope: Scope) -> Result:
    expression = parse(text)
    resolved = [scope.resolve(name) for name in expression.names]
    if len(resolved) == 1 and isinstance(resolved[0].value, str):
        if isinstance(expression.tree, ast.Name):
            return Result(resolved[0].value, None, expression.names)
        raise BadExpression(f"{text.strip()!r}: {expression.names[0]} is text")
    value = expression.compute([r.value for r in resolved])
    resamples = expression.compute([r.value if r.resamples is None else r.resamples for r in resolved])
    if isinstance(value, (np.bool_, np.floating, np.integer)):
        value = value.item()
    if isinstance(value, complex) or (isinstance(value, float) and not np.isfinite(value)):
        raise BadExpression(f"{text.strip()!r} is not a finite number")
    unit = resolved[0].unit if isinstance(expression.tree, ast.Name) else ""
    return Result(value, resamples if np.ndim(resamples) else None, expression.names, unit)


MISSING = "—"  # stands where a page has no value to show


def format_value(value: Any, spec: str) -> str:
    """Return the text of a value as the page shows it.

    Raises:
        BadExpression: the format does not fit the value.
    """
    if isinstance(value, (bool, np.bool_)):
        raise BadExpression("a comparison is a claim, not a value")
    if not spec:
        if isinstance(value, (str, int)):
            return str(value)
        return f"{value:.3g}"
    try:
        if spec.endswith("d") and isinstance(value, float):
            value = round(value)
        return format(value, spec)
    except (ValueError, TypeError):
        raise BadExpression(f"the format {spec!r} does not fit {value!r}") from None
