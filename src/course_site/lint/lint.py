"""The typed-number lint: a performance number reaches a page through a record, never through a keyboard.

Reads prose, page scripts, Python, CUDA, TOML, SVG and what cells print, and reports every rate, time, percentage
of a peak, ratio or comparison with a library that somebody typed. A sentence that cites the bibliography is exempt:
someone else's number, with its source. Sizes, counts, dates, versions and minutes of a session are no performance
numbers. Run it by hand with `python -m course_site.lint.lint docs handbook src`.
"""

from __future__ import annotations

import ast
import bisect
import functools
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from course_site.lint.rankings import rankings_in
from course_site.lint.speed_words import FRACTION, WORD, speaks_of_speed
from course_site.lint.typed_numbers import FILL, HEADER_UNIT, RATE, TIME, in_sentence, is_excused
from course_site.pages import fences
from course_site.pages.plain_text import CITE, DEFINITION, HELD, Text, plain, sentences


@dataclass(frozen=True, order=True)
class Finding:
    """One typed number: `line` and `column` count from 1 in the text that was given."""

    line: int
    column: int
    excerpt: str
    why: str

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.excerpt!r}: {self.why}"


Place = tuple[int, str, str]  # where in the text, what stands there, why it is refused

# A code span that holds no more than figures and a unit is prose, and so is a number with words after it.
BARE = re.compile(
    rf"[\s\d.,~≈×x%+-]+|\s*(?:{RATE}|{TIME}|%|×)\s*|\s*\d*\.\d+(?:\s+[a-z]+){{1,5}}\s*"
    rf"|\s*(?:(?:{WORD}|an?)[\s-]+)+{FRACTION}(?:\s+[a-z]+){{0,4}}\s*"
)

# --- Markdown tables: a unit in the header makes every number below it a performance number ----------

_CELL_NUMBER = re.compile(r"(?<![A-Za-z0-9_.])\d+(?:[.,]\d+)*")


def _in_tables(text: str, cited: Callable[[str], bool]) -> Iterator[Place]:
    units: dict[int, str] = {}
    place, before, in_table = 0, "", False
    for line in text.splitlines(keepends=True):
        stripped = line.strip()
        cells = stripped.strip("|").split("|") if "|" in stripped else []
        if cells and re.fullmatch(r"[\s|:-]+", stripped) and "-" in stripped:
            in_table = True
            heads = before.strip().strip("|").split("|")
            units = {i: head.strip() for i, head in enumerate(heads) if HEADER_UNIT.search(head)}
        elif in_table and cells:
            if units and not cited(stripped):
                offset = line.index(stripped) + (1 if stripped.startswith("|") else 0)
                for i, cell in enumerate(cells):
                    number = _CELL_NUMBER.search(cell)
                    if i in units and number:
                        yield (
                            place + offset + number.start(),
                            f"{cell.strip()} under {units[i]}",
                            f"a typed number in a table; {FILL}",
                        )
                    offset += len(cell) + 1
        else:
            in_table = False
            units = {}
        before = line
        place += len(line)


# --- the public functions ----------------------------------------------------------------------------


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer("\n", text))]


def _findings(source: str, places: Iterable[Place]) -> list[Finding]:
    starts = _line_starts(source)
    found: dict[tuple[int, str], Finding] = {}
    for at, excerpt, why in places:
        line = bisect.bisect_right(starts, at)
        found.setdefault((line, excerpt), Finding(line, at - starts[line - 1] + 1, excerpt, why))
    return sorted(found.values())


_COMMENT = re.compile(r"(?:^|(?<=\s))(?://|#)\s.*")
# As profilers name what they count.
_METRIC = re.compile(r"\b\w+__\w+(?:\.\w+)*\s*[=:|]?\s*\d+(?:\.\d+)?(?![\w.])")

# "- a", "1. a", "a) a" or "a · b · c"
CHOICE = re.compile(r"\A\s*(?:[-*+]|\d{1,3}[.)]|\(?[a-zA-Z][.)])\s|\s·\s")


