"""The minutes that mentors handed in: what each step of a session was planned to take, and what it took.

The run view writes one CSV file for each run; it lies in handbook/sessions/minutes/<session>/. Standard library only.
"""

from __future__ import annotations

import csv
import datetime
import re
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from course_site.sessions.course_road import FOLDER
from course_site.sessions.session import Complaint, Session, normalised

MINUTES_FOLDER = f"{FOLDER}/minutes"
COLUMNS = ("session", "date", "start", "step", "title", "planned", "actual")
LONGEST = 240.0  # minutes in one step; more is a watch that nobody stopped


@dataclass(frozen=True)
class Taken:
    """The minutes that one step really took: the median of its runs."""

    median: float
    runs: int


class _Refused(Exception):
    """A fault of a file, and its line (0: the file as a whole)."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def read_minutes(
    root: Path, sessions: Mapping[str, Session]
) -> tuple[dict[str, dict[int, Taken]], list[Complaint]]:
    """Minutes that the steps of each session took, by session and step number; and a complaint for each bad file.

    A step is known by its title: minutes of a step that the map no longer has are left out.
    """
    taken: dict[str, dict[int, Taken]] = {}
    complaints: list[Complaint] = []
    folder = root / MINUTES_FOLDER
    runs: dict[str, dict[str, list[float]]] = {}
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_dir() or path.name.startswith("."):
            continue
        try:
            name, minutes = _read(path, folder, sessions)
        except _Refused as error:
            where = f"line {error.line}" if error.line else ""
            complaints.append(Complaint(path.relative_to(root).as_posix(), where, str(error)))
            continue
        for title, actual in minutes.items():
            runs.setdefault(name, {}).setdefault(title, []).append(actual)
    for name, by_title in runs.items():
        found = {
            step.number: Taken(statistics.median(by_title[title]), len(by_title[title]))
            for step in sessions[name].steps()
            if (title := normalised(step.title)) in by_title
        }
        if found:
            taken[name] = found
    return taken, complaints


def _read(path: Path, folder: Path, sessions: Mapping[str, Session]) -> tuple[str, dict[str, float]]:
    """Return the session of one file, and the minutes of the steps that were timed."""
    parts = path.relative_to(folder).parts
    name = parts[0]
    if len(parts) != 2 or name not in sessions:
        raise _Refused(
            0, f"put it into {MINUTES_FOLDER}/ and there into the folder of its session, such as w1/"
        )
    if path.suffix != ".csv" or not re.match(r"\d{4}-\d\d-\d\d", path.name):
        raise _Refused(0, "call it as the run view did: the date first, such as 2026-11-21-1805-w1.csv")
    try:
        rows = list(csv.reader(path.read_text(encoding="utf-8-sig").splitlines(), strict=True))
    except UnicodeDecodeError:
        raise _Refused(0, "is not UTF-8 text: save it as the run view wrote it") from None
    except csv.Error as error:
        raise _Refused(0, f"is not CSV: {error}") from None
    if not rows or tuple(rows[0]) != COLUMNS:
        raise _Refused(1, f"the first line is not {','.join(COLUMNS)}: save it as the run view wrote it")
    minutes: dict[str, float] = {}
    steps: set[str] = set()
    for line, row in enumerate(rows[1:], 2):
        if not row:
            continue
        if len(row) != len(COLUMNS):
            raise _Refused(line, f"has {len(row)} columns, and {len(COLUMNS)} are needed")
        values = dict(zip(COLUMNS, row, strict=True))
        _check_row(values, line, name, path.name[:10])
        if values["step"] in steps:
            raise _Refused(line, f"step {values['step']} is there twice")
        steps.add(values["step"])
        if values["actual"]:
            minutes[normalised(values["title"])] = float(values["actual"])
    if not minutes:
        raise _Refused(0, "no step in it was timed: nothing to hand in")
    return name, minutes


def _check_row(values: Mapping[str, str], line: int, name: str, date: str) -> None:
    if values["session"] != name:
        raise _Refused(line, f"is of session {values['session']!r}, and the folder is {name}")
    try:
        datetime.date.fromisoformat(values["date"])
    except ValueError:
        raise _Refused(line, f"date {values['date']!r} is not a date such as 2026-11-21") from None
    if values["date"] != date:
        raise _Refused(line, f"date {values['date']} is not the date in the file's name, {date}")
    if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", values["start"]):
        raise _Refused(line, f"start {values['start']!r} is not a time of day such as 18:05")
    if not re.fullmatch(r"[1-9]\d*", values["step"]):
        raise _Refused(line, f"step {values['step']!r} is not a number from 1 on")
    if not values["title"].strip():
        raise _Refused(line, "has no title, and a step is known by it")
    for key in ("planned", "actual"):
        if values[key] == "" and key == "actual":
            continue  # jumped over, or not reached
        if not re.fullmatch(r"\d+(\.\d+)?", values[key]):
            raise _Refused(line, f"{key} {values[key]!r} is not a number of minutes")
        if float(values[key]) > LONGEST:
            raise _Refused(line, f"{key} {values[key]} minutes: a watch that nobody stopped; leave it empty")
