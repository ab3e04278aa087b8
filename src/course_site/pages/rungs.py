"""Rungs of a ladder of languages: which lines of which file say which idea. Read from a TOML file.

Its keys are described at the head of docs/workshops/w3_rungs.toml.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_site.pages.blocks import DirectiveError
from course_site.pages.urls import shown_file

_LINES = re.compile(r"(?P<first>[1-9]\d*)(?:-(?P<last>[1-9]\d*))?")
_NO_IDEA = frozenset({"title", "shown"})


@dataclass(frozen=True)
class Lines:
    """Lines of a file that belong together, from `first` to `last`, counted from 1."""

    file: str
    first: int
    last: int

    @property
    def numbers(self) -> range:
        """Their numbers."""
        return range(self.first, self.last + 1)


@dataclass(frozen=True)
class Rung:
    """One language's kernel.

    Attributes:
        name, title: by which the file and the page call it.
        ideas: the lines that say each idea, by its name; an idea may have none.
        rest: what is shown and says none.
    """

    name: str
    title: str
    ideas: Mapping[str, tuple[Lines, ...]]
    rest: tuple[Lines, ...]


@dataclass(frozen=True)
class Ladder:
    """All rungs, in the order of their file.

    Attributes:
        ideas: what each idea is called, by its name.
        first: names of the two rungs that a page opens with.
        texts: the lines of every file that is shown.
    """

    ideas: Mapping[str, str]
    rungs: tuple[Rung, ...]
    first: tuple[str, str]
    texts: Mapping[str, Sequence[str]]

    def text(self, lines: Lines) -> list[str]:
        """Return what stands in some lines."""
        return list(self.texts[lines.file][lines.first - 1 : lines.last])


def read(root: Path, path: Path) -> Ladder:
    """Return the rungs of a file.

    Args:
        root: of the repository.
        path: the file.

    Raises:
        DirectiveError: a key, a file or a line is not there, lines are not shown, or do not hold what they should.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DirectiveError(f"{path.name}: cannot be read: {error}") from None
    ideas, rungs, first = data.get("idea"), data.get("rung"), data.get("first")
    if not isinstance(data.get("folder"), str):
        raise DirectiveError(
            f"{path.name}: `folder` names the folder of the sources, got {data.get('folder')!r}"
        )
    if not (isinstance(ideas, dict) and ideas and isinstance(rungs, dict) and rungs):
        raise DirectiveError(f"{path.name}: needs the tables [idea] and [rung.NAME]")
    if not (
        isinstance(first, list) and len(first) == 2 and set(first) <= set(rungs) and first[0] != first[1]
    ):
        raise DirectiveError(f"{path.name}: `first` names two of {', '.join(rungs)}, got {first!r}")
    texts: dict[str, Sequence[str]] = {}
    place = _Place(path.name, root, data["folder"])
    found = tuple(_rung(name, table, ideas, place, texts) for name, table in rungs.items())
    return Ladder(ideas, found, (first[0], first[1]), texts)


@dataclass(frozen=True)
class _Place:
    """Name of a ladder's file, the repository, and the folder of the sources in it."""

    name: str
    root: Path
    folder: str


def _rung(
    name: str,
    table: Mapping[str, Any],
    ideas: Mapping[str, str],
    place: _Place,
    texts: dict[str, Sequence[str]],
) -> Rung:
    where = f"{place.name}: [rung.{name}]"
    if unknown := set(table) - set(ideas) - _NO_IDEA:
        raise DirectiveError(f"{where} has {', '.join(sorted(unknown))}; ideas: {', '.join(ideas)}")
    if not isinstance(table.get("title"), str) or not table.get("shown"):
        raise DirectiveError(f"{where} needs a title, and `shown`")

    def lines(key: str) -> tuple[Lines, ...]:
        return tuple(
            _lines(one, f"{where} {key}", place, texts, key != "shown") for one in table.get(key, ())
        )

    shown = lines("shown")
    left = {part.file: set[int]() for part in shown}
    for part in shown:
        left[part.file].update(part.numbers)
    marked = {idea: lines(idea) for idea in ideas}
    for idea, parts in marked.items():
        for part in parts:
            if not any(part.file == one.file and set(part.numbers) <= set(one.numbers) for one in shown):
                raise DirectiveError(
                    f"{where} {idea}: {part.file} {part.first}-{part.last} is not in `shown`"
                )
    for parts in marked.values():
        for part in parts:
            left[part.file] -= set(part.numbers)
    rest = tuple(run for part in shown for run in _runs(part, left[part.file], texts[part.file]))
    return Rung(name, table["title"], marked, rest)


def _lines(said: Any, where: str, place: _Place, texts: dict[str, Sequence[str]], is_idea: bool) -> Lines:
    wanted = {"file", "lines", "says"} if is_idea else {"file", "lines"}
    if (
        not isinstance(said, dict)
        or set(said) != wanted
        or not all(isinstance(one, str) for one in said.values())
    ):
        raise DirectiveError(f"{where}: expected {', '.join(sorted(wanted))}, got {said!r}")
    file, found = said["file"], _LINES.fullmatch(said["lines"])
    if file not in texts:
        try:
            source = shown_file(place.root, f"{place.folder}/{file}")
        except ValueError as error:
            raise DirectiveError(f"{where}: {error}") from None
        texts[file] = source.read_text(encoding="utf-8").splitlines()
    first = int(found["first"]) if found else 0
    last = int(found["last"] or first) if found else 0
    if not 0 < first <= last <= len(texts[file]):
        raise DirectiveError(
            f"{where}: {file} has {len(texts[file])} lines, and none such as {said['lines']!r}"
        )
    if is_idea and said["says"] not in "\n".join(texts[file][first - 1 : last]):
        raise DirectiveError(
            f"{where}: {file} {said['lines']} does not hold {said['says']!r}: move the range"
        )
    return Lines(file, first, last)


def _runs(part: Lines, left: set[int], text: Sequence[str]) -> list[Lines]:
    """Return what is left of some lines, run by run; a run of braces and blanks alone says nothing."""
    runs: list[Lines] = []
    for number in part.numbers:
        if number not in left:
            continue
        if runs and runs[-1].last == number - 1:
            runs[-1] = Lines(part.file, runs[-1].first, number)
        else:
            runs.append(Lines(part.file, number, number))
    return [run for run in runs if any(re.search(r"\w", text[number - 1]) for number in run.numbers)]
