"""Dated forms of the capstone: announcement, plan, checkpoint, worklog. Each feeds the next and has a template.

A form is Markdown. Its fields are lines `- Name: what you say`, and lines below that are indented belong to it; the
template in capstone/forms/ is the list of its fields. The worklog has headings instead: the lines of the score sheet.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from course_capstone.table_file import read_table
from course_capstone.tasks import Task
from course_judge.__main__ import Unusable
from course_profile.report import HEADINGS

FOLDER = "capstone/forms"
COHORT = "handbook/sessions/cohort.toml"
# Every form, and the title of its date in the cohort's plan.
FORMS = {
    "announcement": "Announcement due",
    "plan": "Plan due",
    "checkpoint": "Checkpoint",
    "worklog": "Hand in",
}
# The lines of the score sheet, of handbook/handouts/w6.toml: one point each.
LINES = ("Right", "Of what peak", "Against whom", "Who did what", "What lost")
EMPTY = "…"  # what a template has where somebody must write

_FIELD = re.compile(r"- ([A-Z][^:]*): ?(.*)")
_HEADING = re.compile(r"## (.+?)[?:]?\s*")
_REMARK = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True)
class Due:
    """The day of one form: of the cohort, and in the calendar where the first Monday is known."""

    week: int
    day: int
    start: date | None = None

    @property
    def text(self) -> str:
        """The day in words."""
        if self.start is None:
            return f"week {self.week}, day {self.day}"
        return f"{self.start + timedelta(days=7 * (self.week - 1) + self.day - 1):%A, %Y-%m-%d}"


def due(root: Path, form: str, start: date | None = None) -> Due:
    """Return the day of a form, from the cohort's plan.

    Raises:
        Unusable: the plan has no such day.
    """
    for table in read_table(root / COHORT).get("capstone", []):
        if table.get("title") == FORMS[form]:
            return Due(int(table["week"]), int(table["day"]), start)
    raise Unusable(f"{COHORT}: no [[capstone]] is titled {FORMS[form]!r}")


def fields_of(text: str) -> dict[str, str]:
    """Return the fields of a form by their names; one that nobody has filled in is empty."""
    found: dict[str, str] = {}
    name = ""
    for line in _REMARK.sub("", text).splitlines():
        if matched := _FIELD.fullmatch(line):
            name = matched[1]
            found[name] = matched[2].strip()
        elif name and line.startswith("  ") and line.strip():
            found[name] = f"{found[name]} {line.strip()}".strip()
        else:
            name = ""
    return {name: "" if _is_empty(said) else said for name, said in found.items()}


def sections_of(text: str) -> dict[str, str]:
    """Return the sections of a worklog by their headings, without question marks and remarks."""
    found: dict[str, str] = {}
    name = ""
    for line in _REMARK.sub("", text).splitlines():
        if matched := _HEADING.fullmatch(line):
            name = matched[1]
            found[name] = ""
        elif name:
            found[name] += f"{line}\n"
    return {name: "" if _is_empty(said) else said.strip() for name, said in found.items()}


def _is_empty(said: str) -> bool:
    return not said.replace(EMPTY, "").strip(" \n*-_.")


def faults_of_form(folder: Path, form: str, root: Path, tasks: Mapping[str, Task]) -> list[str]:
    """Return what is missing or wrong in a form and in those that it is fed by, a line each."""
    names = list(FORMS)
    found: list[str] = []
    before: dict[str, str] = {}
    for name in names[: names.index(form) + 1]:
        path = folder / f"{name}.md"
        if not path.is_file():
            found.append(f"{name}.md: not there; copy {FOLDER}/{name}.md")
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if name == "worklog":
            found += worklog_faults(text)
            continue
        said = fields_of(text)
        wanted = fields_of((root / FOLDER / f"{name}.md").read_text(encoding="utf-8"))
        for key in wanted:
            if key not in said:
                found.append(f"{name}.md: {key}: the line is missing")
            elif not said[key]:
                found.append(f"{name}.md: {key}: nobody has filled it in")
            elif before.get(key) and before[key] != said[key]:
                found.append(f"{name}.md: {key}: {said[key]!r}, and the form before says {before[key]!r}")
        found += [f"{name}.md: {line}" for line in _more_faults(name, said, folder, tasks)]
        before |= {key: value for key, value in said.items() if value}
    return found


def _more_faults(form: str, said: Mapping[str, str], folder: Path, tasks: Mapping[str, Task]) -> list[str]:
    """Return what is wrong in what the fields say."""
    found = []
    task = tasks.get(said.get("Task", ""))
    if said.get("Task") and task is None:
        found.append(f"Task: no task {said['Task']!r}; there are {', '.join(tasks)}")
    if form == "plan":
        for key, due_ in (("Least bytes", task and task.least_bytes), ("Operations", task and task.flops)):
            if task and said.get(key) and _whole(said[key]) != due_:
                found.append(
                    f"{key}: {said[key]!r}, and {task.name} on {task.workload.as_text()} has another number"
                )
        hoped = said.get("Percent of peak hoped for", "")
        if hoped and not 0 < (_percent(hoped) or -1) <= 100:
            found.append(f"Percent of peak hoped for: {hoped!r}: expected a number above 0, up to 100")
    if form == "checkpoint" and (name := said.get("Report of the profiler")):
        found += report_faults(folder, name)
    return found


def report_faults(folder: Path, name: str) -> list[str]:
    """Return what is missing in the profiler's report on a kernel, the page of L7."""
    path = folder / name
    if Path(name).name != name or not path.is_file():
        return [f"report: {name!r}: no file of this folder; nox -s profile -- kernel.py --report writes one"]
    sections = sections_of(path.read_text(encoding="utf-8", errors="replace"))
    if missing := [heading for heading in HEADINGS if heading not in sections]:
        return [f"report: {name}: no heading {missing[0]!r}; nox -s profile -- kernel.py --report writes it"]
    if EMPTY in sections["Next"].split("Signed by")[0]:
        return [f"report: {name}: *Next* has a line that nobody has filled in"]
    return []


def worklog_faults(text: str) -> list[str]:
    """Return what is missing in a worklog: each line of the score sheet is a heading with something below it."""
    sections = sections_of(text)
    found = []
    for line in LINES:
        if line not in sections:
            found.append(f"worklog.md: no heading '## {line}'; it is a line of the score sheet")
        elif not sections[line]:
            found.append(f"worklog.md: {line}: nobody has written anything below it")
    return found


def _whole(text: str) -> int | None:
    digits = re.sub(r"[ ,_]", "", text)
    return int(digits) if digits.isdecimal() and len(digits) < 30 else None


def _percent(text: str) -> float | None:
    try:
        return float(text.removesuffix("%").strip())
    except ValueError:
        return None


def templates(root: Path) -> list[Path]:
    """Return the templates that a student begins with."""
    return [root / FOLDER / f"{name}.md" for name in FORMS] + [root / FOLDER / "entry.toml"]
