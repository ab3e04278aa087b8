"""Passages: the smallest texts that a person reads at once, of every file that people write and readers see.

Of a page: its head, each paragraph, list item, row of a table and outermost block of its prose, and each code cell. Of
a TOML file each statement, of glossary and bibliography each entry. Of a kernel's file what stands before its code, and
all comments and docstrings of the rest, as the records keep the code itself. Of the code that makes the pages what it
says, function by function. Pictures, styles, scripts and templates are read whole.

A passage is known by its words. White space is no part of them, but in code and in settings.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from course_site.pages import fences
from course_site.pages.blocks import KINDS

# Where there is something to read, besides single files at the top.
_FOLDERS = ("docs", "findings", "handbook", "labs", "overrides", "src/course_kernels", "src/course_models")
_SINGLE = ("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "mkdocs.yml", "records/waiting.toml")
# Who makes the course, and what of its settings a page says.
_SETTINGS, _SAID = "pyproject.toml", frozenset({"[project]", "[project.urls]", "[tool.course]"})
# Code that speaks: what pages say without a page's source, and what the graders and the profiler advise.
_SPEAKING = tuple(
    f"src/{folder}/"
    for folder in (
        "course_labs/hints.py",
        "course_profile/counter_rules.py",
        "course_profile/rules.py",
        "course_profile/stall_rules.py",
        "course_profile/thresholds.py",
        *(f"course_site/{room}" for room in ("charts", "pages", "printing", "sessions", "site", "values")),
    )
)
# The data sheets: no record keeps them.
_SHEETS = "src/course_kernels/measure/machine.py"
_BY_ENTRY = frozenset({"docs/bibliography.toml", "docs/glossary.toml"})
# Settings of a tool; what a lab's grader must refuse, which nobody is shown.
_NOT_READ = frozenset({"ruff.toml", "wrong.toml"})
_IN_A_DOOR = 3  # slashes: what lies beside lab.toml is the grader's, and no student sees it
_NOT_ENTERED = frozenset({"vendor", "wrong", "_worked_out"})


@dataclass(frozen=True)
class Passage:
    """One text to read.

    Attributes:
        line: where it begins in its file, from 1.
        text: as its writer sees it.
        name: tells its words from all others.
        under: the head of the table that it is in; "" where there is none.
    """

    line: int
    text: str
    name: str
    under: str = ""

    @property
    def begins(self) -> str:
        """Its first words."""
        words = " ".join(self.text.split())
        return words if len(words) <= _SHOWN else f"{words[: _SHOWN - 1].rstrip()}…"


_SHOWN = 60  # characters of a passage that tell which one it is
_DIGITS = 12  # of a name: no two passages meet by chance


def _passage(line: int, text: str, words: str, under: str = "") -> Passage:
    return Passage(line, text, hashlib.sha256(words.encode()).hexdigest()[:_DIGITS], under)


def files(root: Path) -> Iterator[str]:
    """Yield the path of every file with something to read, sorted."""
    found = {name for name in (*_SINGLE, _SETTINGS) if (root / name).is_file()}
    found.update(name for one in _SPEAKING if (root / (name := one.rstrip("/"))).is_file())
    for folder in (*_FOLDERS, *_SPEAKING):
        for at, inside, names in os.walk(root / folder.rstrip("/"), followlinks=True):
            inside[:] = [name for name in inside if name not in _NOT_ENTERED and name[0] not in "._"]
            here = Path(at).relative_to(root).as_posix()
            found.update(f"{here}/{name}" for name in names if _reader(f"{here}/{name}"))
    yield from sorted(found)


def passages(path: str, text: str) -> list[Passage]:
    """Return the passages of a file, in their order; none of a file that nobody need read."""
    read = _reader(path)
    return list(read(text)) if read else []


_Reader = Callable[[str], Iterator[Passage]]


def _reader(path: str) -> _Reader | None:
    name, suffix = os.path.basename(path), os.path.splitext(path)[1]
    if name in _NOT_READ or name[0] in "._":
        return None
    if path.startswith("labs/") and suffix != ".toml" and path.count("/") < _IN_A_DOOR:
        return None
    if path == _SHEETS:
        return _whole
    if path == "LICENSE":
        return _whole
    if path == _SETTINGS:
        return _said_settings
    if f"{path}/".startswith(_SPEAKING):
        return _strings if suffix == ".py" else None
    if suffix == ".toml":
        return functools.partial(_settings, entries=path in _BY_ENTRY)
    if suffix == ".py" and path.startswith(("docs/", "handbook/")):
        return _script
    return _BY_SUFFIX.get(suffix)


# --- Markdown -----------------------------------------------------------------------------------------------

_DIRECTIVE = re.compile(r"///(?:\s+([\w-]+))?")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s")
# What begins a line of its own, however the lines are broken.
_OWN_LINE = re.compile(r"\s*(?:(?:[-*+]|\d{1,3}[.)]|#{1,6}|!!!|\?\?\?\+?|===|:)\s|\||///)")
_RULE = re.compile(r"\s*\|(?:\s*:?-+:?\s*\|)+\s*")
_HEAD = re.compile(r"---\n.*?\n---\n", re.DOTALL)
_PARTS = frozenset(part for kind in KINDS.values() for part in kind.parts)


def _markdown(text: str, at: int = 1) -> Iterator[Passage]:
    """Yield the passages of some Markdown whose first line is line `at` of its file."""
    head = _HEAD.match(text)
    if head and at == 1:
        yield _passage(at, head[0].rstrip(), _lines(head[0]))
        at, text = at + head[0].count("\n"), text[head.end() :]
    chunk: list[fences.Line] = []
    begun, depth = at, 0
    for number, line in enumerate(fences.lines(text), at):
        block = None if line.part else _DIRECTIVE.match(line.text)
        kind = block[1] if block else None
        closes, opens = block is not None and not kind, kind is not None and kind not in _PARTS
        is_heading = not line.part and line.text.startswith("#")
        is_blank = not line.part and not line.text.strip()
        if not depth and (is_blank or is_heading or opens or line.part == "open" or _ITEM.match(line.text)):
            yield from _chunk(begun, chunk)
            chunk = []
        if is_blank and not depth:
            continue
        begun = begun if chunk else number
        chunk.append(line)
        depth = max(0, depth + opens - closes)
        if not depth and (line.part == "end" or is_heading or closes):
            yield from _chunk(begun, chunk)
            chunk = []
    yield from _chunk(begun, chunk)


def _chunk(begun: int, chunk: list[fences.Line]) -> Iterator[Passage]:
    """Yield a chunk as one passage; of a table its head, and each row beside the head."""
    if len(chunk) > 2 and _RULE.fullmatch(chunk[1].text):
        yield _passage(begun, chunk[0].text.strip(), _normal(chunk[:2]))
        for number, row in enumerate(chunk[2:], 2):
            words = _normal([chunk[0], row])
            yield _passage(begun + number, row.text.strip(), words, chunk[0].text.strip())
    elif chunk:
        yield _passage(begun, "".join(line.text for line in chunk).rstrip(), _normal(chunk))


def _normal(chunk: list[fences.Line]) -> str:
    """Return the words of some lines: broken anyhow in prose, to the blank in code and in what a block is set to."""
    lines: list[str] = []
    joins = verbatim = False
    for line in chunk:
        block = None if line.part else _DIRECTIVE.match(line.text)
        if block:
            verbatim = bool(block[1]) and block[1] in KINDS and KINDS[block[1]].body == "yaml"
        said = line.text.rstrip() if line.part or verbatim else " ".join(line.text.split())
        starts = not joins or line.part or verbatim or _OWN_LINE.match(line.text)
        if said and starts:
            lines.append(said)
        elif said:
            lines[-1] += f" {said}"
        joins = bool(said) and not (line.part or block or verbatim or line.text.lstrip().startswith("#"))
    return "\n".join(lines)


# --- scripts, settings, code --------------------------------------------------------------------------------

_CELL = re.compile(r"^# %%(?P<rest>.*)\n?", re.MULTILINE)
_MARK = re.compile(r"^#[ ]?", re.MULTILINE)


def _script(text: str) -> Iterator[Passage]:
    """Yield the passages of a percent script."""
    marks = list(_CELL.finditer(text))
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    top = text[: marks[0].start()] if marks else text
    if top.strip():
        yield _passage(1, top.rstrip(), _lines(top))
    line = top.count("\n") + 1
    for mark, end in zip(marks, ends, strict=False):
        rest, body = mark["rest"].strip(), text[mark.end() : end]
        if rest == "[markdown]":
            yield from _markdown(_MARK.sub("", body), line + 1)
        elif body.strip() or rest:
            yield _passage(line, f"{mark[0]}{body}".rstrip(), _lines(mark[0] + body))
        line += text.count("\n", mark.start(), end)


_TOML = re.compile(
    r'"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}]|\n', re.DOTALL
)


def _settings(text: str, *, entries: bool) -> Iterator[Passage]:
    """Yield each statement of TOML; with `entries` each table, with all that stands in it."""
    held: list[tuple[int, str]] = []
    under = ""
    for line, said in _statements(text):
        is_head = said.startswith("[")
        if held and (is_head or not entries):
            yield _statement(held, under)
            held = []
        under = "" if entries else said if is_head else under
        held.append((line, said))
    if held:
        yield _statement(held, under)


def _said_settings(text: str) -> Iterator[Passage]:
    return (one for one in _settings(text, entries=False) if (one.under or one.text) in _SAID)


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of what some TOML says: a line, or several where a string or a bracket is open."""
    start, depth, line = 0, 0, 1
    for token in _TOML.finditer(f"{text}\n"):
        depth += (token[0] in ("[", "{")) - (token[0] in ("]", "}"))
        if token[0] == "\n" and depth <= 0:
            said = text[start : token.end()]
            if said.strip() and not said.lstrip().startswith("#"):
                yield line, said.strip()
            line += said.count("\n")
            start, depth = token.end(), 0
    if left := text[start:].strip():  # no TOML: whoever reads it says so
        yield line, left


