"""Differences between one source file and the next: the lines, their signs, and the words above them.

Told apart from a plain diff by what it leaves out: the comment at a file's head (it says in words what the lines
say in code), the kernel's own name, and blanks that only moved.
"""

from __future__ import annotations

import ast
import difflib
import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES

from course_site.pages.fences import fenced

SAME, OUT, IN, GAP = " ", "−", "+", "⋯"
LONG = 25  # lines: a longer one is folded

_TAGS = {SAME: "span", OUT: "del", IN: "ins", GAP: "i"}
_NAMES = (
    re.compile(r"__global__\s+(?:\w+\s+|__launch_bounds__\s*\([^)]*\)\s*)*?(?!__launch_bounds__)(\w+)\s*\("),
    re.compile(r"@triton\.jit[^\n]*\n(?:@[^\n]*\n)*def (\w+)"),
    re.compile(r"load_kernel\([^\"\n]*\"(\w+)\""),
)
_QUIET = ("", "n", "o", "p", "w", "bp")  # these have no colour of their own
_ALIKE = 0.6  # of the words: two lines are one line that was changed

Marks = dict[int, list[tuple[int, int]]]  # number of a line: where in it something else stands now


@dataclass(frozen=True)
class Line:
    """One line: its sign, and its number (from 0) in the new text, or in the old one if it went out.

    For a gap the number is how many lines are left out.
    """

    sign: str
    number: int


@dataclass(frozen=True)
class Difference:
    """The lines of a unified diff, and how many went out and came in."""

    lines: tuple[Line, ...]
    lines_out: int
    lines_in: int

    @property
    def words(self) -> str:
        """The words of a caption: "2 lines out, 3 lines in"."""
        return f"{_count(self.lines_out)} out, {_count(self.lines_in)} in"

    @property
    def is_long(self) -> bool:
        """True if a page should fold it."""
        return len(self.lines) > LONG


def without_head(text: str, language: str) -> str:
    """Return a source file without the comment or docstring it begins with."""
    lines = text.split("\n")
    start = 0
    if language == "python":
        body = ast.parse(text).body
        if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            start = body[0].end_lineno or 0
    else:
        inside = False
        for line in lines:
            words = line.strip()
            inside = inside or words.startswith("/*")
            if not (inside or words.startswith("//")):
                break
            inside = inside and not words.endswith("*/")
            start += 1
    return "\n".join(lines[start:]).strip("\n")


def compare(before: str, after: str, *, indents: bool, context: int = 3) -> Difference:
    """Return the lines that differ, with `context` lines around them.

    Args:
        before, after: the two texts.
        indents: the margin of a line has a meaning, as in Python; if not, a line that only moved has not changed.
        context: lines shown around a change; a gap stands for the rest.
    """
    keys = [_keys(text, indents) for text in _with_one_name(before, after)]
    lines = list(_lines(*keys))
    near = [False] * len(lines)
    for place, line in enumerate(lines):
        if line.sign != SAME:
            for i in range(max(0, place - context), min(len(lines), place + context + 1)):
                near[i] = True
    shown: list[Line] = []
    place = 0
    while place < len(lines):
        end = place
        while end < len(lines) and not near[end]:
            end += 1
        if end - place > 1:
            shown.append(Line(GAP, end - place))
        elif end > place:
            shown.append(lines[place])
        if end < len(lines):
            shown.append(lines[end])
        place = end + 1
    signs = [line.sign for line in lines]
    return Difference(tuple(shown), signs.count(OUT), signs.count(IN))


def as_text(difference: Difference, before: str, after: str) -> str:
    """Return the lines with their signs in front, as other tools write them: for a notebook or a terminal."""
    texts = (before.split("\n"), after.split("\n"))
    return "\n".join(
        f"{line.sign} {said}".replace(OUT, "-", 1).rstrip() for line, said in _said(difference, *texts)
    )


def as_html(difference: Difference, before: str, after: str, language: str, label: str) -> str:
    """Return the lines as a code block that needs no script: `ins`, `del` and signs, coloured as the language is.

    Where a line is an older one changed, what differs stands in `b`.
    """
    marks = _marks(difference, before.split("\n"), after.split("\n"))
    texts = (_coloured(before, language, marks[0]), _coloured(after, language, marks[1]))
    rows = [
        f"<{_TAGS[line.sign]}>{line.sign} {said}\n</{_TAGS[line.sign]}>"
        for line, said in _said(difference, *texts)
    ]
    return (
        '<div class="highlight difference no-copy"><pre><code tabindex="0" role="region" '
        f'aria-label="{html.escape(label)}"><span class="lines">{"".join(rows)}</span></code></pre></div>'
    )


def _said(difference: Difference, before: list[str], after: list[str]) -> Iterator[tuple[Line, str]]:
    for line in difference.lines:
        if line.sign == GAP:
            yield line, f"{_count(line.number)} as before"
        else:
            yield line, (before if line.sign == OUT else after)[line.number]


def _count(n: int) -> str:
    return f"{n} line{'s' * (n != 1)}"


