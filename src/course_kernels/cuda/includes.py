"""Project files that a CUDA source is made of: its `#include`s, followed as the compiler follows them.

NVRTC opens includes where no audit hook sees it. So they are found and read here, and this list is what a record of
a run depends on. It needs neither torch nor CUDA: a record is checked on machines that have neither.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

SHARED = Path(__file__).parent  # headers that kernels of several problems use unchanged

_BLANK = r"(?:[ \t\f\v\r]|/\*.*?\*/)*"
_NAME = r'"[^"\n]+"|<[^>\n]+>'
_TOKEN = re.compile(
    rf"""
      (?P<comment> //[^\n]* | /\*.*?\*/ )
    | (?P<raw>     (?:u8|[uUL])?R"(?P<tag>[^()\s\\"]{{0,16}})\(.*?\)(?P=tag)" )
    | (?P<text>    "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' )
    | (?P<asked>   __has_include(?:_next)?{_BLANK}\({_BLANK}(?P<name>{_NAME}) )
    | (?P<word>    [A-Za-z_]\w* )
    | (?P<number>  \.?\d(?:[eEpP][+-]|'?\w|\.)* )
    | (?P<hash>    \#|%: )
    | (?P<newline> \n )
    | (?P<space>   [^\S\n]+ )
    | (?P<other>   [^\w\s"'/\#%.]+ | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(
    rf"{_BLANK}(?P<word>include(?:_next)?)(?!\w){_BLANK}(?P<name>{_NAME}|[^\n]*)", re.DOTALL
)


class IncludeRefused(ValueError):
    """An include that names its file in a way that cannot be followed without compiling."""


@dataclass(frozen=True)
class Include:
    """One `#include` of a source."""

    name: str  # between the quotes or the angle brackets
    quoted: bool
    line: int  # from 1
    required: (
        bool  # False for `__has_include`: what it finds changes the program, and so does what it does not
    )


def sources_of(path: Path | str) -> list[Path]:
    """Return the file and every file of the project that it includes, each once, in the order first met.

    Looked for in the order in which NVRTC looks, see `project_folders`: a quoted name first beside the file that
    names it. An include inside `#if` is followed whatever the condition says. A name in angle brackets that is in
    none of these folders is a header of the CUDA toolkit, and is not listed.

    Raises:
        FileNotFoundError: the file, or one it includes with quotes, does not exist.
        IncludeRefused: an include names its file by a macro, or is an `#include_next`.
    """
    return list(texts_of(path))


def texts_of(path: Path | str) -> dict[Path, str]:
    """Return what `sources_of` lists, each with its text.

    Raises:
        FileNotFoundError, IncludeRefused: see `sources_of`.
    """
    path = Path(path)
    found: dict[Path, str] = {}
    _collect(path, project_folders(path), found, "")
    return found


def project_folders(path: Path | str) -> list[Path]:
    """Return the project's folders on NVRTC's include path: the compiled file's own, then `cuda/`."""
    return list(dict.fromkeys((Path(path).resolve().parent, SHARED.resolve())))


def toolkit_includes(path: Path | str) -> list[str]:
    """Return the headers of the CUDA toolkit that a file and its includes ask for, each once, in the order first met.

    Raises:
        FileNotFoundError, IncludeRefused: see `sources_of`.
    """
    folders = project_folders(path)
    names = (
        include.name
        for file, text in texts_of(path).items()
        for include in _kept_includes_of(text, file.name)
        if include.required and _resolve(include, file, folders) is None
    )
    return list(dict.fromkeys(names))


def _collect(path: Path, folders: list[Path], found: dict[Path, str], asked_by: str) -> None:
    path = path.resolve()
    if path in found:
        return
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file{asked_by}")
    with open(path, encoding="utf-8") as file:
        found[path] = file.read()
    for include in _kept_includes_of(found[path], path.name):
        target = _resolve(include, path, folders)
        if target is None and include.quoted and include.required:
            # Nothing is looked up in the toolkit here: the answer must be the same where there is no toolkit.
            target = path.parent / include.name
        if target is not None:
            asked_by = (
                f", included by {path.name}, line {include.line};"
                f" write it there or in {SHARED.name}/, or <{include.name}> for a header of the CUDA toolkit"
            )
            _collect(target, folders, found, asked_by)


def _resolve(include: Include, path: Path, folders: list[Path]) -> Path | None:
    """Return the file of the project that NVRTC would open."""
    places = [path.parent, *folders] if include.quoted else folders
    return next((place / include.name for place in places if (place / include.name).is_file()), None)


def includes_of(text: str, file_name: str) -> list[Include]:
    """Return the includes of one source text, in order.

    Continued lines, comments, strings, raw strings and digraphs are read as the compiler reads them.

    Args:
        text: C++ source.
        file_name: for the error's sentence.
    Raises:
        IncludeRefused: see `sources_of`.
    """
    return list(_kept_includes_of(text, file_name))


@functools.lru_cache(maxsize=1024)  # a launch, a record's check and a served page ask again and again
def _kept_includes_of(text: str, file_name: str) -> tuple[Include, ...]:
    return tuple(_includes_of(text, file_name))


def _includes_of(text: str, file_name: str) -> Iterator[Include]:
    # A line that ends with a backslash goes on, even inside a word; NVRTC joins them in raw strings, too.
    parts = text.replace("\r\n", "\n").split("\\\n")
    joins = list(accumulate(len(part) for part in parts))[:-1]
    text = "".join(parts)

    def line(position: int) -> int:
        return 1 + text.count("\n", 0, position) + bisect_right(joins, position)

    position, at_line_start = 0, True
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None  # the last alternative takes any character
        position = match.end()
        if match["hash"] and at_line_start:
            directive = _DIRECTIVE.match(text, position)
            if directive:
                position = directive.end()
                yield _include(directive["word"], directive["name"].strip(), file_name, line(match.start()))
        elif match["asked"]:
            yield Include(match["name"][1:-1], match["name"][0] == '"', line(match.start()), required=False)
        if not match["comment"] and match.lastgroup != "space":
            at_line_start = match.lastgroup == "newline"


def _include(word: str, name: str, file_name: str, line: int) -> Include:
    where = f"{file_name}, line {line}: #{word} {name}"
    if word == "include_next":
        raise IncludeRefused(
            f"{where}: write #include with the file's own name; which file is next, we cannot see"
        )
    if not re.fullmatch(_NAME, name):
        raise IncludeRefused(
            f"{where}: write the file's name between quotes or angle brackets;"
            " which file a macro names, we cannot see"
        )
    return Include(name[1:-1], name[0] == '"', line, required=True)
