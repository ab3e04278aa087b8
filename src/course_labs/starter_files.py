"""Starter files: a starter, or the file after a stage, in the student's folder. Nothing a student wrote is lost."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from course_labs.lab import FOLDER, Lab, LabError


def write(
    lab: Lab,
    root: Path,
    door: str = "",
    stage: int | None = None,
    complete: Callable[[str], str] = lambda text: text,
) -> list[str]:
    """Write one file of a lab into `my_labs/`, and say so.

    Args:
        lab: the lab.
        root: the repository.
        door: one of the lab's doors; the first if empty.
        stage: 0 is the starter. Without it the starter is written only where there is no file yet.
        complete: puts into the file's text what no file of the lab holds.
    Returns:
        Lines for the student.
    Raises:
        LabError: no such door or stage.
    """
    door = door or next(iter(lab.doors))
    if door not in lab.doors:
        raise LabError(f"{lab.name} has no door {door!r}; it has {', '.join(lab.doors)}")
    if stage is not None and stage not in range(len(lab.stages) + 1):
        raise LabError(
            f"{lab.name} has no stage {stage}; it has 1 to {len(lab.stages)}, and 0 is the starter"
        )
    path = root / FOLDER / lab.student_file(door)
    shown = path.relative_to(root).as_posix()
    grade = f"then:  nox -s grade -- {lab.name} {shown}"
    if stage is None and path.exists():
        return [
            f"{shown} is there already: left as it is",
            "the starter again:  nox -s lab -- "
            f"{lab.name}{'' if door == next(iter(lab.doors)) else ' --door ' + door} --stage 0",
            grade,
        ]
    text = complete(lab.snapshot(door, stage or 0).read_text(encoding="utf-8")).encode()
    if path.exists() and path.read_bytes() == text:
        return [f"{shown} is that already", grade]
    kept = keep_and_replace(path, text, f"before-stage-{stage or 0}")
    what = f"stage {stage} of {len(lab.stages)}" if stage else "the starter"
    lines = [f"wrote {shown}: {what}"]
    if kept:
        lines.append(f"your file is kept as {kept.relative_to(root).as_posix()}")
    return [*lines, grade]


def keep_and_replace(path: Path, text: bytes, word: str) -> Path | None:
    """Write a file of the student's folder. One that says something else is kept beside it; where, or None."""
    if path.exists() and path.read_bytes() == text:
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = _keep(path, word) if path.exists() else None
    _replace(path, text)
    return kept


def _keep(path: Path, word: str) -> Path:
    """Give a file's present text a second name, which nothing has yet, and return it."""
    number = 1
    while True:
        kept = path.with_name(f"{path.stem}.{word}{'' if number == 1 else f'-{number}'}{path.suffix}")
        try:
            os.link(path, kept)  # fails where the name is taken, at any moment
            return kept
        except FileExistsError:
            number += 1
        except OSError:  # a file system without hard links
            if not kept.exists():
                shutil.copy2(path, kept)
                return kept
            number += 1


def _replace(path: Path, text: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