def _with_one_name(before: str, after: str) -> tuple[str, str]:
    """Return both texts, the old one with the kernels' new names."""
    for pattern in _NAMES:
        old, new = pattern.findall(before), pattern.findall(after)
        if len(old) == len(new):
            for was, becomes in zip(old, new, strict=True):
                before = re.sub(rf"\b{was}\b", becomes, before)
    return before, after


def _keys(text: str, indents: bool) -> list[str]:
    """Return what a line is compared by: its words, with one blank between them.

    A brace has no words, only its margin to say which block it ends.
    """
    keys = []
    for line in text.split("\n"):
        margin = line[: len(line) - len(line.lstrip())]
        keys.append((margin if indents or _says_nothing([line]) else "") + " ".join(line.split()))
    return keys


def _lines(before: list[str], after: list[str]) -> Iterator[Line]:
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    out: list[Line] = []
    into: list[Line] = []
    codes = matcher.get_opcodes()
    for number, (code, a_start, a_end, b_start, b_end) in enumerate(codes):
        # A brace or an empty line between two changes holds nothing together: it changes with them.
        between = 0 < number < len(codes) - 1 and b_end - b_start <= 2
        if code == "equal" and not (between and _says_nothing(after[b_start:b_end])):
            yield from out
            yield from into
            out, into = [], []
            yield from (Line(SAME, i) for i in range(b_start, b_end))
        else:
            out += [Line(OUT, i) for i in range(a_start, a_end)]
            into += [Line(IN, i) for i in range(b_start, b_end)]
    yield from out
    yield from into


def _says_nothing(lines: list[str]) -> bool:
    return not any(re.search(r"\w", line) for line in lines)


def _marks(difference: Difference, before: list[str], after: list[str]) -> tuple[Marks, Marks]:
    """Return where the words differ, in the old text and in the new one.

    Only lines that were changed count, not those that were written anew.
    """
    old: Marks = {}
    new: Marks = {}
    left: list[int] = []  # lines that went out and have met no successor
    for line in difference.lines:
        if line.sign == OUT:
            left.append(line.number)
        elif line.sign == IN:
            words = _words(after[line.number])
            for place, number in enumerate(left):
                was = _words(before[number])
                if _likeness(was, words) > _ALIKE:
                    matcher = difflib.SequenceMatcher(None, was, words, autojunk=False)
                    changes = [code for code in matcher.get_opcodes() if code[0] != "equal"]
                    old[number] = _ranges(was, [(start, end) for _, start, end, _, _ in changes])
                    new[line.number] = _ranges(words, [(start, end) for _, _, _, start, end in changes])
                    del left[: place + 1]
                    break
        else:
            left = []
    return old, new


def _likeness(was: list[str], becomes: list[str]) -> float:
    """Return how much of two lines is the same, 0 to 1; signs and blanks, which all lines have, do not count."""
    old, new = ([word for word in words if re.match(r"\w", word)] for words in (was, becomes))
    return difflib.SequenceMatcher(None, old, new, autojunk=False).ratio()


def _words(line: str) -> list[str]:
    return re.findall(r"\w+|\s+|.", line)


def _ranges(words: Sequence[str], changed: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Characters of a line, from words of it; blanks at the ends are left out."""
    found = []
    for first, last in changed:
        while first < last and words[first].isspace():
            first += 1
        while last > first and words[last - 1].isspace():
            last -= 1
        if last > first:
            start = sum(map(len, words[:first]))
            found.append((start, start + sum(map(len, words[first:last]))))
    return found


def coloured(text: str, language: str) -> list[str]:
    """Return every line of a source as HTML, with a span for what has a colour."""
    return _coloured(text, language, {})


def _coloured(text: str, language: str, marks: Marks) -> list[str]:
    """Return every line as HTML: a span for what has a colour, and `b` around what is marked."""
    lines = [""]
    column = 0
    for kind, value in get_lexer_by_name(language, stripnl=False, ensurenl=False).get_tokens(text):
        while kind not in STANDARD_TYPES:
            kind = kind.parent
        css = STANDARD_TYPES[kind]
        for number, part in enumerate(value.split("\n")):
            if number:
                lines.append("")
                column = 0
            lines[-1] += _piece(part, css, column, marks.get(len(lines) - 1, []))
            column += len(part)
    return lines


def _piece(text: str, css: str, column: int, marks: list[tuple[int, int]]) -> str:
    """Return a part of a line that has one colour; it begins at a column and is cut where a mark begins or ends."""
    cuts = {
        0,
        len(text),
        *(edge - column for mark in marks for edge in mark if 0 < edge - column < len(text)),
    }
    raw = ""
    for start, end in pairwise(sorted(cuts)):
        inside = any(first <= column + start < last for first, last in marks)
        said = html.escape(text[start:end], quote=False)
        raw += f"<b>{said}</b>" if inside else said
    return raw if css in _QUIET or not text else f'<span class="{css}">{raw}</span>'


def difference(before: Path, after: Path) -> str:
    """Return what is typed between two snapshots, with the lines around it."""
    old, new = (path.read_text(encoding="utf-8").splitlines() for path in (before, after))
    lines = list(difflib.unified_diff(old, new, lineterm="", n=2))[2:]
    return fenced("\n".join("…" if line.startswith("@@") else line for line in lines), ".diff .no-copy")
