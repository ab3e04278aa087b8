"""What changed from one source file to the next: the lines, their signs, and the words above them.

Told apart from a plain diff by what it leaves out: the comment at a file's head (it says in words what the lines
say in code), the kernel's own name, and blanks that only moved.
"""

from __future__ import annotations

import ast
import difflib
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

SAME, OUT, IN, GAP = " ", "−", "+", "⋯"
LONG = 25  # lines: a longer one is folded

_TAGS = {SAME: "span", OUT: "del", IN: "ins", GAP: "i"}
_NAMES = (
    re.compile(r"__global__\s+(?:\w+\s+|__launch_bounds__\s*\([^)]*\)\s*)*?(?!__launch_bounds__)(\w+)\s*\("),
    re.compile(r"@triton\.jit[^\n]*\n(?:@[^\n]*\n)*def (\w+)"),
    re.compile(r"load_kernel\([^\"\n]*\"(\w+)\""),
)
_QUIET = re.compile(r'<span class="(?:n|p|w|bp)">([^<]*)</span>')  # these have no colour of their own


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
        """What a caption says: "2 lines out, 3 lines in"."""
        return f"{_count(self.lines_out)} out, {_count(self.lines_in)} in"

    @property
    def is_long(self) -> bool:
        """True if a page should fold it."""
        return len(self.lines) > LONG


def without_head(text: str, language: str) -> str:
    """A source file without the comment or docstring it begins with."""
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
    """The lines that differ, with `context` lines around them.

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
    """The lines with their signs in front, as other tools write them: for a notebook or a terminal."""
    texts = (before.split("\n"), after.split("\n"))
    return "\n".join(
        f"{line.sign} {said}".replace(OUT, "-", 1).rstrip() for line, said in _said(difference, *texts)
    )


def as_html(difference: Difference, before: str, after: str, language: str, label: str) -> str:
    """The lines as a code block that needs no script: `ins`, `del` and signs, coloured as the language is."""
    texts = (_coloured(before, language), _coloured(after, language))
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
    """Both texts, the old one with the kernels' new names."""
    for pattern in _NAMES:
        old, new = pattern.findall(before), pattern.findall(after)
        if len(old) == len(new):
            for was, becomes in zip(old, new, strict=True):
                before = re.sub(rf"\b{was}\b", becomes, before)
    return before, after


def _keys(text: str, indents: bool) -> list[str]:
    """What a line is compared by: its words, with one blank between them.

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


def _coloured(text: str, language: str) -> list[str]:
    """Every line as HTML; a comment over several lines is closed and opened again at each end."""
    lexer = get_lexer_by_name(language, stripnl=False)
    return _QUIET.sub(r"\1", highlight(text, lexer, HtmlFormatter(nowrap=True))).split("\n")
