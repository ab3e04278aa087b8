"""Marks of a class: a line for each student, from verdicts, late days and overrides, as CSV, and a page for each."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course_classroom.hand_ins import Collected, HandIn
from course_classroom.marks import Override, Rules, best_days, late_by, left, most
from course_classroom.roster import Student
from course_labs.lab import Lab

_TIME = re.compile(r" takes ([\d.]+) µs")


@dataclass(frozen=True)
class LabGrade:
    """One lab of one student.

    Attributes:
        hand_in, answer: the file that counts, and what the grader said; None where none came.
        stages: reached; None where nobody knows.
        graded: points of the grader; None as well.
        override: what a person gave instead.
        late, covered: days late, and how many of those a late day covers.
        mark: what counts in the end.
    """

    lab: Lab
    hand_in: HandIn | None
    answer: dict[str, Any] | None
    stages: int | None
    graded: float | None
    override: Override | None
    late: int
    covered: int
    mark: float

    @property
    def last(self) -> bool | None:
        """True if the last task is right; None where nobody knows."""
        return None if self.stages is None else bool(self.answer and self.answer.get("alone_right"))

    @property
    def us(self) -> str:
        """The kernel's time in µs, where a card took it."""
        found = _TIME.search(self.answer["text"]) if self.answer and "text" in self.answer else None
        return found[1] if found else ""


@dataclass(frozen=True)
class Grade:
    """One student, lab by lab."""

    student: Student
    labs: tuple[LabGrade, ...]
    mark: float
    of: int


def points(answer: Mapping[str, Any]) -> float | None:
    """Return the points of one graded file; None where it was not graded, or not run."""
    if "ungraded" in answer or answer["stages"] is None:
        return None
    return float(answer["stages"] + answer["alone_right"])


def grades(
    students: Sequence[Student],
    labs: Sequence[Lab],
    answered: Mapping[str, Sequence[tuple[HandIn, dict[str, Any]]]],
    rules: Rules,
    overrides: Mapping[tuple[str, str], Override],
) -> list[Grade]:
    """Return the class's grades, in the roster's order.

    Args:
        answered: by the student's id, each file with what the grader said. Of several for one lab the best counts.
    """
    found = []
    for student in students:
        parts = [
            _part(student, lab, answered.get(student.id, ()), rules, overrides.get((student.id, lab.name)))
            for lab in labs
        ]
        days = best_days(
            [0.0 if override else graded or 0.0 for _, _, graded, override, _ in parts],
            [late for *_, late in parts],
            rules.late_days,
            rules.lost_a_day,
        )
        each = tuple(
            LabGrade(
                lab,
                hand_in,
                answer,
                None if answer is None or "ungraded" in answer else answer["stages"],
                graded,
                override,
                late,
                covered,
                round(
                    override.mark if override else left(graded or 0.0, late - covered, rules.lost_a_day), 2
                ),
            )
            for lab, (hand_in, answer, graded, override, late), covered in zip(labs, parts, days, strict=True)
        )
        found.append(Grade(student, each, round(sum(one.mark for one in each), 2), sum(map(most, labs))))
    return found


def _part(
    student: Student,
    lab: Lab,
    answered: Sequence[tuple[HandIn, dict[str, Any]]],
    rules: Rules,
    override: Override | None,
) -> tuple[HandIn | None, dict[str, Any] | None, float | None, Override | None, int]:
    mine = [(hand_in, answer) for hand_in, answer in answered if hand_in.lab == lab.name]
    if not mine:
        return (None, None, None, override, 0)
    hand_in, answer = max(mine, key=lambda one: -1.0 if (told := points(one[1])) is None else told)
    return (hand_in, answer, points(answer), override, late_by(hand_in.at, rules.due.get(lab.name)))


# --- the table -----------------------------------------------------------------------------------


def table(found: Sequence[Grade], collected: Collected) -> str:
    """Return the CSV: a line for each student, a column for each stage."""
    labs = [one.lab for one in found[0].labs]
    head = ["student", "name", "mark", "of", "late days used"]
    for lab in labs:
        head += [f"{lab.name}: stage {number}" for number in range(1, len(lab.stages) + 1)]
        head += [f"{lab.name}: {what}" for what in ("last task", "mark", "days late", "by hand", "µs")]
    head += ["predictions called", "predictions right", "minutes on the pages", "to look at"]
    lines = io.StringIO()
    writer = csv.writer(lines)
    writer.writerow(head)
    for grade in found:
        used = sum(one.covered for one in grade.labs)
        row: list[Any] = [grade.student.id, grade.student.name, _number(grade.mark), grade.of, used]
        for one in grade.labs:
            for number in range(1, len(one.lab.stages) + 1):
                row.append("" if one.stages is None else int(one.stages >= number))
            row += ["" if one.last is None else int(one.last), _number(one.mark), one.late or ""]
            row += [one.override.reason if one.override else "", one.us]
        read = collected.readings.get(grade.student.id)
        row += [read.called, read.right, read.minutes] if read else ["", "", ""]
        row.append("; ".join(to_look_at(grade, collected)))
        writer.writerow([_harmless(cell) for cell in row])
    return lines.getvalue()


