"""Sheets for the students of a session, read from handbook/handouts/*.toml, with the answer of every blank.

A blank stands in double brackets with its answer in it: `[[18]]`, or `[[= 2 * M :,.0f]]` where it is worked out. The
sheet to fill in and the solved one are made from the same text, so no answer can be missing. `[= …]` in single
brackets is worked out and printed. What an expression may call stands in `_worked_out/<session>.py` beside the file;
`value("l1.ridge")` is a number of a record. `[[*from the screen*; our run: {{ l3.fuse.eager.us:.0f }}]]` says on the
solved sheet what a record has too, and nothing of it where there is no such record. How a sheet looks is in
`printing/handout_pages`.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simpleeval import EvalWithCompoundTypes

from course_site.pages.placeholders import expressions

FOLDER = "handbook/handouts"
WORKED_OUT = "_worked_out"
PRINTED = "handouts"  # the PDFs, in the repository and in the site
Value = Callable[[str], Any]

SHEET_KEYS = frozenset({"title", "for", "kind", "at", "part", "turned", "full", "unsigned", "recorded"})
SHEET_KINDS = ("sheet", "score", "certificate", "mentor")
# How `for` begins, and with it how many copies there are; n is the number of students.
COPIES = {
    "for every student": "n",
    "for every seat": "n",
    "one slip for every student": "n ÷ 2",  # two to a page
    "one for everybody": "n",
    "one for each pair": "n ÷ 2",
    "one for two": "n ÷ 2",
    "for you": "1",
    "one for you": "1",
    "one for the wall": "1",
    "for the wall": "1",
    "for anyone who is behind": "a few",
    "for everybody, one for each talk and one more": "n × (talks + 1)",
}
BACK = "the back of"
ANY_PART = frozenset({"kind", "title", "beside", "width"})
# The parts of a sheet, each with its keys.
PARTS: dict[str, frozenset[str]] = {
    "text": frozenset({"text"}),
    "table": frozenset({"columns", "rows", "each", "row", "widths", "height"}),
    "questions": frozenset({"questions", "first"}),
    "squares": frozenset({"cells", "size", "across", "down"}),
    "cut": frozenset(),
    "cards": frozenset({"cards", "across", "height", "laid"}),
    "drawing": frozenset({"height", "answer", "given", "squared"}),
    "axes": frozenset({"x", "y", "height", "lines", "points", "x_title", "y_title", "plain_x"}),
    "ruler": frozenset({"from", "to", "marks", "answers"}),
    "code": frozenset({"text", "size"}),
    "listing": frozenset({"file", "names", "holds", "called", "marks", "later", "record", "size", "lines"}),
}
CUT = ("cut", "cards")  # parts with scissors
_CALCULATES = {
    "round": round,
    "min": min,
    "max": max,
    "sum": sum,
    "len": len,
    "abs": abs,
    "str": str,
    "range": range,
}
_WORKED = re.compile(
    r"(?<!\[)\[=(?P<given>[^\]]+)\](?!\])|\[\[(?P<blank>=?)(?P<answer>.*?)\]\](?!\])", re.DOTALL
)
_NAME = re.compile(r"[A-Za-z_]\w*")
_RUN = "; our run: "  # in a blank: what follows is of a record
_FORMAT = re.compile(r"^(?P<expression>.*?)\s*:(?P<format>[,.\d]*[fdg%e]|[,.\d]+)?\s*$", re.DOTALL)


class HandoutError(ValueError):
    """A file of handouts that cannot be printed: one line with the file, the place and what to do."""


@dataclass(frozen=True)
class Part:
    """One part of a sheet: its kind, and its content by the keys of `PARTS`."""

    where: str
    kind: str
    data: Mapping[str, Any]


@dataclass(frozen=True)
class Sheet:
    """One page to print.

    Attributes:
        title: what it is called in the room, and in the map's `prepare`, in stars.
        whom: who gets it, in words that begin as one of `COPIES`.
        kind: one of `SHEET_KINDS`, which decides its place in the file.
        at: the title of the map's step in which it is given out; "" where that is at the start.
        turned: it is the back of the sheet before it. Every other sheet begins on a front.
        full: no squares for sums where it ends above the foot of the page.
        unsigned: no line for a name.
        recorded: demos by their names: what they gave, or their floors, stands on its solved twin.
    """

    title: str
    whom: str
    kind: str
    at: str
    turned: bool
    full: bool
    unsigned: bool
    recorded: tuple[str, ...]
    parts: tuple[Part, ...]

    @property
    def is_cut(self) -> bool:
        """True if there is something to cut on it."""
        return any(part.kind in CUT or "✂" in part.data.get("title", "") for part in self.parts)


@dataclass(frozen=True)
class Handouts:
    """All that is printed for the students of one session, and what works its answers out."""

    path: str
    sheets: tuple[Sheet, ...]
    names: Mapping[str, Any]

    def work_out(
        self, expression: str, where: str, value: Value, more: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the value of an expression of the file.

        Args:
            value: gives a number of a record by its name.
            more: further names, such as those of a row of a table.

        Raises:
            HandoutError: it cannot be worked out.
        """
        functions = {name: thing for name, thing in self.names.items() if callable(thing)}
        names = {name: thing for name, thing in self.names.items() if not callable(thing)} | dict(more or {})
        evaluator = EvalWithCompoundTypes(functions=_CALCULATES | functions | {"value": value}, names=names)
        try:
            return evaluator.eval(expression.strip())
        except Exception as error:  # a data file's mistake, whatever it is
            raise HandoutError(
                f"{self.path}: {where}: cannot work out {expression.strip()!r}: {error}"
            ) from None


