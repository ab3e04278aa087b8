"""The meaning of a source file as a hash: what changes it asks for a GPU, what does not, does not.

Comments, docstrings, formatting and the texts of errors are left out; every other token that the machine sees is
in. The same file gives the same hash on every Python version, because a record made on one version is checked on
another.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

from course_site.records import renames
from course_site.records.renames import Renames

CUDA_SUFFIXES = frozenset({".cu", ".cuh", ".cpp", ".h", ".hpp"})

# Fields that depend on the Python version or on typing habits, never on what runs.
_IGNORED_FIELDS = frozenset({"kind", "ctx", "type_ignores", "type_comment"})
# Words of a lab.toml that only its page shows; no grader reads them.
_PROSE_OF_A_LAB = frozenset(
    {"title", "task", "not_yours", "hints", "rubric", "answer", "type", "text", "hint"}
)
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def file_digest(root: Path, path: str | Path) -> str:
    """Hash of what a file means: Python by syntax tree, CUDA C++ by tokens, a lab.toml by what the grader reads.

    Anything else is hashed byte by byte. What was renamed counts under its oldest name.

    Args:
        root: the repository.
        path: the file in it; repository-relative.
    Raises:
        OSError: it cannot be read.
        RenamesWrong: see `renames.load`.
    """
    return digest_of(PurePath(path), (root / path).read_bytes(), renames.load(root))


def digest_of(path: PurePath, data: bytes, names: Renames = renames.NONE) -> str:
    """`file_digest` of what a file of this name holds or once held, with the renames of that day."""
    name = path.as_posix()
    if path.suffix == ".py":
        return code_digest(_text(data), names, name)
    if path.suffix in CUDA_SUFFIXES:
        return cuda_digest(_text(data), names, name)
    if path.name == "lab.toml":
        return lab_digest(_text(data), names)
    return _hash(data)


def _text(data: bytes) -> str:
    """Decode as Python reads a text file, on every system."""
    return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def code_digest(source: str, names: Renames = renames.NONE, path: str = "") -> str:
    """Hash of Python source by its syntax tree; source that does not parse is hashed line by line.

    Args:
        source: of a file, or of a cell of a page by itself.
        names: what was renamed.
        path: of the file; repository-relative.
    """
    return code_digests((source,), names, path)[0]


@functools.lru_cache(maxsize=4096)  # a page that is served is checked again after every edit
def code_digests(sources: tuple[str, ...], names: Renames = renames.NONE, path: str = "") -> tuple[str, ...]:
    """`code_digest` of every cell of a page; a name that one cell imports is the same name in the others."""
    trees = [_parsed(source) for source in sources]
    if names and any(map(names.names_any, sources)):
        renames.in_oldest_names([tree for tree in trees if tree is not None], names, path)
    return tuple(_code_digest(*one, names, path) for one in zip(sources, trees, strict=True))


def _parsed(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except SyntaxError:  # a cell with IPython magic
        return None


def _code_digest(source: str, tree: ast.Module | None, names: Renames, path: str) -> str:
    if tree is None:
        lines = [line.rstrip() for line in source.splitlines() if line.strip()]
        return _hash("\n".join(lines).encode())
    pieces = [names.elsewhere(path, source)]
    refusing = _never_returning(tree) if "NoReturn" in source else frozenset()
    _write(pieces, tree, refusing)
    return _hash("".join(pieces).encode())


@functools.lru_cache(maxsize=4096)
def cuda_digest(source: str, names: Renames = renames.NONE, path: str = "") -> str:
    """Hash of C++ source by its tokens; a preprocessor line keeps its line end, which has a meaning."""
    tokens = _cuda_tokens(source)
    if names:
        tokens = names.tokens(tokens, path)
    return _hash((names.elsewhere(path, source) + "\x1f".join(tokens)).encode())


@functools.lru_cache(maxsize=256)
def lab_digest(source: str, names: Renames = renames.NONE) -> str:
    """Hash of a lab.toml without its prose; one that is not TOML is hashed as it stands."""
    try:
        data = tomllib.loads(source)
    except tomllib.TOMLDecodeError:
        return _hash(source.encode())
    if isinstance(data.get("problem"), str):
        data["problem"] = names.oldest_problem(data["problem"])
    return _hash(json.dumps(_without_prose(data), sort_keys=True, default=str).encode())


def _without_prose(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_prose(item) for key, item in value.items() if key not in _PROSE_OF_A_LAB}
    return [_without_prose(item) for item in value] if isinstance(value, list) else value


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _never_returning(tree: ast.Module) -> frozenset[str]:
    """Return the functions of a module that only ever raise: those annotated `-> NoReturn`."""
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.returns is not None
        and ast.unparse(node.returns).strip("'\"").rpartition(".")[2] == "NoReturn"
    )


def _is_refusal(call: ast.Call, refusing: frozenset[str]) -> bool:
    """Return True for a call of a function that only ever raises, by its name or as a method of the same object."""
    function = call.func
    if isinstance(function, ast.Attribute):
        owner = function.value
        return function.attr in refusing and isinstance(owner, ast.Name) and owner.id in ("self", "cls")
    return isinstance(function, ast.Name) and function.id in refusing


def _write(
    out: list[str], node: object, refusing: frozenset[str], speaks: bool = False, raised: bool = False
) -> None:
    """Write the tree as text, in pieces.

    Args:
        out: where the pieces go.
        node: a node of the tree, a list of them, or what a field holds.
        refusing: functions that only ever raise.
        speaks: this is part of what an error is told; its strings are words and no meaning.
        raised: this is what a `raise` raises; which error it is has a meaning, what it says has none.
    """
    if isinstance(node, list):
        out.append("[")
        for item in node:
            _write(out, item, refusing, speaks)
            out.append(",")
        out.append("]")
        return
    if speaks and (
        isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
    ):
        out.append("words")
        return
    if not isinstance(node, ast.AST):
        out.append(ascii(node))
        return
    out += (type(node).__name__, "(")
    for field in node._fields:
        if field in _IGNORED_FIELDS:
            continue
        value = getattr(node, field, None)
        if value is None or value == []:
            continue
        if isinstance(value, str | int):
            out += (field, "=", ascii(value), ";")
            continue
        if field == "body" and isinstance(node, _WITH_DOCSTRING):
            value = _without_docstring(value)
        if field == "values" and isinstance(node, ast.JoinedStr):
            # Some versions leave an empty string between two fields of an f-string.
            value = [v for v in value if not (isinstance(v, ast.Constant) and v.value == "")]
        refuses = isinstance(node, ast.Call) and (raised or _is_refusal(node, refusing))
        out += (field, "=")
        says = speaks or (refuses and field in ("args", "keywords"))
        _write(out, value, refusing, says, isinstance(node, ast.Raise) and field == "exc")
        out.append(";")
    out.append(")")


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    is_docstring = (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
    return body[1:] if is_docstring else body


_CUDA_TOKEN = re.compile(
    r"""
      (?P<comment> //[^\n]* | /\*.*?\*/ )
    | (?P<raw>     R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)" )
    | (?P<string>  "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' )
    | (?P<word>    [A-Za-z_]\w* )
    | (?P<number>  \.?\d(?:[eEpP][+-]|[\w.'])* )
    | (?P<newline> \n )
    | (?P<space>   [^\S\n]+ )
    | (?P<other>   <<<|>>>|->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::|\#\#|. )
    """,
    re.VERBOSE | re.DOTALL,
)


def _cuda_tokens(source: str) -> Iterator[str]:
    source = source.replace("\r\n", "\n").replace("\\\n", "")
    at_line_start, directive = True, False
    before = ""
    for match in _CUDA_TOKEN.finditer(source):
        kind, token = match.lastgroup, match.group()
        if kind == "tag":
            kind = "raw"
        if kind == "comment":
            # A block comment may hide a line end, but never ends a directive.
            continue
        if kind == "newline":
            if directive:
                yield "\n"
            at_line_start, directive = True, False
            continue
        if kind == "space":
            continue
        if at_line_start and token == "#":
            directive = True
        at_line_start = False
        yield token
        if directive and before == "define" and source.startswith("(", match.end()):
            yield "takes arguments"  # `#define F(x)` takes them, `#define F (x)` is another text for F
        before = token
