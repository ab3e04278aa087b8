"""Predictions that the page answers before its reader has guessed.

The answer is the first value of the reveal. It must not stand above the prediction, nor within sight below it: no
value, no table, no chart, no printed line of a cell. It may stand in the reveal, with its table and its chart. And no
heading tells how a comparison ends, because all headings of a page stand beside its first line.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from course_site.pages import blocks, folded_cells
from course_site.pages.blocks import Block, DirectiveError
from course_site.pages.headings import BEYOND, headings
from course_site.pages.page import Page
from course_site.pages.placeholders import PLACEHOLDER
from course_site.values.values import ExpressionError, Scope, evaluate, format_value, parse

# How high things stand, in lines of prose. What begins a screen below a prediction is out of sight while it is made.
SCREEN = 22
GLANCE = 6  # prose is seen only right below; a table or a chart from afar
WORDS_OF_A_LINE = 12
_CODE = 0.7  # a line of it
_PICTURE = 16

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.\w+)*(?:\.\*)?")
_OUTCOME = re.compile(
    r"\b(?:times|twice|half|thirds?|quarters?|tenths?|per ?cent)\s+"
    r"(?:as|of|the|slower|faster|quicker|more|less)\b"
    r"|\b(?:not|never|no)\s+(?:faster|quicker|slower|better|worse)\b|\d\s*(?:×|%|times)"
    r"|\b(?:two|three|four|five|six|seven|eight|nine|ten|twenty|hundred)\s+times\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r'"[^"]*"')  # what others say is no outcome of ours
_SHOWN = frozenset({"chart", "explorable", "table"})
_SILENT = frozenset({"define"})


@dataclass
class _Sight:
    """Something on a page, from its head to its end."""

    shows: frozenset[str] = frozenset()
    lines: float = 0.0
    prints: str = ""
    asked: Asked | None = None
    is_prose: bool = True
    fold: int = 0  # the section beyond the core that it stands in; 0 for none


@dataclass
class Asked:
    """A prediction: the measured things in its question, in its answer, and in all that it reveals."""

    question: str
    given: frozenset[str]
    answer: frozenset[str]
    reveals: frozenset[str]
    numbers: frozenset[str]  # the answer as it is printed


@dataclass
class Reader:
    """Values of a scope that a page shows, in the order of reading."""

    scope: Scope
    sights: list[_Sight] = field(default_factory=list)
    fold: int = 0
    _level: int = 0  # of the heading whose section is folded
    _folds: int = 0

    def see(self, sight: _Sight) -> None:
        """Note what comes next."""
        self.sights.append(replace(sight, fold=self.fold))

    def heading(self, line: str) -> None:
        """Note which section begins here."""
        level = len(line) - len(line.lstrip("#"))
        if level <= self._level or not self._level:
            self._level = level if BEYOND.search(line) else 0
            self._folds += bool(self._level)
            self.fold = self._folds if self._level else 0

    def read(self, nodes: Sequence[str | Block]) -> None:
        """Note what some prose and blocks show."""
        for node in nodes:
            if isinstance(node, str):
                for paragraph in re.split(r"\n\s*\n", node.strip("\n")):
                    if paragraph.startswith("#"):
                        self.heading(paragraph.partition("\n")[0])
                    lines = len(paragraph.split()) / WORDS_OF_A_LINE
                    self.see(_Sight(self.values(paragraph), lines))
            elif node.kind == "predict":
                asked = self.asked(node)
                self.see(_Sight(asked.given | asked.reveals, 0, asked=asked))
            elif node.kind in _SHOWN:
                self.see(_Sight(self.all_of([node]), _PICTURE, is_prose=False))
            elif node.kind not in _SILENT:
                self.see(_Sight(lines=0 if node.body or node.parts else _PICTURE))
                self.read([node.argument] if node.kind == "exercise" else [])
                self.read(node.body)
                for part in node.parts.values():
                    self.read(part)

    def asked(self, block: Block) -> Asked:
        """Return what a prediction gives away, and what it asks for."""
        reveal = block.parts["reveal"]
        answer, printed = self.first(reveal)
        given = self.values(block.argument) | self.all_of(block.body)
        return Asked(block.argument, given, answer, self.all_of(reveal), printed)

    def all_of(self, nodes: Sequence[str | Block]) -> frozenset[str]:
        """Return what some prose and blocks show."""
        found: set[str] = set()
        for node in nodes:
            if isinstance(node, str):
                found |= self.values(node)
            elif node.kind in _SHOWN:
                found |= self.values(node.text)
                for name in _NAME.findall(PLACEHOLDER.sub(" ", node.text)):
                    found |= self.leaves(name)
            elif node.kind not in _SILENT:
                found |= self.values(node.argument if node.kind in ("predict", "exercise") else "")
                found |= self.all_of([*node.body, *(n for part in node.parts.values() for n in part)])
        return frozenset(found)

    def first(self, nodes: Sequence[str | Block]) -> tuple[frozenset[str], frozenset[str]]:
        """Return what the first value of a reveal rests on, and the numbers that it shows."""
        for node in nodes:
            if isinstance(node, str):
                match = PLACEHOLDER.search(node)
                if match:
                    return self.of_expression(match["expression"]), self._printed(match)
            elif node.kind not in _SILENT:
                found, printed = self.first(node.body)
                if found:
                    return found, printed
        return frozenset(), frozenset()

    def _printed(self, match: re.Match[str]) -> frozenset[str]:
        with contextlib.suppress(ExpressionError):
            value = evaluate(match["expression"], self.scope).value
            return frozenset(_NUMBER.findall(format_value(value, (match["format"] or "").strip())))
        return frozenset()

    def values(self, text: str) -> frozenset[str]:
        """Return the measured things whose values stand in some prose."""
        parts = (self.of_expression(match["expression"]) for match in PLACEHOLDER.finditer(text))
        return frozenset().union(*parts)

    def of_expression(self, expression: str) -> frozenset[str]:
        """Return the measured things that an expression rests on; none where it cannot be read."""
        with contextlib.suppress(ExpressionError):
            return frozenset().union(*(self.leaves(name) for name in parse(expression).names))
        return frozenset()

    def leaves(self, name: str, page: str = "", within: tuple[str, ...] = ()) -> frozenset[str]:
        """Return the recorded things behind a name, none behind one that is defined by itself.

        A kernel's time or speed gives the kernel, a ratio both of its sides.

        Args:
            within: the definitions, each with its page, that this one is a part of.
        """
        scope = self.scope if not page else self.scope.others(page)
        place = f"{page}.{name}"
        if scope is None or place in within:
            return frozenset()
        if name in scope.defines:
            parts = parse(scope.defines[name].expression).names
            return frozenset().union(*(self.leaves(part, page, (*within, place)) for part in parts))
        names: Any = scope.names
        path: list[str] = []
        for part in name.split("."):
            if part == "*" and isinstance(names, dict):
                return frozenset().union(
                    *(self.leaves(".".join([*path, key]), page) for key in names if "kind" not in names)
                )
            if not isinstance(names, dict) or part not in names:
                break
            names = names[part]
            path.append(part)
            if isinstance(names, dict) and "kind" in names:
                return frozenset({".".join(filter(None, [page, *path]))})
        first, _, rest = name.partition(".")
        if not page and not path and rest and self.scope.others(first) is not None:
            return self.leaves(rest, first)
        return frozenset()


def expressions(text: str) -> frozenset[str]:
    """Return what stands between the braces of some prose."""
    return frozenset(match["expression"] for match in PLACEHOLDER.finditer(text))


def faults(page: Page, scope: Scope, outputs: Sequence[Sequence[dict[str, Any]]]) -> Iterator[str]:
    """Yield what spoils a prediction of a page, one line each.

    Args:
        outputs: of every code cell, as recorded.
    """
    reader, folded = Reader(scope), folded_cells.folded(page)
    left = iter(outputs)
    for cell in page.cells:
        if cell.kind == "code":
            is_folded = cell in folded or "hide" in cell.tags
            shown = 1 + (0 if is_folded else _CODE * len(cell.source.splitlines()))
            printed, recorded = of_cell(next(left, []))
            leaves = frozenset().union(*(reader.leaves(name) for name in recorded))
            reader.see(_Sight(leaves if printed else frozenset(), shown, prints=printed))
        else:
            with contextlib.suppress(DirectiveError):  # told where the page is rendered
                reader.read(blocks.parse(cell.source))
    asked = [(number, sight.asked) for number, sight in enumerate(reader.sights) if sight.asked]
    for number, question in asked:
        yield from _above(reader.sights[:number], question)
        yield from _below(reader.sights[number + 1 :], question, reader.sights[number].fold)
    if asked:
        for words in headings(page).values():
            if found := _OUTCOME.search(_QUOTED.sub(" ", words)):
                yield (
                    f"the heading {words!r} tells an outcome ({found[0]!r}), and headings stand beside every "
                    "prediction of their page: let it ask"
                )


def of_cell(outputs: Sequence[dict[str, Any]]) -> tuple[str, list[str]]:
    """Return the first line with numbers that a cell printed, and the names that it recorded."""
    printed, names = "", []
    for output in outputs:
        if output.get("output_type") == "stream":
            text = "".join(output["text"])
            printed = printed or (text.strip().splitlines() or [""])[0] if re.search(r"\d", text) else printed
        for kind, data in output.get("data", {}).items():
            if kind.endswith("+json"):
                names += [str(name) for name in _leaf_names(data.get("names", {}))]
    return printed, names


def _leaf_names(node: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, below in node.items():
        if isinstance(below, dict) and "kind" in below:
            yield f"{prefix}{key}"
        elif isinstance(below, dict):
            yield from _leaf_names(below, f"{prefix}{key}.")


def _above(sights: Sequence[_Sight], asked: Asked) -> Iterator[str]:
    new = asked.answer - asked.given
    if not asked.answer:
        return
    if not new:
        yield f"prediction {asked.question!r}: its question shows the answer, {_list(asked.answer)}"
        return
    seen = [sight.shows for sight in sights if not sight.prints or asked.numbers <= numbers_in(sight.prints)]
    if new <= frozenset().union(*seen):
        printed = next((sight.prints for sight in sights if sight.prints and new & sight.shows), "")
        where = f"a cell above prints it ({printed[:40]!r})" if printed else "it stands above"
        yield (
            f"prediction {asked.question!r}: {where}, {_list(new)}: move one of the two, or ask for something that is "
            "not said yet; the first value of a reveal is its answer"
        )


def numbers_in(text: str) -> frozenset[str]:
    """Return the numbers of some text, as they are printed."""
    return frozenset(_NUMBER.findall(text))


def _below(sights: Sequence[_Sight], asked: Asked, fold: int) -> Iterator[str]:
    lines, new = 0.0, asked.answer - asked.given
    for sight in sights:
        if sight.fold not in (0, fold):
            continue  # folded away while the question is asked
        near = lines < (GLANCE if sight.is_prose else SCREEN)
        if near and new and new <= sight.shows and not sight.prints:
            yield (
                f"prediction {asked.question!r}: {_list(new)} is in sight below it: move what shows it into the "
                "reveal, or a screen away"
            )
            return
        lines += sight.lines
        if lines >= SCREEN:
            return


def _list(names: frozenset[str]) -> str:
    return ", ".join(sorted(names)[:3])
