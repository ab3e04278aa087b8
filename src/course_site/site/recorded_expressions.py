"""Origin of a number that a cell records: the expression in the page's own code.

A record holds, for a number that is no timing, its value and one word about how it came. The formula stands in the
code cell. As a record that is shown was made by exactly that code, the formula can be read there, without running it.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from course_site.pages import bibliography
from course_site.pages.page import Page

LEAVES = ("quantity", "samples")
LONGEST = 160  # a longer expression is read better on its page


@dataclass(frozen=True)
class Origin:
    """Origin of one recorded number, as the code says it.

    Attributes:
        code: the expression, with the loops around it and what they walk over.
        typed: True for nothing but a number.
        cites: keys of the sources that the prose right above the cell cites.
    """

    code: str
    typed: bool
    cites: tuple[str, ...]


class Origins:
    """The numbers that a page records with `quantity` or `samples`, by what their names look like."""

    def __init__(self, page: Page) -> None:
        self._known: list[tuple[str, Origin]] = []
        with contextlib.suppress(SyntaxError):  # a cell that is no plain Python says nothing here
            whole = ast.parse("\n".join(cell.source for cell in page.code))
            names = _assigned(whole.body)
            functions = {node.name: node for node in ast.walk(whole) if isinstance(node, ast.FunctionDef)}
            above: tuple[str, ...] = ()
            for cell in page.cells:
                if cell.kind == "markdown":
                    above = tuple(bibliography.cited_keys(cell.source))
                else:
                    self._known += [
                        (pattern, _origin(value, scope, loops, above))
                        for pattern, value, scope, loops in _recorded(cell.source, names, functions)
                    ]

    def of(self, name: str) -> Origin | None:
        """Return the origin of a recorded name; None where the code does not say it in one short expression."""
        found = {origin for pattern, origin in self._known if re.fullmatch(pattern, name)}
        origin = found.pop() if len(found) == 1 else None
        # A bare name, such as that of an argument, tells nothing.
        return origin if origin and len(origin.code) <= LONGEST and not origin.code.isidentifier() else None


_Names = dict[str, ast.expr]
_Found = tuple[str, ast.expr, _Names, tuple[ast.comprehension, ...]]


def _assigned(body: list[ast.stmt]) -> _Names:
    """Return names that get one value in a body and no other, loops included; functions are bodies of their own."""
    values: _Names = {}
    filled: list[tuple[str, ast.expr, ast.expr]] = []  # hand[rung] = …
    stored: list[str] = []
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored.append(node.id)
        if isinstance(node, ast.Assign):
            target, given = node.targets[0], node.value
            pairs: list[tuple[ast.expr, ast.expr]] = [(target, given)]
            if isinstance(target, ast.Tuple) and isinstance(given, ast.Tuple):
                pairs = list(zip(target.elts, given.elts, strict=False))
            values |= {name.id: value for name, value in pairs if isinstance(name, ast.Name)}
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                filled.append((target.value.id, target.slice, given))
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            todo.extend(ast.iter_child_nodes(node))
    for name, key, value in filled:
        into = values.get(name)
        if isinstance(into, ast.Dict):
            values[name] = ast.Dict([*into.keys, key], [*into.values, value])
    return {name: value for name, value in values.items() if stored.count(name) == 1}


def _recorded(source: str, names: _Names, functions: dict[str, ast.FunctionDef]) -> Iterator[_Found]:
    """Yield every number that the calls of `record` in a cell put down: a pattern of its name, and its expression."""

    def follow(
        node: ast.AST, path: str, scope: _Names, loops: tuple[ast.comprehension, ...]
    ) -> Iterator[_Found]:
        if isinstance(node, ast.Name) and node.id in scope:
            value = scope[node.id]
            yield from follow(value, path, {k: v for k, v in scope.items() if k != node.id}, loops)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                yield from follow(value, path + _key(key), scope, loops)
        elif isinstance(node, ast.DictComp):
            yield from follow(node.value, path + _key(node.key), scope, (*loops, *node.generators))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in LEAVES and node.args:
                yield path.removeprefix(r"\."), node.args[0], scope, loops
            elif node.func.id in functions:
                body = functions[node.func.id].body
                results = [one for line in body for one in ast.walk(line) if isinstance(one, ast.Return)]
                if len(results) == 1 and results[0].value is not None:
                    yield from follow(results[0].value, path, _assigned(body), ())

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "record":
            for keyword in node.keywords:
                path = rf"\.{keyword.arg}" if keyword.arg else ""
                yield from follow(keyword.value, path, names, ())


def _key(node: ast.AST | None) -> str:
    """Return a step of a name; what is only known when it runs matches any word."""
    if isinstance(node, ast.Constant):
        return rf"\.{re.escape(str(node.value))}"
    if isinstance(node, ast.JoinedStr):
        parts = (re.escape(str(p.value)) if isinstance(p, ast.Constant) else r"\w+" for p in node.values)
        return rf"\.{''.join(parts)}"
    return r"\.\w+" if node is not None else ""


def _text(node: ast.AST) -> str:
    """Return an expression as code, with 1e9 as somebody would type it."""
    return re.sub(r"\b(\d)(0{4,})\.0\b", lambda found: f"{found[1]}e{len(found[2])}", ast.unparse(node))


def _origin(
    value: ast.expr, scope: _Names, loops: tuple[ast.comprehension, ...], cites: tuple[str, ...]
) -> Origin:
    code, names = _text(value), {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    bound = [
        loop for loop in loops if names & {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    ]
    if isinstance(value, ast.Name) and value.id in scope and not bound:
        value = scope[value.id]
        code = f"{code} = {_text(value)}"
    code += "".join(map(_text, bound))
    # A loop over what was named before says little without it.
    walked = {node.id for loop in bound for node in ast.walk(loop.iter) if isinstance(node, ast.Name)}
    told = "; ".join([code, *(f"{name} = {_text(scope[name])}" for name in sorted(walked & set(scope)))])
    return Origin(told if len(told) <= LONGEST else code, isinstance(value, ast.Constant), cites)