# A fenced text of no language looks like what a cell printed.
_LANGUAGE = re.compile(r"\s*\{?\s*\.?([\w-]*)")
_NO_LANGUAGE = frozenset(
    {"", "text", "txt", "plain", "plaintext", "console", "output", "log", "pycon", "title"}
)
_PRINTED = re.compile(r"(?<![\w.])\d*\.\d+(?![\w.])|\d\s*%")
_COLUMN = re.compile(r"\S(?:[ \t]{2,}|\t|\s*\|\s*)\d[\d,]*\s*$", re.MULTILINE)
_TYPED_OUTPUT = (
    "a typed block that looks like what a cell prints; record it, and show it with `/// text` or a table"
)


def _typed_outputs(source: Text) -> Iterator[Place]:
    """Yield fenced texts of no language with decimals, shares, or a column of numbers that speaks of speed."""
    for match in fences.FENCED.finditer(source.text):
        if (language := _LANGUAGE.match(match["says"])) and language[1] in _NO_LANGUAGE:
            found = _PRINTED.search(match["code"])
            if not found and speaks_of_speed(match["code"]) and len(_COLUMN.findall(match["code"])) > 1:
                found = _COLUMN.search(match["code"])
            if found:
                line = match["code"][: found.end()].rpartition("\n")[2].strip()
                yield source.at[match.start("code") + found.start()], line, _TYPED_OUTPUT


def _search(
    source: Text,
    *,
    in_claim: bool = False,
    condition: str | None = None,
    keys: Collection[str] | None = None,
    own: Collection[str] = (),
    code: bool = True,
    guesses: bool = False,
    ranks: bool = True,
) -> Iterator[Place]:
    """Yield (place, excerpt, why) of every typed number: the engine of all functions below.

    With `ranks`, of every ranking in words too: not so in comments, which name the titles of papers.
    """
    text, pieces, empty = plain(source, BARE)
    own = {*own, *DEFINITION.findall(text.text)}

    def cited(sentence: str) -> bool:
        known = any(key not in own and (keys is None or key in keys) for key in CITE.findall(sentence))
        return is_excused(sentence, known)

    for at, excerpt in empty:
        yield at, excerpt, "a value that names no recorded data is a typed number"
    has_values = "{{" in source.text
    spans = list(sentences(text.text))
    for (start, end), (_, after) in zip(spans, [*spans[1:], *spans[-1:]], strict=True):
        sentence = text.text[start:end]
        if cited(sentence) or (guesses and CHOICE.search(sentence)):
            continue
        typed = in_sentence(sentence, in_claim=in_claim, condition=condition)
        told: Iterable[Place] = typed
        is_held = has_values and HELD in text.text[start:after]  # by a value, here or next, and its own words
        if ranks and not (typed or in_claim or is_held):
            told = rankings_in(sentence)
        for place, excerpt, why in told:
            yield text.at[start + place], excerpt, why
    for place, excerpt, why in _in_tables(text.text, cited):
        yield text.at[place], excerpt, why
    if code and pieces and ("```" in source.text or "~~~" in source.text):
        yield from _typed_outputs(source)
    for piece in pieces if code else ():
        for line in re.finditer(r"[^\n]+\n?", piece.text):
            for place, excerpt, why in in_sentence(line[0], in_claim=False, condition=None):
                if re.search(rf"{RATE}|{TIME}", excerpt):
                    yield piece.at[line.start() + place], excerpt, why
            for comment in _COMMENT.finditer(line[0]):  # what stands in code and is no code
                for place, excerpt, why in in_sentence(comment[0], in_claim=False, condition=None):
                    yield piece.at[line.start() + comment.start() + place], excerpt, why
            for metric in _METRIC.finditer(line[0]):
                yield (
                    piece.at[line.start() + metric.start()],
                    metric[0],
                    f"a typed number of a profiler; {FILL}",
                )


