"""Hand-ins of a class: the students' files in a folder, in folders or in zips. They are read, and nothing is unpacked.

No path of a zip is ever written to, and no link is followed. What cannot be used is a line of `trouble`, and takes
nothing away from anybody else.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import stat
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from course_classroom.roster import ClassError, Student, whose
from course_labs.lab import SUFFIXES, Lab

TIMES = "handed_in.csv"  # in the folder, where the system knows when: student, lab, at
FILE_BYTES, PROGRESS_BYTES = 2**20, 2**22  # of a student's file, and of what the site saved of their reading
MOST_FILES = 20_000  # of one student's folder or zip
COURSE, VERSION = "Percent of Peak", 1  # of what the site saves, see docs/assets/js/progress.js


@dataclass(frozen=True)
class HandIn:
    """One file of one student.

    Attributes:
        student: the student's id.
        lab, door: what it is a file of.
        name: the file's name.
        data: the file.
        at: when it was handed in, with its zone.
    """

    student: str
    lab: str
    door: str
    name: str
    data: bytes
    at: datetime


@dataclass(frozen=True)
class Reading:
    """Reading of a student, as the browser kept it and where it was handed in too.

    Attributes:
        called, right: predictions called, and called right.
        minutes: that pages were in sight.
    """

    called: int
    right: int
    minutes: int


@dataclass
class Collected:
    """All that lies in the folder.

    Attributes:
        hand_ins: at most one for each student and file name, in the order of the roster and of the labs.
        readings: by the student's id.
        trouble: one line for each thing that could not be used.
        of: the same lines that are about one student, by id.
    """

    hand_ins: list[HandIn] = field(default_factory=list)
    readings: dict[str, Reading] = field(default_factory=dict)
    trouble: list[str] = field(default_factory=list)
    of: dict[str, list[str]] = field(default_factory=dict)

    def complain(self, line: str, student: str = "") -> None:
        """Keep a line, for a student if it is about one."""
        self.trouble.append(line)
        if student:
            self.of.setdefault(student, []).append(line)


@dataclass(frozen=True)
class _Found:
    path: PurePosixPath
    data: bytes
    at: datetime


def collect(folder: Path, students: Sequence[Student], labs: Mapping[str, Lab]) -> Collected:
    """Read every student's files of these labs.

    Raises:
        ClassError: the folder, or the times in it, cannot be read; one line.
    """
    if not folder.is_dir():
        raise ClassError(f"{folder}: there is no such folder")
    wanted = wanted_files(labs)
    times = _times(folder / TIMES, students, labs)
    collected = Collected()
    found: dict[str, list[_Found]] = {student.id: [] for student in students}
    for path, stem in _entries(folder, labs, wanted):
        try:
            student = whose(stem, students)
        except ClassError as error:
            collected.complain(str(error))
            continue
        if student is None:
            collected.complain(f"{path.name}: nobody in the roster")
            continue
        try:
            found[student.id] += _read(path, stem, wanted)
        except (ClassError, OSError) as error:
            said = error.strerror if isinstance(error, OSError) else str(error)
            collected.complain(f"{path.name}: {said}", student.id)
    for student in students:
        _sort(student.id, found[student.id], wanted, times, collected)
    return collected


def wanted_files(labs: Mapping[str, Lab]) -> dict[str, tuple[str, str]]:
    """Return the names of students' files: each to its lab and its door."""
    return {lab.student_file(door): (lab.name, door) for lab in labs.values() for door in lab.doors}


