"""Marks: points for stages and last task, late days in the student's best order, and what a person wrote over them."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from course_classroom.roster import ClassError, Student
from course_labs.lab import Lab

MOST_LATE_DAYS = 60  # what comes later than that is not handed in


@dataclass(frozen=True)
class Rules:
    """Due dates of labs, and the price of being late.

    Attributes:
        due: lab to the last moment; a lab without one is never late.
        late_days: how many a student may use, over all labs.
        lost_a_day: the share of a mark that goes with each day past that.
    """

    due: Mapping[str, datetime] = field(default_factory=dict)
    late_days: int = 0
    lost_a_day: float = 1.0


@dataclass(frozen=True)
class Override:
    """A mark that a person gave instead of the grader's, and why."""

    mark: float
    reason: str


def most(lab: Lab) -> int:
    """Return the points of a lab: one for each stage, one for the last task."""
    return len(lab.stages) + (lab.alone is not None)


def late_by(at: datetime | None, due: datetime | None) -> int:
    """Return the days that a hand-in is late, a day that has begun counted whole."""
    if at is None or due is None or at <= due:
        return 0
    return min(MOST_LATE_DAYS, math.ceil((at - due) / timedelta(days=1)))


def best_days(marks: Sequence[float], late: Sequence[int], days: int, lost_a_day: float) -> list[int]:
    """Return the late days to use on each lab so that the sum of what is left of the marks is largest.

    Of two ways that leave the same, the one that uses fewer days; so none is spent on a mark of 0.

    Args:
        marks: before anything is taken off.
        late: days that each is late.
        days: how many may be used in all.
        lost_a_day: the share of a mark that goes with each late day that is not covered.
    """
    # best[d] is (what is left in all, minus the days used, the days for each lab so far) with d days at most.
    best: list[tuple[float, int, list[int]]] = [(0.0, 0, [])] * (days + 1)
    for mark, late_days in zip(marks, late, strict=True):
        best = [
            max(
                (
                    (round(had + left(mark, late_days - used, lost_a_day), 9), spent - used, [*each, used])
                    for used in range(min(late_days, d) + 1)
                    for had, spent, each in [best[d - used]]
                ),
                key=lambda way: way[:2],
            )
            for d in range(days + 1)
        ]
    return best[days][2]


def left(mark: float, uncovered: int, lost_a_day: float) -> float:
    """Return what is left of a mark after so many late days that no day covers."""
    return mark * max(0.0, 1.0 - lost_a_day * uncovered)


def read_rules(path: Path, labs: Mapping[str, Lab]) -> Rules:
    """Read when labs are due: `late_days`, `lost_a_day` and a table `[due]`, lab to a moment with its zone.

    Raises:
        ClassError: one line.
    """
    data = _toml(path)
    if unknown := sorted(set(data) - {"late_days", "lost_a_day", "due"}):
        raise ClassError(f"{path}: unknown key {unknown[0]}; known: late_days, lost_a_day, due")
    days, lost = data.get("late_days", 0), data.get("lost_a_day", 1.0)
    if not isinstance(days, int) or isinstance(days, bool) or not 0 <= days <= MOST_LATE_DAYS:
        raise ClassError(f"{path}: late_days is a whole number from 0 to {MOST_LATE_DAYS}")
    if not isinstance(lost, int | float) or isinstance(lost, bool) or not 0 <= lost <= 1:
        raise ClassError(f"{path}: lost_a_day is a share, from 0 to 1")
    due = data.get("due", {})
    for name, at in due.items() if isinstance(due, dict) else [("due", None)]:
        if name not in labs:
            raise ClassError(f"{path}: [due]: there is no lab {name}")
        if not isinstance(at, datetime) or at.tzinfo is None:
            raise ClassError(
                f"{path}: [due] {name}: a moment with its zone, such as 2027-01-11T23:59:00+01:00"
            )
    return Rules(due, days, float(lost))


def read_overrides(
    path: Path, students: Sequence[Student], labs: Mapping[str, Lab]
) -> dict[tuple[str, str], Override]:
    """Read marks given by hand: tables `[[override]]` with `student`, `lab`, `mark` and `reason`.

    Returns:
        By the student's id and the lab's name.
    Raises:
        ClassError: one line.
    """
    found: dict[tuple[str, str], Override] = {}
    ids = {student.id for student in students}
    tables = _toml(path).get("override", [])
    for number, table in enumerate(tables if isinstance(tables, list) else [None], start=1):
        where = f"{path}: override {number}"
        if not isinstance(table, dict) or set(table) != {"student", "lab", "mark", "reason"}:
            raise ClassError(f"{where}: it has `student`, `lab`, `mark` and `reason`, and nothing else")
        student, lab, mark, reason = (table[key] for key in ("student", "lab", "mark", "reason"))
        if student not in ids:
            raise ClassError(f"{where}: nobody in the roster is {student!r}")
        if lab not in labs:
            raise ClassError(f"{where}: there is no lab {lab!r}")
        of = most(labs[lab])
        if not isinstance(mark, int | float) or isinstance(mark, bool) or not 0 <= mark <= of:
            raise ClassError(f"{where}: the mark of {lab} is a number from 0 to {of}")
        if not isinstance(reason, str) or not reason.strip():
            raise ClassError(f"{where}: say in `reason` why")
        if (student, lab) in found:
            raise ClassError(f"{where}: {student}, {lab} has one already")
        found[student, lab] = Override(mark, reason.strip())
    return found


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ClassError(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ClassError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from None