def written_moved(moved: Sequence[tuple[str, str, str, str]]) -> str:
    """Return the CSV of marks that moved."""
    lines = io.StringIO()
    writer = csv.writer(lines)
    writer.writerow(["student", "lab", "file", "was", "is", "changed"])
    for name, was, now, why in moved:
        writer.writerow([*name.split("/"), was, now, why])
    return lines.getvalue()


def to_look_at(grade: Grade, collected: Collected) -> list[str]:
    """Return what a person must decide about one student, a line each."""
    lines = list(collected.of.get(grade.student.id, []))
    for one in grade.labs:
        if one.answer and "ungraded" in one.answer:
            lines.append(f"{one.lab.name}: not graded: {one.answer['ungraded']}")
        elif one.answer and one.stages is None:
            lines.append(f"{one.lab.name}: not run: it needs a card")
    return lines


def _number(mark: float) -> str:
    return f"{mark:g}"


def _harmless(cell: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


# --- a page for each student ---------------------------------------------------------------------

_STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #8884; vertical-align: top; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #8881; padding: .7rem; border-radius: .3rem; }
.hand { border-left: .3rem solid #b36b00; padding-left: .7rem; }
"""


def page(grade: Grade, collected: Collected, rules: Rules) -> str:
    """Return one student's page: marks, and the grader's words. It is whole in itself, and asks no network."""
    e = html.escape
    rows, parts = [], []
    for one in grade.labs:
        rows.append(
            f"<tr><th scope='row'>{e(one.lab.title)}</th><td>{_stages(one)}</td>"
            f"<td>{_yes(one.last)}</td><td>{_number(one.mark)} of {most(one.lab)}</td></tr>"
        )
        parts.append(_lab(one))
    read = collected.readings.get(grade.student.id)
    reading = (
        f"<p>Predictions called on the course's pages: {read.called}, of them right: {read.right}. "
        "Being wrong costs nothing.</p>"
        if read
        else ""
    )
    lines = "".join(f"<li>{e(line)}</li>" for line in to_look_at(grade, collected))
    used = sum(one.covered for one in grade.labs)
    days = (
        f"<p>Late days used: {used} of {rules.late_days}, where they save most.</p>"
        if rules.late_days
        else ""
    )
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{e(grade.student.name)}</title><style>{_STYLE}</style></head><body>\n"
        f"<h1>{e(grade.student.name)}</h1>\n"
        f"<p><strong>{_number(grade.mark)} of {grade.of}</strong>: a point for each stage, and one for each last task."
        f"</p>\n{days}{reading}"
        "<table><thead><tr><th>Lab</th><th>Stages</th><th>Last task</th><th>Mark</th></tr></thead><tbody>\n"
        + "\n".join(rows)
        + "</tbody></table>\n"
        + (f"<h2>To look at</h2><ul>{lines}</ul>\n" if lines else "")
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _stages(one: LabGrade) -> str:
    of = len(one.lab.stages)
    if one.hand_in is None:
        return "nothing handed in"
    return "not known" if one.stages is None else f"{one.stages} of {of}"


def _yes(is_so: bool | None) -> str:
    return {True: "yes", False: "no", None: ""}[is_so]


def _lab(one: LabGrade) -> str:
    e = html.escape
    if one.hand_in is None and one.override is None:
        return ""
    parts = [f"<h2>{e(one.lab.title)}</h2>"]
    if one.hand_in:
        late = f", {one.late} days late, {one.covered} of them covered" if one.late else ""
        parts.append(
            f"<p><code>{e(one.hand_in.name)}</code>, handed in {one.hand_in.at:%Y-%m-%d %H:%M %z}{late}.</p>"
        )
    if one.answer:
        words = one.answer.get("text") or f"not graded: {one.answer['ungraded']}"
        parts.append(f"<p>The grader says:</p><pre>{e(words)}</pre>")
        if one.answer.get("ran"):
            parts.append(f"<p>It ran {e(one.answer['ran'])}.</p>")
        if one.answer.get("printed"):
            parts.append(
                f"<details><summary>What your file printed; it decides nothing</summary>"
                f"<pre>{e(one.answer['printed'])}</pre></details>"
            )
    if one.override:
        was = "nothing" if one.graded is None else _number(one.graded)
        parts.append(
            f"<p class='hand'>A person gave {_number(one.override.mark)} instead of {was}: {e(one.override.reason)}</p>"
        )
    return "\n".join(parts)
