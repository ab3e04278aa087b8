"""Verdicts that are kept of a class from one grading to the next, and those that must be had anew.

A verdict is on this file, by this judge and this grader, with a card or without: each has its hash. Where all are as
they were, the verdict is; where one has changed, the file is graded again. What a person decided is in no such file.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_classroom.hand_ins import HandIn
from course_classroom.roster import ClassError
from course_judge.identity import hash_by_name
from course_labs.diagnosis import RECORD
from course_labs.lab import SUFFIXES, Lab, has_given_kernels
from course_labs.wrong_answers import FOLDER as WRONG_FOLDER
from course_labs.wrong_answers import TABLE as WRONG_TABLE

FILE, VERSION = "grades.json", 1
GRADER = Path(__file__).resolve().parents[1] / "course_labs"
PROFILER = GRADER.with_name("course_profile")
HERE = ("grading_line.py", "stages.py")  # what of this package decides how many points a verdict is


@dataclass(frozen=True)
class Key:
    """All that decides a verdict.

    Attributes:
        file, judge, grader: hashes.
        card: whether there was one.
        seconds: the limit, None for the lab's own.
    """

    file: str
    judge: str
    grader: str
    card: bool
    seconds: float | None

    def why_not(self, other: Key) -> str:
        """Return what has changed between two, in words."""
        what = {
            "the file": self.file != other.file,
            "the judge": self.judge != other.judge,
            "the grader": self.grader != other.grader,
            "the card": self.card != other.card,
            "the limit": self.seconds != other.seconds,
        }
        return " and ".join(name for name, is_new in what.items() if is_new)


def hash_of_grader(lab: Lab, grader: Path = GRADER) -> str:
    """Return a hash of all that decides what the grader says of a lab's files, beside the judge.

    Starters, answers and wrong answers of the lab decide nothing.
    """
    files = [*grader.rglob("*.py"), *(Path(__file__).with_name(name) for name in HERE)]
    files += [file for file in lab.folder.rglob("*") if _decides(lab, file)]
    if has_given_kernels(lab):  # it stands on the profiler, and on what that counted
        files += [*PROFILER.rglob("*.py"), *(lab.folder.parents[1] / "records").glob(f"*/{RECORD}")]
    told = hashlib.sha256()
    for path in sorted(files):
        if path.is_file() and "__pycache__" not in path.parts:
            told.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    return told.hexdigest()


def _decides(lab: Lab, file: Path) -> bool:
    first = file.relative_to(lab.folder).parts[0]
    return first not in SUFFIXES and first not in (WRONG_FOLDER, WRONG_TABLE)


def keys_of(
    hand_ins: Sequence[HandIn], labs: Mapping[str, Lab], card: bool, seconds: float | None
) -> list[Key]:
    """Return the key of each hand-in as it is today."""
    judges = {lab.name: hash_by_name(lab.problem) for lab in labs.values()}
    graders = {lab.name: hash_of_grader(lab) for lab in labs.values()}
    return [
        Key(hashlib.sha256(one.data).hexdigest(), judges[one.lab], graders[one.lab], card, seconds)
        for one in hand_ins
    ]


@dataclass(frozen=True)
class Kept:
    """One kept verdict."""

    key: Key
    answer: dict[str, Any]


def read_kept(path: Path) -> dict[str, Kept]:
    """Return kept verdicts by `STUDENT/LAB/FILE`; none where there is no such file yet.

    Raises:
        ClassError: it cannot be read; one line.
    """
    if not path.exists():
        return {}
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["version"] != VERSION:
            raise ClassError(f"{path}: is of version {data['version']}; take it away and grade again")
        return {name: Kept(Key(**one["key"]), one["answer"]) for name, one in data["hand_ins"].items()}
    except OSError as error:
        raise ClassError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, ClassError):
            raise
        raise ClassError(f"{path}: cannot be read; take it away and all is graded again") from None


def written_kept(kept: Mapping[str, Kept]) -> str:
    """Return the text of the file."""
    hand_ins = {name: {"key": vars(one.key), "answer": one.answer} for name, one in sorted(kept.items())}
    return json.dumps({"version": VERSION, "hand_ins": hand_ins}, indent=1, ensure_ascii=False) + "\n"


def name_of(hand_in: HandIn) -> str:
    """Return the name of a hand-in in the file."""
    return f"{hand_in.student}/{hand_in.lab}/{hand_in.name}"


def put(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(name, 0o600)  # marks are their owner's business
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