def find_typed_numbers(
    text: str,
    *,
    in_claim: bool = False,
    condition: str | None = None,
    keys: Collection[str] | None = None,
    code: bool = True,
    guesses: bool = False,
) -> list[Finding]:
    """Typed performance numbers in Markdown prose, which may hold values, code, math, HTML and tables.

    Args:
        text: prose without directives or a YAML head; `lint_page` takes those apart.
        in_claim: the body of a claim, whose condition holds comparisons up; units and digits it does not.
        condition: the head of that claim; a ratio is allowed if its number stands there (2 for "twice").
        keys: the keys of the bibliography; None takes any `[^key]` that the text does not define itself.
        code: also look for rates and times (nothing else) in fenced and inline code.
        guesses: list items and "a · b · c" are the choices of a prediction, which claim nothing.
    """
    places = _search(
        Text.of(text), in_claim=in_claim, condition=condition, keys=keys, code=code, guesses=guesses
    )
    return _findings(text, places)


_DIRECTIVE = re.compile(r"///(?:[ \t]+(?P<kind>[\w-]+)[ \t]*(?:\|[ \t]*(?P<head>.*?))?)?[ \t]*$")
_SETTINGS = frozenset({"chart", "table", "source", "diff", "rungs", "figure", "define"})
_SPOKEN_HEADS = frozenset({"predict", "exercise"})


def _search_markdown(source: Text, keys: Collection[str] | None) -> Iterator[Place]:
    """Prose with directives: each kind of block by its own rules."""
    own = DEFINITION.findall(source.text)
    stack: list[tuple[str, str]] = []  # kind or part, head
    start, place = 0, 0

    def flush(end: int) -> Iterator[Place]:
        piece = source.slice(start, end)
        if not piece.text.strip():
            return
        kind, head = stack[-1] if stack else ("", "")
        if kind in _SETTINGS:
            yield from _search_yaml(piece, keys, chart=kind in ("chart", "table"))
        else:
            condition = head if kind == "claim" else None
            yield from _search(
                piece,
                in_claim=kind == "claim",
                condition=condition,
                keys=keys,
                own=own,
                guesses=kind == "predict",
            )

    for fenced in fences.lines(source.text):
        line = fenced.text
        block = None if fenced.part else _DIRECTIVE.match(line.rstrip("\n"))
        if block:
            yield from flush(place)
            kind, head = block["kind"], block["head"] or ""
            if kind is None:
                if stack:
                    stack.pop()
            elif kind in ("otherwise", "reveal", "answer") and stack:
                if stack[-1][0] != "when":  # what a machine had holds no speed up, in either of its texts
                    stack[-1] = (kind, stack[-1][1])
            else:
                within_claim = kind == "callout" and stack and stack[-1][0] in ("claim", "otherwise")
                stack.append(stack[-1] if within_claim else (kind, head))
                if kind in _SPOKEN_HEADS:
                    spoken = place + block.start("head") if head else place
                    yield from _search(source.slice(spoken, place + len(line)), keys=keys, own=own)
            start = place + len(line)
        place += len(line)
    yield from flush(place)


def _search_yaml(source: Text, keys: Collection[str] | None, *, chart: bool = False) -> Iterator[Place]:
    """Yield every string of some YAML; in a chart or table, also a `value` that is a bare number."""
    try:
        root = yaml.compose(source.text)
    except yaml.YAMLError:
        yield from _search(source, keys=keys)  # whoever reads it as YAML says what is wrong with it
        return

    def walk(node: yaml.Node | None, name: str) -> Iterator[Place]:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                yield from walk(value, str(key.value))
        elif isinstance(node, yaml.SequenceNode):
            for item in node.value:
                yield from walk(item, name)
        elif isinstance(node, yaml.ScalarNode):
            start, end = node.start_mark.index, node.end_mark.index
            if node.tag == "tag:yaml.org,2002:str":
                for _, excerpt, why in _search(Text.of(str(node.value)), keys=keys):
                    first = source.text.find(excerpt.split()[0], start, end)
                    yield source.at[max(first, start)], excerpt, why
            elif chart and name == "value" and float(node.value) not in (0, 1, 100):
                yield (
                    source.at[start],
                    str(node.value),
                    "a number in a chart must name recorded data or the data sheet",
                )

    yield from walk(root, "")


_CELL = re.compile(r"^# %%(?P<rest>.*)$", re.MULTILINE)
_HEAD = re.compile(r"---\n(.*?\n)---\n", re.DOTALL)
_COMMENT_MARK = re.compile(r"^#[ ]?", re.MULTILINE)