def _entries(
    folder: Path, labs: Mapping[str, Lab], wanted: Mapping[str, Any], inside: bool = False
) -> Iterator[tuple[Path, str]]:
    """Yield what may be a student's, a folder, a zip or a file, with the part of its name that says whose."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "__MACOSX")) or path.name == TIMES or path.is_symlink():
            continue
        if path.is_dir():
            if not inside and path.name.lower().replace("-", "_") in labs:
                yield from _entries(path, labs, wanted, inside=True)
            else:
                yield path, path.name
        elif path.suffix.lower() == ".zip":
            yield path, path.stem
        elif name := _ends_with(path.name, wanted):
            yield path, path.name.removesuffix(name)[:-1]


def _ends_with(name: str, wanted: Mapping[str, Any]) -> str:
    fits = [one for one in wanted if name.endswith((f"_{one}", f"-{one}"))]
    return max(fits, key=len, default="")


def _read(path: Path, stem: str, wanted: Mapping[str, Any]) -> list[_Found]:
    if path.is_dir():
        return list(_in_folder(path, wanted))
    if path.suffix.lower() == ".zip":
        return list(_in_zip(path, wanted))
    name = path.name.removeprefix(stem)[1:]
    return [_Found(PurePosixPath(name), _limited(path.read_bytes(), name), _modified(path.stat().st_mtime))]


def _is_read(name: str, wanted: Mapping[str, Any]) -> bool:
    return name in wanted or name.endswith(".json")


def _limited(data: bytes, name: str) -> bytes:
    most = PROGRESS_BYTES if name.endswith(".json") else FILE_BYTES
    if len(data) > most:
        raise ClassError(f"{name} is larger than {most >> 20} MiB")
    return data


def _in_folder(folder: Path, wanted: Mapping[str, Any]) -> Iterator[_Found]:
    count = 0
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            count += 1
            if count > MOST_FILES:
                raise ClassError(f"holds more than {MOST_FILES} files")
            path = Path(here, name)
            at = PurePosixPath(path.relative_to(folder).as_posix())
            if not _is_read(name, wanted):
                if at.suffix in SUFFIXES.values():
                    yield _Found(at, b"", _modified(0))  # only for its name
                continue
            about = path.lstat()
            if not stat.S_ISREG(about.st_mode) or (name not in wanted and about.st_size > PROGRESS_BYTES):
                continue  # a link, a pipe; or data that is not ours
            if about.st_size > FILE_BYTES and name in wanted:
                raise ClassError(f"{name} is larger than {FILE_BYTES >> 20} MiB")
            yield _Found(at, path.read_bytes(), _modified(about.st_mtime))


def _in_zip(path: Path, wanted: Mapping[str, Any]) -> Iterator[_Found]:
    try:
        with zipfile.ZipFile(path) as packed:
            entries = packed.infolist()
            if len(entries) > MOST_FILES:
                raise ClassError(f"holds more than {MOST_FILES} files")
            for entry in entries:
                if _is_outside(entry.filename):
                    raise ClassError(f"has a path outside, {entry.filename!r}: nothing of it was taken")
            for entry in entries:
                name = PurePosixPath(entry.filename)
                if entry.is_dir() or name.parts[0] == "__MACOSX":
                    continue
                if not _is_read(name.name, wanted):
                    if name.suffix in SUFFIXES.values():
                        yield _Found(name, b"", _modified(0))
                    continue
                if stat.S_ISLNK(entry.external_attr >> 16):
                    continue
                most = FILE_BYTES if name.name in wanted else PROGRESS_BYTES
                if entry.file_size > most:
                    if name.name in wanted:
                        raise ClassError(f"{name.name} is larger than {most >> 20} MiB")
                    continue
                with packed.open(entry) as opened:
                    data = _limited(opened.read(most + 1), name.name)
                yield _Found(name, data, datetime(*entry.date_time).astimezone())
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, ValueError, OSError) as error:
        if isinstance(error, ClassError):
            raise
        raise ClassError(f"is no zip that can be read ({str(error).splitlines()[0]})") from None


def _is_outside(name: str) -> bool:
    parts = re.split(r"[/\\]", name)
    return name.startswith(("/", "\\")) or ".." in parts or re.match(r"[A-Za-z]:", name) is not None


def _modified(seconds: float) -> datetime:
    return datetime.fromtimestamp(int(seconds)).astimezone()


def _sort(
    student: str,
    found: Sequence[_Found],
    wanted: Mapping[str, tuple[str, str]],
    times: Mapping[tuple[str, str], datetime],
    collected: Collected,
) -> None:
    for name, (lab, door) in wanted.items():
        same = [one for one in found if one.path.name == name]
        if not same:
            continue
        # The one that lies least deep, and of those the newest.
        taken = min(same, key=lambda one: (len(one.path.parts), -one.at.timestamp()))
        if any(one.data != taken.data for one in same):
            collected.complain(f"{student}: several files {name}: {taken.path} is taken", student)
        at = times.get((student, lab), taken.at)
        collected.hand_ins.append(HandIn(student, lab, door, name, taken.data, at))
    if found and not any(one.path.name in wanted for one in found):
        names = ", ".join(sorted({one.path.name for one in found})[:3])
        collected.complain(f"{student}: no file has the name of a lab's; there are {names}", student)
    readings = [read for one in found if one.path.suffix == ".json" and (read := _reading(one.data))]
    if readings:
        collected.readings[student] = max(readings, key=lambda read: (read.called, read.minutes))


def _reading(data: bytes) -> Reading | None:
    """Return what the site's own file says; None for other JSON. What is shown and not called does not count."""
    try:
        kept = json.loads(data)
        if kept["course"] != COURSE or kept["version"] != VERSION:
            return None
        called = [one["right"] for one in kept["predictions"].values() if isinstance(one.get("right"), bool)]
        seconds = sum(float(page.get("seconds", 0)) for page in kept["pages"].values())
        return Reading(len(called), sum(called), round(seconds / 60))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return None


def _times(
    path: Path, students: Sequence[Student], labs: Mapping[str, Lab]
) -> dict[tuple[str, str], datetime]:
    if not path.is_file():
        return {}
    try:
        rows = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig")))
    except UnicodeDecodeError:
        raise ClassError(f"{path}: is not UTF-8") from None
    for column in ("student", "lab", "at"):
        if column not in (rows.fieldnames or []):
            raise ClassError(f"{path}: no column {column}; it has student, lab and at")
    ids = {student.id.lower(): student.id for student in students}
    times = {}
    for row in rows:
        where, lab = f"{path}: line {rows.line_num}", (row["lab"] or "").strip()
        student = ids.get((row["student"] or "").strip().lower())
        if student is None:
            raise ClassError(f"{where}: nobody in the roster is {row['student']!r}")
        try:
            at = datetime.fromisoformat((row["at"] or "").strip())
        except ValueError:
            at = None
        if at is None or at.tzinfo is None:
            raise ClassError(
                f"{where}: {row['at']!r} is no moment with its zone, such as 2027-01-11T23:59:00+01:00"
            )
        if lab in labs:
            times[student, lab] = at
    return times
