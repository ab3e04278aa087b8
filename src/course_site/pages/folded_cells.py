"""Code cells that a page shows folded: those in which the harness measures or records, and nothing is taught.

The rule: a cell is folded when it prints nothing, defines nothing, and all that it calls comes from the harness
(`course_kernels.measure`, `problem` and `microbenchmarks`), asks the card what it is (`torch.cuda`), or comes with
Python; at least one thing comes from the harness. Where that is the lesson all the same, the page says so:
`# %% tags=["show"]`; and `tags=["fold"]` folds any other cell. A tag is no part of what a cell means, so no record asks
for a new run.
"""

from __future__ import annotations

import ast
import builtins
import functools
import sys
from collections.abc import Iterator

from course_site.pages.page import Cell, Page

HARNESS = ("course_kernels.measure", "course_kernels.problem", "course_kernels.microbenchmarks")
_OF_THE_CARD = "torch.cuda."
# Of Python itself, and what is asked of a dict or a list on the way.
_OF_PYTHON = frozenset(dir(builtins)) - {"print"}
_OF_A_VALUE = frozenset({"items", "keys", "values", "append"})
_TEACHES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Assert)


@functools.lru_cache(maxsize=512)  # a page that shows parts of another one asks again for each
def folded(page: Page) -> frozenset[Cell]:
    """Return the code cells that a page shows folded."""
    harness: set[str] = set()  # its names, from the cell that imports them on
    standard: set[str] = set()  # those of Python's own library
    found = set()
    for cell in page.code:
        try:
            tree = ast.parse(cell.source)
        except SyntaxError:  # said where the page is run
            continue
        for module, name in _imported(tree):
            if module.startswith(HARNESS):
                harness.add(name)
            elif module.partition(".")[0] in sys.stdlib_module_names:
                standard.add(name)
        if "fold" in cell.tags or ("show" not in cell.tags and _is_harness(tree, harness, standard)):
            found.add(cell)
    return frozenset(found)


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield module and name of all that is imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, name.asname or name.name) for name in node.names)
        elif isinstance(node, ast.Import):
            yield from ((name.name, name.asname or name.name) for name in node.names)


def _is_harness(tree: ast.Module, harness: set[str], standard: set[str]) -> bool:
    if any(isinstance(node, _TEACHES) for node in ast.walk(tree)):
        return False
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    roots = [_root(function) for function in called]
    return any(root in harness for root in roots) and all(
        root in harness | standard
        or (isinstance(function, ast.Name) and root in _OF_PYTHON)
        or (isinstance(function, ast.Attribute) and function.attr in _OF_A_VALUE)
        or ast.unparse(function).startswith(_OF_THE_CARD)
        for function, root in zip(called, roots, strict=True)
    )


def _root(function: ast.expr) -> str:
    """Return the first name of what is called: Workload of `Workload.of`."""
    while isinstance(function, ast.Attribute | ast.Subscript):
        function = function.value
    return function.id if isinstance(function, ast.Name) else ""