def lint_markdown(text: str, *, keys: Collection[str] | None = None) -> list[Finding]:
    """Typed numbers of a Markdown page or a prose cell: YAML head (if any), prose and directives."""
    source = Text.of(text)
    head = _HEAD.match(text)
    places = [*_search_yaml(source.slice(*head.span(1)), keys)] if head else []
    return _findings(
        text, [*places, *_search_markdown(source.slice(head.end() if head else 0, len(text)), keys)]
    )


def lint_page(text: str, *, keys: Collection[str] | None = None) -> list[Finding]:
    """Typed numbers of a page in py:percent: YAML head, prose cells, and all strings and comments of its code."""
    source = Text.of(text)
    marks = list(_CELL.finditer(text))
    places: list[Place] = []
    top = source.slice(0, marks[0].start() if marks else len(text)).sub(_COMMENT_MARK, "")
    head = _HEAD.search(top.text)
    if head:
        places += _search_yaml(top.slice(*head.span(1)), keys)
    code = [] if marks else [(0, len(text))]
    for mark, end in zip(marks, [*(mark.start() for mark in marks[1:]), len(text)], strict=False):
        cell = source.slice(min(mark.end() + 1, end), end)
        if "[markdown]" in mark["rest"] or "[md]" in mark["rest"]:
            quoted = re.match(r'\s*r?"""(.*?)"""\s*$', cell.text, re.DOTALL)
            prose = cell.slice(*quoted.span(1)) if quoted else cell.sub(_COMMENT_MARK, "")
            places += _search_markdown(prose, keys)
        else:
            code.append((mark.start(), end))
    starts = _line_starts(text)
    for start, end in code:
        line = text.count("\n", 0, start)
        for found in lint_python(text[start:end], strings=True, keys=keys):
            places.append((starts[line + found.line - 1] + found.column - 1, found.excerpt, found.why))
    return _findings(text, places)


def lint_python(source: str, *, strings: bool = False, keys: Collection[str] | None = None) -> list[Finding]:
    """Typed numbers in the docstrings and comments of Python; with `strings`, in every other string too."""
    return list(_lint_python(source, strings, None if keys is None else frozenset(keys)))