def read_handouts(root: Path, session_id: str) -> Handouts | None:
    """Return the handouts of a session; None where there is no file.

    Raises:
        HandoutError: the file is not TOML, or says something that cannot be printed.
    """
    path = root / FOLDER / f"{session_id}.toml"
    if not path.exists():
        return None
    name = path.relative_to(root).as_posix()
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise HandoutError(f"{name}: cannot be read as TOML: {str(error).splitlines()[0]}") from None
    if set(data) != {"sheet"} or not isinstance(data["sheet"], list):
        raise HandoutError(f"{name}: holds [[sheet]] and nothing else, not {', '.join(sorted(data))}")
    sheets = tuple(_sheet(table, f"sheet {i}", name) for i, table in enumerate(data["sheet"], 1))
    for i, (front, back) in enumerate(itertools.pairwise((None, *sheets)), 1):
        if back and back.turned and (not front or front.turned or front.kind != back.kind):
            raise HandoutError(
                f"{name}: sheet {i}: turned: there is no front before it whose back it could be"
            )
    return Handouts(name, sheets, worked_out(root, session_id))


def recorded_on(handouts: Handouts | None) -> dict[str, str]:
    """Return the sheet whose solved twin shows the numbers of a demo, by the demo's name."""
    return {demo: sheet.title for sheet in (handouts.sheets if handouts else ()) for demo in sheet.recorded}


def worked_out(root: Path, name: str) -> Mapping[str, Any]:
    """Return the names that the module of a session, or of a page, defines; none without a module."""
    path = root / FOLDER / WORKED_OUT / f"{name}.py"
    return _names_of(path, path.stat().st_mtime_ns) if path.exists() else {}