def _statement(held: list[tuple[int, str]], under: str) -> Passage:
    text = "\n".join(said for _, said in held)
    # Nearly all are of one line.
    words = "\n".join(
        _normal(list(fences.lines(said))) if "\n" in said else " ".join(said.split()) for _, said in held
    )
    return _passage(held[0][0], text, words, under if under != text else "")


_PYTHON = re.compile(
    r'(?P<doc>"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\')'
    r'|(?P<string>"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')|(?P<comment>\#[^\n]*)',
    re.DOTALL,
)
_CUDA = re.compile(
    r'(?P<string>"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')|(?P<comment>//[^\n]*|/\*.*?\*/)', re.DOTALL
)


def _words_of_code(text: str, *, pattern: re.Pattern[str] = _PYTHON) -> Iterator[Passage]:
    """Yield what stands before the code, and all comments and docstrings after it as one."""
    head: list[tuple[int, str]] = []
    rest: list[tuple[int, str]] = []
    end, is_head = 0, True
    for token in pattern.finditer(text):
        line = text.rfind("\n", 0, token.start()) + 1
        is_doc = token.lastgroup == "doc" and not text[line : token.start()].strip(" rR")
        is_head = is_head and not text[end : token.start()].strip(" \nrR") and token.lastgroup != "string"
        end = token.end()
        if is_doc or token.lastgroup == "comment":
            (head if is_head else rest).append((token.start(), token[0]))
    for part in (head, rest):
        if part:
            said = "\n".join(one for _, one in part)
            words = "\n".join(" ".join(one.split()) for _, one in part)
            yield _passage(text.count("\n", 0, part[0][0]) + 1, said, words)


