"""The roster of a class, a CSV with a line for each student, and whose a folder is."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ID_COLUMNS, NAME_COLUMNS = ("student", "username"), ("name", "first_name")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}")


class ClassError(ValueError):
    """Error: a file of the teacher's cannot be used; one line, with what to do."""


@dataclass(frozen=True)
class Student:
    """One line of a roster.

    Attributes:
        id: unique in the class; names the student's files.
        name: as a person reads it; only in what stays with the teacher.
    """

    id: str
    name: str


def read_roster(path: Path) -> list[Student]:
    """Read a roster: a column `student` (or `username`) and a column `name` (or `first_name` and `last_name`).

    Classroom 50's own `students.csv` is such a file. Other columns are left alone.

    Raises:
        ClassError: one line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ClassError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ClassError(f"{path}: is not UTF-8: save it as CSV UTF-8") from None
    rows = csv.DictReader(io.StringIO(text), delimiter=";" if ";" in text.partition("\n")[0] else ",")
    columns = [column.strip() for column in rows.fieldnames or []]
    rows.fieldnames = columns
    key = next((column for column in ID_COLUMNS if column in columns), "")
    called = next((column for column in NAME_COLUMNS if column in columns), "")
    for column, wanted in ((key, "student"), (called, "name")):
        if not column:
            raise ClassError(f"{path}: no column {wanted}; it has {', '.join(columns) or 'none'}")
    students: list[Student] = []
    lines: dict[str, int] = {}
    for row in rows:
        where = f"{path}: line {rows.line_num}"
        id_ = (row.get(key) or "").strip()
        name = " ".join(filter(None, [(row.get(called) or "").strip(), _last(row, called)]))
        if not id_ and not name:
            continue
        if not _ID.fullmatch(id_):
            raise ClassError(
                f"{where}: {key} {id_!r} is no id: letters, digits and . _ @ - of ASCII, at most 100"
            )
        if id_.lower() in lines:
            raise ClassError(f"{where}: {id_} stands in line {lines[id_.lower()]} too")
        lines[id_.lower()] = rows.line_num
        students.append(Student(id_, name or id_))
    if not students:
        raise ClassError(f"{path}: nobody is in it")
    return students


def _last(row: dict[str, str], called: str) -> str:
    return (row.get("last_name") or "").strip() if called == "first_name" else ""


def whose(stem: str, students: Sequence[Student]) -> Student | None:
    """Return the student whose id or name a folder or a zip begins or ends with; None where it is nobody's.

    The forms are those that such systems write: `ada`, `ada_12345_file`, `course-lab-ada`, `Ada Lovelace_12345`.

    Raises:
        ClassError: it may be two students'.
    """
    said = _plain(stem)
    for fits in (_is_id, _has_id, _has_name):
        found = [student for student in students if fits(said, student)]
        # `course-lab-ada-b` ends with `b` and with `ada-b`: the longer one is meant.
        longest = max((len(one.id) for one in found), default=0)
        if fits is _has_id:
            found = [one for one in found if len(one.id) == longest]
        if len(found) > 1:
            names = " and ".join(one.id for one in found[:2])
            raise ClassError(f"{stem}: may be {names}: name it after the id")
        if found:
            return found[0]
    return None


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text.strip().lower())


def _is_id(said: str, student: Student) -> bool:
    return said == student.id.lower()


def _has_id(said: str, student: Student) -> bool:
    return re.search(rf"(?:^|[\s_-]){re.escape(student.id.lower())}(?=$|[\s_-])", said) is not None and (
        said.startswith(student.id.lower()) or said.endswith(student.id.lower())
    )


def _has_name(said: str, student: Student) -> bool:
    name = _plain(student.name)
    return said == name or said.startswith((f"{name}_", f"{name}-"))
