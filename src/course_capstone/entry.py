"""Entry of the capstone, a folder: entry.toml, the kernel, run.json, worklog.md; and what speaks against it.

who = "Ada"                  # as it shall stand on the board
task = "softmax"             # of `nox -s submit -- --tasks`
by = "human"                 # or "machine", "both"
file = "kernel.py"
card = "NVIDIA H200"         # as its driver calls it, or "none"
lost = "..."                 # one sentence: what lost, and why
tried = ["...", "..."]
record = "records/nvidia-h200/docs/start_here.ipynb:big.cuda"     # if need be: a measurement of the course's own
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_capstone.forms import EMPTY, FORMS, LINES, faults_of_form, fields_of, worklog_faults
from course_capstone.own_record import OwnRecord, read_own_record
from course_capstone.run import FILE as RUN
from course_capstone.run import hashes_of
from course_capstone.table_file import read_json, read_table, text_of
from course_capstone.tasks import Task
from course_judge.__main__ import Unusable
from course_kernels.line_count import spoken_lines
from course_kernels.measure.machine import Machine, machine_for
from course_kernels.measure.roofline import floor_us

FILE = "entry.toml"
KEYS = ("who", "task", "by", "file", "card", "lost", "tried", "record")
BY = ("human", "machine", "both")
NO_CARD = "none"
LONGEST = {"who": 60, "lost": 400}
MARKS = "marks.toml"
# A share of peak and the time that it was worked out from are two numbers in one file; rounding alone parts them.
ROUNDING = 0.005
# What the judge says of time. Its clock may count launches in, which are most of a time shorter than this.
JUDGED = re.compile(r"(\S+) takes ([\d.]+) µs")
LAUNCHES_US = 50.0


@dataclass(frozen=True)
class Entry:
    """An entry as entry.toml has it.

    Attributes:
        card: the card that it ran on, as its driver calls it; empty without one.
        record: a measurement of the course's own kernel that it is held against; None where it names none.
    """

    folder: Path
    who: str
    task: Task
    by: str
    file: str
    card: str
    lost: str
    tried: tuple[str, ...]
    record: OwnRecord | None = None

    @property
    def lines(self) -> int:
        """Lines of its sources that hold something besides a comment or a docstring."""
        return sum(len(spoken_lines(self.folder / name)) for name in hashes_of(self.folder))


@dataclass(frozen=True)
class Outcome:
    """An entry that nothing speaks against, with its run.

    Attributes:
        told: run.json.
        machine: data sheet of its card; None without a card.
    """

    entry: Entry
    told: Mapping[str, Any]
    machine: Machine | None

    @property
    def time_us(self) -> float | None:
        """Median time; None without a card."""
        found = self.told["profile"]["reading"].get("time_us")
        return None if found is None else float(found)

    @property
    def spread(self) -> float:
        """Spread of the time, as a share of it."""
        return float(self.told.get("spread") or 0.0)

    @property
    def of_peak(self) -> float | None:
        """Share of the peak that binds, worked out anew from the time; None without a card."""
        if self.machine is None or self.time_us is None:
            return None
        return self.entry.task.of_peak(self.time_us, self.machine)

    @property
    def launches(self) -> str:
        """Kernels that a call launches, in words."""
        if self.machine:
            return str(self.told["profile"]["reading"].get("launches", 1))
        found = self.told["verdict"]["evidence"].get("launches")
        if not found:
            return "not counted"
        return str(found[0]) if found[0] == found[1] else f"{found[0]} to {found[1]}"


def read_entry(folder: Path, root: Path, tasks: Mapping[str, Task]) -> Entry:
    """Return an entry as its file has it.

    Raises:
        Unusable: a key is missing, strange or wrong.
    """
    table = read_table(folder / FILE)
    if strange := sorted(set(table) - set(KEYS)):
        raise Unusable(f"{FILE}: no key {strange[0]!r}; there are {', '.join(KEYS)}")
    said = {key: text_of(table, key, FILE) for key in ("who", "task", "by", "file", "card", "lost")}
    for key, text in said.items():
        if text == EMPTY:
            raise Unusable(f"{FILE}: {key}: nobody has filled it in")
        if not text.isprintable() or len(text) > LONGEST.get(key, 200):
            raise Unusable(f"{FILE}: {key}: expected one line of at most {LONGEST.get(key, 200)} characters")
    if said["task"] not in tasks:
        raise Unusable(f"{FILE}: no task {said['task']!r}; there are {', '.join(tasks)}")
    if said["by"] not in BY:
        raise Unusable(f"{FILE}: by: expected {', '.join(BY)}, got {said['by']!r}")
    if Path(said["file"]).name != said["file"] or not said["file"].endswith(".py"):
        raise Unusable(f"{FILE}: file: expected the name of a .py of this folder, got {said['file']!r}")
    if not (folder / said["file"]).is_file():
        raise Unusable(f"{said['file']}: there is no such file beside {FILE}")
    tried = table.get("tried")
    lines = isinstance(tried, list) and all(isinstance(one, str) and one.strip(" …") for one in tried)
    if not lines or not tried:
        raise Unusable(f"{FILE}: tried: expected one line or more of what was tried, got {tried!r}")
    task, record = tasks[said["task"]], table.get("record")
    return Entry(
        folder,
        said["who"],
        task,
        said["by"],
        said["file"],
        "" if said["card"] == NO_CARD else said["card"],
        said["lost"],
        tuple(tried),
        None if record is None else read_own_record(text_of(table, "record", FILE), root, task),
    )


def examine(
    folder: Path, root: Path, tasks: Mapping[str, Task], card: str | None = None
) -> tuple[Outcome | None, list[str]]:
    """Return an entry with its run, and what is missing or wrong, a line each; with any of it no outcome.

    Args:
        card: the board's card as its driver calls it, empty for the board without one; None where there is no board.
    """
    if not folder.is_dir():
        return None, [f"{folder}: no folder"]
    found = marks_faults(folder) if (folder / MARKS).exists() else []
    worklog = folder / "worklog.md"
    if worklog.is_file():
        found += worklog_faults(worklog.read_text(encoding="utf-8", errors="replace"))
    else:
        found.append("worklog.md: not there; copy capstone/forms/worklog.md")
    try:
        entry = read_entry(folder, root, tasks)
    except Unusable as error:
        return None, [str(error), *found]
    found += earlier_faults(entry, root, tasks)
    if not (folder / RUN).exists():
        return None, [
            *found,
            f"{RUN}: not there; nox -s submit -- --run {folder} judges, profiles and writes it",
        ]
    try:
        told = read_json(folder / RUN)
        found += run_faults(entry, told, card)
    except Unusable as error:
        return None, [*found, str(error)]
    except (KeyError, TypeError, AttributeError, ValueError):
        return None, [*found, f"{RUN}: edited: it has not the form that --run gives it; run it again"]
    return (None, found) if found else (Outcome(entry, told, machine_for(entry.card)), [])


def earlier_faults(entry: Entry, root: Path, tasks: Mapping[str, Task]) -> list[str]:
    """Return what speaks against the forms before the worklog; an entry without any of them is not asked for them."""
    first, *_, last = [name for name in FORMS if name != "worklog"]
    if not any((entry.folder / f"{name}.md").is_file() for name in FORMS if name != "worklog"):
        return []
    found = faults_of_form(entry.folder, last, root, tasks)
    path = entry.folder / f"{first}.md"
    said = fields_of(path.read_text(encoding="utf-8", errors="replace")) if path.is_file() else {}
    for key, text in (("Who", entry.who), ("Task", entry.task.name)):
        if said.get(key) and said[key] != text:
            found.append(f"{FILE}: {key.lower()}: {text!r}, and {path.name} says {said[key]!r}")
    return found


def run_faults(entry: Entry, told: Mapping[str, Any], card: str | None = None) -> Iterator[str]:
    """Yield what speaks against a run, each line by its name."""
    from course_judge.judge import hash_of, hash_of_judge
    from course_judge.protocol.verdict import RIGHT, is_sealed

    if not is_sealed(told):
        yield f"edited: {RUN} has changed since it was sealed; run it again"
        return
    verdict, made, task = told["verdict"], told["provenance"], entry.task
    if not is_sealed(verdict):
        yield "edited: the judge's verdict has changed since the judge sealed it; run it again"
        return
    if (told["task"], told["size"], told["file"]) != (task.name, task.workload.as_text(), entry.file):
        yield f"another task: {RUN} is of {told['file']} for {told['task']} on {told['size']}; run it again"
    if told["files"] != (now := hashes_of(entry.folder)):
        names = sorted(name for name in {*now, *told["files"]} if now.get(name) != told["files"].get(name))
        yield f"stale code: {', '.join(names)}: not as it was when it ran; run it again"
    elif verdict["evidence"]["file"] != hash_of(entry.folder / entry.file):
        yield f"stale code: the verdict is on another file than {entry.file}; run it again"
    if verdict["evidence"]["judge"] != hash_of_judge(task.problem):
        yield f"stale judge: of another judge, or of another problem than {task.name} is now; run it again"
    if made["dirty"] is None:
        yield "no commit: git does not know the course's folder, so nobody can tell what judged it; see README.md"
    elif made["dirty"] is not False:
        yield "dirty tree: tracked files of the course differed from their commit when it ran; commit, run it again"
    if verdict["found"] != RIGHT:
        yield f"not right: {verdict['found']}: {verdict['why']}"
        return
    yield from _card_faults(entry, told, card)
    yield from _time_faults(entry, told)


def _card_faults(entry: Entry, told: Mapping[str, Any], card: str | None) -> Iterator[str]:
    ran_on = told["provenance"]["gpu"] or ""
    judged_on = told["verdict"]["evidence"]["on"].removeprefix("on ") if ran_on else ""
    profiled_on = (told["profile"] or {}).get("gpu") or ""
    if len({ran_on, judged_on, profiled_on}) > 1:
        where = " and ".join(sorted({name or "no card" for name in (ran_on, judged_on, profiled_on)}))
        yield f"other card: {RUN} is of {where}; run it on one"
    if entry.card != ran_on:
        yield f"other card: {FILE} says {entry.card or NO_CARD}, and it ran on {ran_on or 'no card'}"
    elif card is not None and card != ran_on:
        yield f"other card: it ran on {ran_on or 'no card'}, and the board is of {card or 'no card'}"


def _time_faults(entry: Entry, told: Mapping[str, Any]) -> Iterator[str]:
    if told["profile"] is None:
        yield f"no profile: the profiler found another answer than the judge; see nox -s profile -- {entry.file}"
        return
    reading, machine = told["profile"]["reading"], machine_for(told["provenance"]["gpu"] or "")
    time_us = reading["time_us"]
    if not told["provenance"]["gpu"]:
        if time_us is not None or told["spread"] is not None:
            yield "edited time: there was no card, and there is a time"
        return
    if time_us is None:
        yield f"no time: {RUN} is of a card and has none; run it again"
        return
    if not 0 < time_us < float("inf"):
        yield f"edited time: {time_us!r} is no time"
    elif machine:
        if time_us < floor_us(entry.task, machine):
            yield f"edited time: less than the floor on {machine.name}, {floor_us(entry.task, machine):.1f} µs"
        if (judged := _judged_us(entry, told)) and 2 * time_us < judged:
            yield f"edited time: {time_us:.1f} µs, and the judge, which has a clock of its own, saw {judged:.1f} µs"
        share, said = entry.task.of_peak(time_us, machine), reading["of_peak"]
        if said is None or abs(share - said) > ROUNDING * share:
            yield "edited time: the time and the share of peak that was worked out from it do not belong together"


def _judged_us(entry: Entry, told: Mapping[str, Any]) -> float | None:
    """Return what the sealed verdict says a call took; None where launches may be most of it."""
    for line in told["verdict"]["lines"]:
        found = JUDGED.match(line)
        if found and found[1] == entry.task.workload.label and float(found[2]) > LAUNCHES_US:
            return float(found[2])
    return None


def marks_faults(folder: Path) -> list[str]:
    """Return what is wrong in a mentor's marks: for each line of the score sheet a point, 0 or 1, and why."""
    try:
        table = read_table(folder / MARKS)
    except Unusable as error:
        return [str(error)]
    found = [f"{MARKS}: no line {name!r} on the score sheet" for name in table if name not in LINES]
    for line in LINES:
        mark = table.get(line)
        if not isinstance(mark, dict) or set(mark) != {"point", "why"}:
            found.append(f"{MARKS}: [{line!r}]: expected point and why")
        elif type(mark["point"]) is not int or mark["point"] not in (0, 1):
            found.append(f"{MARKS}: [{line!r}]: point: expected 0 or 1, got {mark['point']!r}")
        elif not isinstance(mark["why"], str) or not mark["why"].strip():
            found.append(f"{MARKS}: [{line!r}]: why: nobody has said it")
    return found


def points(folder: Path) -> int:
    """Return the sum of the marks."""
    return sum(mark["point"] for mark in read_table(folder / MARKS).values())
