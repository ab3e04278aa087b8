"""Wrong answers of a lab, which its grader must refuse: `wrong.toml` and `wrong/` in the lab's folder.

`wrong.toml` holds those that are nearly right as edits of a right file; one that is a whole file lies in `wrong/`, its
first line says what it is refused for. Standard library only.
"""

from __future__ import annotations

import functools
import re
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_labs.lab import Lab, LabError

TABLE, FOLDER = "wrong.toml", "wrong"
GPU_ONLY = "GPU only"
COMMENT = {".py": "#", ".cu": "//"}
KEYS = ("refused_for", "says", "gpu_only", "of", "edits")
_HEAD = re.compile(r"(?:#|//) refused for: ([^|\n]+?)(?: \| ([^\n]+))?\n")


@dataclass(frozen=True)
class WrongAnswer:
    """One file that the grader must refuse.

    Attributes:
        name: of the file; one that begins with `alone_wrong_` is wrong in the lab's last task.
        text: the whole file; its first line says what it is refused for.
        refused_for: the property that the grader must name.
        says: what it must say; empty for anything.
        gpu_only: only a card can tell.
        path: where it lies as a file; None for one made of edits.
    """

    name: str
    text: str
    refused_for: str
    says: str
    gpu_only: bool
    path: Path | None = None


def wrong_answers(lab: Lab) -> list[WrongAnswer]:
    """Return all of a lab, by name.

    Raises:
        LabError: one of them cannot be read; one line.
    """
    found = [*_edited(lab), *_whole(lab)]
    names = [answer.name for answer in found]
    for name in names:
        if names.count(name) > 1:
            raise LabError(f"{lab.folder / TABLE}: {name} lies in {FOLDER}/ too")
    return sorted(found, key=lambda answer: answer.name)


def wrong_files(lab: Lab) -> dict[Path, WrongAnswer]:
    """Return each of them as a file: where it lies, or in a temporary folder that lasts as long as the process.

    Raises:
        LabError: see `wrong_answers`.
    """
    made = {}
    for answer in wrong_answers(lab):
        path = answer.path
        if path is None:
            path = Path(_room().name, lab.name, answer.name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(answer.text, encoding="utf-8")
        made[path] = answer
    return made


@functools.cache
def _room() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="course-wrong-")


def _whole(lab: Lab) -> Iterator[WrongAnswer]:
    for path in sorted((lab.folder / FOLDER).glob("*")):
        if path.suffix in COMMENT:
            text = path.read_text(encoding="utf-8")
            head = _HEAD.match(text)
            if head is None:
                raise LabError(f"{path}: its first line does not say what it is refused for")
            says = head[2] or ""
            gpu_only = says == GPU_ONLY
            yield WrongAnswer(path.name, text, head[1], "" if gpu_only else says, gpu_only, path)


def _edited(lab: Lab) -> Iterator[WrongAnswer]:
    path = lab.folder / TABLE
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise LabError(f"{path}: cannot be read: {error}") from None
    for name, table in tables.items():
        try:
            yield _made(lab, name, table)
        except ValueError as error:
            raise LabError(f"{path}: {name}: {error}") from None


def _made(lab: Lab, name: str, table: Any) -> WrongAnswer:
    """Return the file that the edits of a table make.

    Raises:
        ValueError: the table is no such table, or an edit does not fit.
    """
    suffix = Path(name).suffix
    if suffix not in COMMENT or not isinstance(table, dict) or Path(name).name != name:
        raise ValueError('expected ["FILE.py"] or ["FILE.cu"] with a table')
    for key in table:
        if key not in KEYS:
            raise ValueError(f"unknown key {key}; known: {', '.join(KEYS)}")
    refused_for, says, gpu_only = (
        table.get("refused_for"),
        table.get("says", ""),
        table.get("gpu_only", False),
    )
    if not isinstance(refused_for, str) or not isinstance(says, str) or not isinstance(gpu_only, bool):
        raise ValueError("needs `refused_for`, a text; `says` is a text, `gpu_only` is true")
    right = lab.folder / str(table.get("of"))
    if right.suffix != suffix or not right.is_file():
        raise ValueError(f"`of` is a right file of the lab that ends in {suffix}, such as triton/stage4.py")
    head = " | ".join(part for part in (refused_for, says, GPU_ONLY if gpu_only else "") if part)
    body = edited(right.read_text(encoding="utf-8"), table.get("edits"))
    if '#include "' in body:
        raise ValueError(f"includes a file: keep it whole in {FOLDER}/")
    return WrongAnswer(name, f"{COMMENT[suffix]} refused for: {head}\n{body}", refused_for, says, gpu_only)


def edited(text: str, edits: Sequence[Sequence[str]] | None) -> str:
    """Return a text in which every edit, a pair of old and new, was made once.

    Raises:
        ValueError: an old text stands nowhere in it, or more than once, or in the place of another.
    """
    places = []
    for edit in edits or [[]]:
        if len(edit) != 2 or not all(isinstance(part, str) for part in edit) or not edit[0]:
            raise ValueError("`edits` is a list of pairs, the old text and the new one")
        old, new = edit
        if text.count(old) != 1:
            what = "stands nowhere" if old not in text else f"stands {text.count(old)} times"
            raise ValueError(f"{old.strip().splitlines()[0]!r} {what} in the right file")
        places.append((text.index(old), old, new))
    made, at = [], 0
    for start, old, new in sorted(places):
        if start < at:
            raise ValueError(f"{old.strip().splitlines()[0]!r} overlaps the edit before it")
        made += [text[at:start], new]
        at = start + len(old)
    return "".join([*made, text[at:]])
