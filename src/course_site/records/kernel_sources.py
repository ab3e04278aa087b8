"""Kernels that read themselves: what is no meaning to a record must be no meaning to the kernel.

A record knows a file by its syntax tree without docstrings, comments, lines and the texts of errors (`records.digest`).
A kernel whose answer or whose speed hangs on one of those, or on the environment, changes under the same record. So it
may read none of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePath

from course_site.records.digest import CUDA_SUFFIXES

_WORDS = "its own words or lines, which no record keeps: put what it needs into a constant"
_AROUND = "what is outside of its files, which no record keeps: take it as an argument"
_NAMES = {
    **dict.fromkeys(
        ("__doc__", "getdoc", "getsource", "getsourcelines", "getcomments", "inspect", "linecache", "tokenize", "dis",
         "traceback", "co_firstlineno", "co_lines", "co_linetable", "co_lnotab", "co_consts", "co_positions", "lineno",
         "f_lineno", "tb_lineno", "exc_info", "last_value", "__cause__", "__context__", "__notes__", "raw_src",
         "starting_line_number"),
        _WORDS,
    ),
    **dict.fromkeys(("environ", "environb", "getenv", "getcwd", "gethostname", "uname", "argv"), _AROUND),
}  # fmt: skip
_BESIDE = frozenset({"with_suffix", "with_name", "parent"})  # of a file's own path: what lies beside it
_MACROS = re.compile(
    r"\b(?:__LINE__|__FILE__|__FILE_NAME__|__BASE_FILE__|__DATE__|__TIME__|__TIMESTAMP__|__builtin_LINE|__builtin_FILE"
    r"|source_location)\b|^[ \t]*#[ \t]*line\b",
    re.MULTILINE,
)
_CUDA_COMMENT = re.compile(r"//(?:\\\n|[^\n])*|/\*.*?\*/|(\"(?:\\.|[^\"\\\n])*\")", re.DOTALL)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_READS = frozenset({"read_text", "read_bytes", "open"})
# Pieces of text of which one must be there: it spares most files a syntax tree.
_HINTS = re.compile(
    "|".join({*_NAMES, *_READS, "NoReturn", "__file__", "__[LFDT]", r"except\b.*\bas"} - {"dis"})
    + r"|\bdis\b"
)
_USUAL = "Path(__file__).with_"  # in most of them
# Rooms of the harness, and what lies beside the problems: they read errors and the environment to tell of them, and no
# kernel lies in them.
HARNESS = frozenset({"cuda", "measure", "error_demos", "two_cards"})


def faults_of(name: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield line, and what is wrong there, of every place where a kernel's file reads itself or its surroundings."""
    path = PurePath(name)
    suffix = path.suffix
    if suffix == ".py" and (HARNESS & {*path.parts} or path.parent.name == "course_kernels"):
        return
    if suffix in CUDA_SUFFIXES and _MACROS.search(text):
        bare = _CUDA_COMMENT.sub(lambda found: found[1] or "\n" * found[0].count("\n"), text)
        for found in _MACROS.finditer(bare):
            yield bare.count("\n", 0, found.start()) + 1, f"{found[0].strip()} reads {_WORDS}"
    elif suffix == ".py":
        if not _HINTS.search(text.replace(_USUAL, "")):
            return
        try:
            tree = ast.parse(text)
        except SyntaxError:  # told by whoever imports it
            return
        yield from sorted(set(_of_python(tree)))


def _of_python(tree: ast.Module) -> Iterator[tuple[int, str]]:
    documented = {id(node) for node in _docstrings(tree)}
    beside = set()  # `__file__` of a path that leads to what lies beside it
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in _BESIDE:
            beside |= {id(inner) for inner in ast.walk(node.value)}
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        for name in _names_of(node, documented):
            if name in _NAMES:
                yield line, f"{name} reads {_NAMES[name]}"
            elif name == "__file__" and id(node) not in beside:
                yield line, f"__file__ reads {_WORDS}"
            elif macro := _MACROS.search(name):
                yield line, f"{macro[0].strip()} reads {_WORDS}"
        if isinstance(node, ast.Call) and _opens(node.func):
            yield (
                line,
                f"{ast.unparse(node.func)} reads a file, whose comments no record keeps: hand its path on",
            )
        if isinstance(node, ast.ExceptHandler) and node.name and _is_read(node):
            yield (
                line,
                f"{node.name!r}, an error that it catches, is read: a record keeps no text of an error",
            )
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and _refuses(node)
            and not _only_raises(node)
        ):
            yield (
                line,
                f"{node.name} is `-> NoReturn` and does more than to raise: a record keeps no text that it is given",
            )


def _names_of(node: ast.AST, documented: set[int]) -> list[str]:
    """Return the names that a node asks for, also those in a string that is no docstring."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, ast.Import):
        return [part for name in node.names for part in name.name.split(".")]
    if isinstance(node, ast.ImportFrom):
        return [*(node.module or "").split("."), *(name.name for name in node.names)]
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
        return [node.value]
    return []


def _opens(function: ast.expr) -> bool:
    """Return whether a call reads a file, but for one at a fixed place outside of the repository."""
    if isinstance(function, ast.Name):
        return function.id == "open"
    if not (isinstance(function, ast.Attribute) and function.attr in _READS):
        return False
    of = function.value
    fixed = isinstance(of, ast.Call) and len(of.args) == 1 and isinstance(of.args[0], ast.Constant)
    return not (fixed and str(of.args[0].value).startswith("/"))  # type: ignore[attr-defined]


def _docstrings(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and node.body and isinstance(node.body[0], ast.Expr):
            yield node.body[0].value


def _is_read(handler: ast.ExceptHandler) -> bool:
    """Return whether a caught error is used for more than to raise another one."""
    raised = {
        id(inner) for node in ast.walk(handler) if isinstance(node, ast.Raise) for inner in ast.walk(node)
    }
    return any(
        isinstance(node, ast.Name) and node.id == handler.name and id(node) not in raised
        for node in ast.walk(handler)
    )


def _refuses(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return (
        node.returns is not None and ast.unparse(node.returns).strip("'\"").rpartition(".")[2] == "NoReturn"
    )


def _only_raises(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether all that a function has after its docstring is one `raise`."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return len(body) == 1 and isinstance(body[0], ast.Raise)
