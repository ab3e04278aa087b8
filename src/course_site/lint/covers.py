"""Covers over what answers a prediction further down its page, until the prediction is made.

`predictions` keeps the answer out of sight right below a question. A reader who reads on without having guessed still
comes to it: a chart, a table, a paragraph, or what a cell printed. All of these up to the next heading, and those of
the next screens behind it, are put into blocks of the kind `cover`, which name the predictions that they wait for.
What shows the first value of the reveal answers, and so does what shows all that decides which choice is right, and a
chart of every kernel that there is.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from course_site.lint.predictions import SCREEN, WORDS_OF_A_LINE, Reader, numbers_in, of_cell
from course_site.pages import fences
from course_site.pages.blocks import Block, DirectiveError, walk_blocks
from course_site.pages.choices import name_of, taken_apart
from course_site.pages.page import Cell
from course_site.values.values import Scope

# How far behind the end of its section a prediction still waits, in lines of prose as `predictions` counts them.
REACH = 3 * SCREEN

_GOES_ON = re.compile(
    r"[ \t]|(?:[-*+]|\d{1,3}[.)])\s|\{:"
)  # a list, and what belongs to what stands above it
_PICTURE = 16
_CHARTS_OF_ALL = frozenset({"roofline", "shares"})  # of `/// kernels`

Tree = list[str | Block]


@dataclass(frozen=True)
class _Question:
    """A prediction; every one of `answers` is enough to know it by."""

    name: str
    answers: tuple[frozenset[str], ...]
    numbers: frozenset[str]  # the first value of the reveal, as it is printed

    def is_answered(self, shown: frozenset[str]) -> bool:
        return any(answer <= shown for answer in self.answers)


@dataclass
class _Piece:
    """A paragraph, a block, or what a cell printed."""

    node: str | Block | None  # None is what a cell printed
    shows: frozenset[str]
    lines: float
    fold: int
    heading: bool = False
    shows_all: bool = False
    printed: frozenset[str] = frozenset()
    asks: list[_Question] = field(default_factory=list)
    waits_for: list[str] = field(default_factory=list)


def cover(
    cells: Sequence[Tree | Cell], scope: Scope, outputs: Sequence[Sequence[dict[str, Any]]]
) -> tuple[list[Tree | Cell], dict[int, str]]:
    """Return the cells of a page with what answers their predictions in `cover` blocks.

    Args:
        cells: of prose as parsed, of code as they are.
        outputs: of every code cell, as recorded.

    Returns:
        the cells; and of every code cell whose output is covered its number, with the names of the predictions.
    """
    reader = Reader(scope)
    left = iter(outputs)
    pieces: list[list[_Piece]] = []
    for cell in cells:
        pieces.append(
            list(_of_prose(reader, cell)) if isinstance(cell, list) else [_of_code(reader, next(left, ()))]
        )
    _wait([piece for of_cell in pieces for piece in of_cell])
    covered: list[Tree | Cell] = []
    printed: dict[int, str] = {}
    for number, (cell, its) in enumerate(zip(cells, pieces, strict=True)):
        if isinstance(cell, list):
            covered.append(list(_wrapped(its)) if any(piece.waits_for for piece in its) else cell)
        else:
            covered.append(cell)
            if its[0].waits_for:
                printed[number] = " ".join(its[0].waits_for)
    return covered, printed


def _of_prose(reader: Reader, nodes: Tree) -> Iterator[_Piece]:
    for node in nodes:
        if isinstance(node, str):
            for paragraph in paragraphs(node):
                is_heading = paragraph.startswith("#")
                if is_heading:
                    reader.heading(paragraph.partition("\n")[0])
                lines = len(paragraph.split()) / WORDS_OF_A_LINE
                yield _Piece(paragraph, reader.values(paragraph), lines, reader.fold, is_heading)
            continue
        asks = []
        for block in walk_blocks([node]):
            if block.kind == "predict":
                with contextlib.suppress(DirectiveError):  # told where the page is rendered
                    asks.append(_question(reader, block))
        open_parts = node.body if node.kind in ("predict", "exercise") else [node]
        shows = reader.values(node.argument) if node.kind in ("predict", "exercise") else frozenset()
        if node.kind == "claim":  # its words say how the comparison ends
            shows = reader.of_expression(node.argument)
        lines = sum(len(text.split()) for text in open_parts if isinstance(text, str)) / WORDS_OF_A_LINE
        shows_all = node.kind == "kernels" and node.argument in _CHARTS_OF_ALL
        shows |= reader.all_of(open_parts)
        yield _Piece(node, shows, lines or _PICTURE, reader.fold, shows_all=shows_all, asks=asks)


def _question(reader: Reader, block: Block) -> _Question:
    asked = reader.asked(block)
    decides = (reader.of_expression(choice.condition) for choice in taken_apart(block)[1] if choice.condition)
    answers = {asked.answer - asked.given, frozenset().union(*decides) - asked.given} - {frozenset()}
    return _Question(name_of(block), tuple(answers), asked.numbers)


def _of_code(reader: Reader, outputs: Sequence[dict[str, Any]]) -> _Piece:
    _, recorded = of_cell(outputs)
    text = "\n".join("".join(o["text"]) for o in outputs if o.get("output_type") == "stream")
    lines = 1 + len(text.splitlines())
    leaves = frozenset().union(*(reader.leaves(name) for name in recorded))
    return _Piece(None, leaves if text.strip() else frozenset(), lines, reader.fold, printed=numbers_in(text))


def _wait(pieces: Sequence[_Piece]) -> None:
    """Note for every piece which predictions it answers."""
    for number, piece in enumerate(pieces):
        for asked in piece.asks:
            lines, past, first = 0.0, False, True
            for below in pieces[number + 1 :]:
                if below.fold not in (0, piece.fold):
                    continue  # folded away while the question is asked
                past = past or below.heading
                if past and lines > REACH:
                    break
                if below.node is None:
                    answers = _prints(below, asked, first and not past)
                    first = first and not below.printed
                else:
                    answers = (below.shows_all or asked.is_answered(below.shows)) and not below.heading
                    first = first and not below.asks
                if answers:
                    below.waits_for.append(asked.name)
                lines += below.lines


def _prints(cell: _Piece, asked: _Question, is_next: bool) -> bool:
    """Return whether a cell prints an answer: the numbers of the reveal.

    Where the reveal has none, whatever the next cell prints is an answer.
    """
    if not cell.printed:
        return False
    if not asked.numbers:
        return is_next
    says_it, recorded = asked.numbers <= cell.printed, asked.is_answered(cell.shows)
    return (says_it or recorded) if is_next else (says_it and recorded)


def _wrapped(pieces: Sequence[_Piece]) -> Iterator[str | Block]:
    """Neighbours that wait for the same are covered together."""
    waiting: list[str] = []
    held: list[str | Block] = []

    def flush() -> Iterator[str | Block]:
        if held and waiting:
            yield Block("cover", " ".join(waiting), list(held))
        else:
            yield from held
        held.clear()

    for piece in pieces:
        if piece.node is None:
            continue
        if piece.waits_for != waiting:
            yield from flush()
            waiting = piece.waits_for
        held.append(f"{piece.node}\n" if isinstance(piece.node, str) else piece.node)
    yield from flush()


def paragraphs(text: str) -> Iterator[str]:
    """Prose in pieces that can stand alone: fenced code, a list and a table are one each."""
    held: list[str] = []
    blank = False
    for line in fences.lines(text):
        if not line.part and not line.text.strip():
            blank = True
        elif blank and held and line.part in ("", "open") and not _GOES_ON.match(line.text):
            yield "".join(held).strip("\n")
            held, blank = [line.text], False
        else:
            held += ["\n"] * blank + [line.text]
            blank = False
    if held:
        yield "".join(held).strip("\n")