@functools.lru_cache(maxsize=2048)  # a served site asks for the same cells after every edit
def _lint_python(source: str, strings: bool, keys: frozenset[str] | None) -> list[Finding]:
    commented = re.sub(r"(?m)^([ \t]*)([%!])", r"\1#\2", source)  # notebook magics are no Python
    try:
        tree = ast.parse(commented)
    except SyntaxError as error:
        return [Finding(error.lineno or 1, 1, "", f"cannot be read as Python: {error}")]
    found: list[Finding] = []

    def look(text: str, line: int, column: int) -> None:
        for hit in _findings(text, _search(Text.of(text), keys=keys, ranks=strings)):
            found.append(
                Finding(line + hit.line - 1, hit.column if hit.line > 1 else column, hit.excerpt, hit.why)
            )

    docstrings, parts = set(), set()  # what is no string of its own: a docstring is looked at anyway
    for node in ast.walk(tree) if strings else _documented(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            if isinstance(node.body[0], ast.Expr):
                docstrings.add(id(node.body[0].value))
        elif isinstance(node, ast.JoinedStr):
            parts |= {id(part) for part in ast.walk(node) if not isinstance(part, ast.JoinedStr)}
        wanted = id(node) in docstrings or (strings and id(node) not in parts)
        if isinstance(node, ast.JoinedStr) and strings:
            words = (str(part.value) if isinstance(part, ast.Constant) else HELD for part in node.values)
            look("".join(words), node.lineno, node.col_offset + 1)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and wanted:
            look(node.value, node.lineno, node.col_offset + 1)

    return sorted(found + _findings(source, _search_comments(source, comments_of(commented), "#:", keys)))


def _documented(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all that can have a docstring, each followed by what stands where its docstring would."""
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
            if node.body and isinstance(node.body[0], ast.Expr):
                yield node.body[0].value
        todo += [one for one in ast.iter_child_nodes(node) if not isinstance(one, ast.expr)]


_STRING_OR_COMMENT = re.compile(
    r"#(?P<comment>[^\n]*)"
    r"|\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'",
    re.DOTALL,
)


def comments_of(source: str) -> list[tuple[int, int, str]]:
    """Return the comments of some Python that parses: line from 1, column from 0, and text with its mark."""
    starts = _line_starts(source)
    found = []
    for match in _STRING_OR_COMMENT.finditer(source):
        if match["comment"] is not None:
            line = bisect.bisect_right(starts, match.start())
            found.append((line, match.start() - starts[line - 1], match[0]))
    return found


def _search_comments(
    source: str, comments: Iterable[tuple[int, int, str]], marks: str, keys: Collection[str] | None
) -> Iterator[Place]:
    """Comments, each with its line and column, without their marks.

    Those on lines of their own, one under the other, are read as one text; one behind code stands alone.
    """
    starts = _line_starts(source)
    text, expected = "", None
    at: list[int] = []
    for line, column, comment in comments:
        own_line = not source[starts[line - 1] : starts[line - 1] + column].strip()
        if text and not (own_line and expected == (line, column)):
            yield from _search(Text(text, tuple(at)), keys=keys, ranks=False)
            text, at = "", []
        words = comment.lstrip(marks)
        first = starts[line - 1] + column + len(comment) - len(words)
        text += words + "\n"
        at += range(first, first + len(words) + 1)
        expected = (line + 1, column) if own_line else None
    yield from _search(Text(text, tuple(at)), keys=keys, ranks=False)


_CUDA = re.compile(
    r"//(?:\\\n|[^\n])*|/\*.*?\*/|R\"(\w*)\(.*?\)\1\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL
)


def lint_cuda(source: str, *, keys: Collection[str] | None = None) -> list[Finding]:
    """Typed numbers in the comments of CUDA C++."""
    text = Text.of(source)
    places: list[Place] = []
    line_comments: list[tuple[int, int, str]] = []
    starts = _line_starts(source)
    for match in _CUDA.finditer(source):
        if match[0].startswith("/*"):
            body = text.slice(match.start() + 2, match.end() - 2).sub(
                re.compile(r"^[ \t]*\*+", re.MULTILINE), ""
            )
            places += _search(body, keys=keys, ranks=False)
        elif match[0].startswith("//"):
            line = bisect.bisect_right(starts, match.start())
            line_comments.append((line, match.start() - starts[line - 1], match[0]))
    return _findings(source, [*places, *_search_comments(source, line_comments, "/!<", keys)])


_TOML = re.compile(r'"""(.*?)"""|\'\'\'(.*?)\'\'\'|"((?:\\.|[^"\\\n])*)"|\'([^\'\n]*)\'|#([^\n]*)', re.DOTALL)


def lint_toml(text: str, *, keys: Collection[str] | None = None) -> list[Finding]:
    """Typed numbers in the strings and comments of TOML."""
    source = Text.of(text)
    places: list[Place] = []
    for match in _TOML.finditer(text):
        group = next(i for i in range(1, 6) if match[i] is not None)
        piece = source.slice(*match.span(group)).sub(
            re.compile(r"\\u([0-9a-fA-F]{4})"), lambda code: chr(int(code[1], 16))
        )
        places += _search(piece, keys=keys)
    return _findings(text, places)


def lint_svg(text: str) -> list[Finding]:
    """Typed numbers in the words of an SVG figure: what it draws as text, its title and its description."""
    source = Text.of(text).sub(
        re.compile(r"<style.*?</style>|<defs.*?</defs>|<\?.*?\?>|<!DOCTYPE[^>]*>", re.DOTALL), "\n\n"
    )
    return _findings(text, _search(source, code=False))


_NAMED = re.compile(
    r"\b(?:[a-z_]*(?:tflops|gflops|gb_per_s|tb_per_s|of_peak|of_bandwidth|of_compute|speed_?up)|(?:\w+_)?(?:us|ms|ns))['\"]?\s*[:=]\s*(?:\w+\()?\d[\d.e+-]*"
)
_BARE_SHARE = re.compile(r"[\d.,]+\s*(?:%|ticks|cycles|clocks|times)")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def lint_output(text: str) -> list[Finding]:
    """Find performance numbers in what a cell printed: every line for itself, and no citation excuses one.

    A header with a unit over a column of numbers, and `tflops=…` as a repr prints it, count too.
    """
    source = Text.of(text).sub(_ANSI, "")
    places: list[Place] = []
    unit = ""
    place = 0
    why = "a cell prints a performance number; record it and let the page show it"
    for line in source.text.splitlines(keepends=True):
        piece = source.slice(place, place + len(line))
        shown, codes, _ = plain(piece, BARE)
        hits = [
            (words.at[at], excerpt)
            for words in (shown, *codes)
            for at, excerpt, _ in in_sentence(words.text, in_claim=False, condition=None)
            # A share that a cell worked out need not be one of speed, as a share in prose is taken to be.
            if speaks_of_speed(words.text) or not _BARE_SHARE.fullmatch(excerpt)
        ]
        hits += [(piece.at[match.start()], match[0]) for match in _NAMED.finditer(piece.text)]
        if not line.strip():
            unit = ""
        elif not hits and unit and re.search(r"(?<![\w.])\d+\.\d+|(?:\s{2,}|[|\t]\s*)\d+", line):
            hits.append((piece.at[0], f"{line.strip()} under {unit}"))
        header = HEADER_UNIT.search(line)
        if header and not hits and re.search(r"\S(?:\s{2,}|\s*[\t|])\s*\S", line):
            unit = header[0].strip(" (,[/")
        places += [(at, excerpt, why) for at, excerpt in hits]
        place += len(line)
    return _findings(text, places)


# --- files -------------------------------------------------------------------------------------------

_SKIP = frozenset({"vendor", "node_modules", "__pycache__"})
# Rooms of the site have such names too.
_SKIP_AT_THE_TOP = frozenset({"records", "site", "build", "dist", "tests"})
_LINTS: dict[str, Callable[..., list[Finding]]] = {
    ".py": lint_python,
    ".toml": lint_toml,
    ".svg": lambda text, keys: lint_svg(text),
    **dict.fromkeys((".md", ".markdown"), lint_markdown),
    **dict.fromkeys((".cu", ".cuh", ".h", ".hpp", ".cpp", ".wgsl"), lint_cuda),
    **dict.fromkeys((".yml", ".yaml"), lambda text, keys: _findings(text, _search_yaml(Text.of(text), keys))),
}


def lint_file(path: Path, *, keys: Collection[str] | None = None) -> list[Finding]:
    """Typed numbers of one file, read by its suffix; a kind of file that is not known has none."""
    # Titles of other people's work; and code, pieces of a lab's wrong answers, which no page shows.
    if path.suffix not in _LINTS or path.name in ("bibliography.toml", "wrong.toml"):
        return []
    text = path.read_text(encoding="utf-8")
    in_pages = path.suffix == ".py" and any(part in ("docs", "handbook") for part in path.parts)
    lint = lint_page if in_pages and _CELL.search(text) else _LINTS[path.suffix]
    return lint(text, keys=keys)


def lint_paths(paths: Iterable[Path], *, keys: Collection[str] | None = None) -> list[str]:
    """Return one line for each typed number in the files and folders given: path:line:column: excerpt: why."""
    lines = []
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            inside = file.relative_to(path).parts if path.is_dir() else ()
            skipped = any(part in _SKIP or part.startswith(".") for part in inside)
            if file.is_file() and not skipped and not _SKIP_AT_THE_TOP.intersection(inside[:1]):
                lines += [f"{file}:{finding}" for finding in lint_file(file, keys=keys)]
    return lines


def main(arguments: list[str]) -> int:
    """Lint the files and folders named (default: docs handbook labs src); 1 if any holds a typed number."""
    paths = [*map(Path, arguments)] or [
        p for p in map(Path, ("docs", "handbook", "labs", "src")) if p.exists()
    ]
    missing = [path for path in paths if not path.exists()]
    if missing:
        print(f"lint: no such file or folder: {', '.join(map(str, missing))}", file=sys.stderr)
        return 2
    found = lint_paths(paths)
    print("\n".join(found) if found else "no typed numbers")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