@functools.lru_cache(maxsize=128)
def _names_of(path: Path, changed: int) -> Mapping[str, Any]:
    """Return what a module defines, as it was changed last."""
    spec = importlib.util.spec_from_file_location(f"handouts_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: thing for name, thing in vars(module).items() if not name.startswith("_")}


def _sheet(table: Any, where: str, path: str) -> Sheet:
    def wrong(message: str) -> HandoutError:
        return HandoutError(f"{path}: {where}: {message}")

    if not isinstance(table, dict):
        raise wrong("is not a table: write [[sheet]]")
    if unknown := sorted(set(table) - SHEET_KEYS):
        raise wrong(f"unknown key {', '.join(unknown)}; known: {', '.join(sorted(SHEET_KEYS))}")
    for key in ("title", "for"):
        if not isinstance(table.get(key), str) or not table[key].strip():
            raise wrong(f"{key} is missing: write what the sheet is called and whom it is for")
    kind = table.get("kind", "sheet")
    if kind not in SHEET_KINDS:
        raise wrong(f"kind {kind!r} is unknown; known: {', '.join(SHEET_KINDS)}")
    parts = tuple(_part(part, f"{where}, part {i}", path) for i, part in enumerate(table.get("part", []), 1))
    if not parts:
        raise wrong("has no parts: write [[sheet.part]]")
    turned, full, unsigned = (bool(table.get(key)) for key in ("turned", "full", "unsigned"))
    if turned != table["for"].startswith(BACK):
        raise wrong(
            f'for and turned: a back has `turned = true` and begins with "{BACK} …", and nothing else has'
        )
    if not turned and not copies_of(table["for"]):
        raise wrong(f"for {table['for']!r} does not say how many: begin with {', '.join(COPIES)}")
    at = table.get("at", "")
    recorded = tuple(table.get("recorded", ()))
    return Sheet(table["title"], table["for"], kind, at, turned, full, unsigned, recorded, parts)


def copies_of(whom: str) -> str:
    """Return the number of copies of a sheet for somebody, such as "n ÷ 2"; "" where it is not said."""
    begins = [words for words in COPIES if re.match(rf"{re.escape(words)}\b", whom)]
    return COPIES[max(begins, key=len)] if begins else ""


def counted(copies: str, students: int) -> str:
    """Return the number of copies for so many students; as it was if the number of talks decides."""
    if not students or "talks" in copies:
        return re.sub(r"^n", str(students or "n"), copies)
    left, _, shared = copies.partition(" ÷ ")
    return str(-(-students // int(shared or 1))) if left == "n" else copies


def _part(table: Any, where: str, path: str) -> Part:
    kind = table.get("kind", "") if isinstance(table, dict) else ""
    if kind not in PARTS:
        raise HandoutError(f"{path}: {where}: kind {kind!r} is unknown; known: {', '.join(sorted(PARTS))}")
    if unknown := sorted(set(table) - PARTS[kind] - ANY_PART):
        known = ", ".join(sorted(PARTS[kind] | ANY_PART))
        raise HandoutError(f"{path}: {where}: unknown key {', '.join(unknown)} of a {kind}; known: {known}")
    return Part(where, kind, table)


@dataclass(frozen=True)
class Piece:
    """A stretch of a text: words that are printed, or the answer of a blank, and what our run gave there."""

    text: str
    is_blank: bool
    ran: str = ""


def pieces(
    text: str, handouts: Handouts, where: str, value: Value, more: Mapping[str, Any] | None = None
) -> Iterator[Piece]:
    """Yield a text cut at its blanks, everything in it worked out."""
    rest = _WORKED.sub("", text)
    if "[=" in rest or "[[" in rest or "]]" in rest:
        raise HandoutError(
            f"{handouts.path}: {where}: a bracket is not closed as it was opened: {text.strip()!r}"
        )
    place = 0
    for match in _WORKED.finditer(text):
        if match.start() > place:
            yield Piece(text[place : match.start()], False)
        place = match.end()
        if match["given"] is not None:
            yield Piece(_formatted(match["given"], handouts, where, value, more), False)
        elif match["blank"]:
            yield Piece(_formatted(match["answer"], handouts, where, value, more), True)
        else:
            answer, _, ran = match["answer"].partition(_RUN)
            yield Piece(answer.strip(), True, ran.strip())
    if place < len(text):
        yield Piece(text[place:], False)


def _formatted(
    source: str, handouts: Handouts, where: str, value: Value, more: Mapping[str, Any] | None
) -> str:
    match = _FORMAT.match(source)
    expression, form = (match["expression"], match["format"] or "") if match else (source, "")
    found = handouts.work_out(expression, where, value, more)
    return format(found, form) if form else str(found)


def typed_blanks(sheet: Sheet, handouts: Handouts) -> Iterator[str]:
    """Yield the answers in a sheet's blanks that use no name: typed, or reckoned from typed numbers alone."""
    for part in sheet.parts:
        for text in _strings(part.data):
            for match in _WORKED.finditer(text):
                if match["given"] is not None:
                    continue
                if not match["blank"]:
                    yield match["answer"].partition(_RUN)[0]
                elif not _NAME.search(_FORMAT.sub(r"\g<expression>", match["answer"])):
                    yield _formatted(match["answer"], handouts, part.where, _no_value, None)
        for question in part.data.get("questions", ()):
            yield question["answer"]


def _no_value(name: str) -> Any:
    raise KeyError(name)


def blanks(handouts: Handouts, value: Value) -> Iterator[tuple[str, str]]:
    """Yield every blank's place and answer, for whoever wants to check them."""
    for sheet in handouts.sheets:
        for part in sheet.parts:
            for text, more in texts(part, handouts, value):
                for piece in pieces(text, handouts, part.where, value, more):
                    if piece.is_blank:
                        yield f"{sheet.title}: {part.where}", piece.text


def texts(part: Part, handouts: Handouts, value: Value) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every text of a part that may hold a blank, with the names that it may use."""
    data = part.data
    if part.kind in ("text", "code"):
        yield data["text"], {}
    elif part.kind == "table":
        for cells, more in table_rows(part, handouts, value):
            yield from ((cell, more) for cell in cells)
    elif part.kind == "questions":
        for question in data["questions"]:
            yield question["ask"], {}
            yield f"[[{question['answer']}]]", {}


def asked(part: Part) -> list[str]:
    """Return the numbers of records that a part asks for, by their expressions."""
    text = " ".join(_strings(part.data))
    return [*re.findall(r"""\bvalue\(\s*["']([\w.]+)["']\s*\)""", text), *expressions(text)]


def rows_beside(part: Part) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the rows that are written out in a table, each with the table's heads; numbers of records in braces."""
    for row in part.data.get("rows", ()) if part.kind == "table" else ():
        cells = [re.sub(r"""\bvalue\(\s*["']([\w.]+)["']\s*\)""", r"{{ \1 }}", str(cell)) for cell in row]
        yield [str(head) for head in part.data.get("columns", ())], cells


def _strings(data: Any) -> Iterator[str]:
    """Yield every string in some data, keys left out."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        for below in data.values():
            yield from _strings(below)
    elif isinstance(data, (list, tuple)):
        for below in data:
            yield from _strings(below)


def table_rows(part: Part, handouts: Handouts, value: Value) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """Yield the rows of a table with the names that their cells may use.

    There is one for each of `each`; those written out follow.
    """
    each = part.data.get("each", {})
    lists = {
        name: handouts.work_out(items[1:], part.where, value) if isinstance(items, str) else items
        for name, items in each.items()
    }
    for items in zip(*lists.values(), strict=True):
        yield list(part.data["row"]), dict(zip(lists, items, strict=True))
    for row in part.data.get("rows", ()):
        yield list(row), {}