def _strings(text: str) -> Iterator[Passage]:
    """Yield what each statement of a module says: its strings, without docstrings."""
    try:
        module = ast.parse(text)
    except SyntaxError:  # whoever imports it says so
        return
    for statement in module.body:
        found: list[tuple[int, str]] = []
        left: list[ast.AST] = [statement]
        while left:
            node = left.pop()
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.strip():
                found.append((node.lineno, node.value))
            left += reversed(list(ast.iter_child_nodes(node)))
        if found:
            said = "\n".join(one for _, one in found)
            yield _passage(found[0][0], said, repr([one for _, one in found]))


def _whole(text: str) -> Iterator[Passage]:
    if text.strip():
        yield _passage(1, text.rstrip(), _lines(text))


def _picture(text: str) -> Iterator[Passage]:
    if text.strip():
        yield _passage(1, text.rstrip(), " ".join(text.split()))


def _lines(text: str) -> str:
    """Return code as it stands, but for blanks that nobody sees."""
    return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))


_BY_SUFFIX: dict[str, _Reader] = {
    ".md": _markdown,
    ".svg": _picture,
    ".py": _words_of_code,
    **dict.fromkeys((".cu", ".cuh", ".wgsl"), functools.partial(_words_of_code, pattern=_CUDA)),
    **dict.fromkeys((".css", ".js", ".html", ".yml", ".sh"), _whole),
}
