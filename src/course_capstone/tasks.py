"""Tasks of the capstone with their floors, worked out from problem and data sheet; nothing is measured.

They are those of the harness that are for students, on the size that it times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from course_harness.recorded import series
from course_harness.tasks import FILE, LEVELS
from course_harness.tasks import Unusable as NoTask
from course_harness.tasks import tasks as of_the_harness
from course_judge.__main__ import Unusable, find_problem
from course_kernels.measure.machine import MACHINES, Machine, machine_for
from course_kernels.measure.roofline import bound, floor_us
from course_kernels.problem import Problem, Workload


@dataclass(frozen=True)
class Task:
    """One task: a problem on one size. It has what a floor is worked out from.

    Attributes:
        level: what it is of, in words, such as "a single operator".
    """

    problem: Problem
    workload: Workload
    level: str

    @property
    def name(self) -> str:
        """The problem's name."""
        return self.problem.name

    @property
    def reads_bytes(self) -> int:
        """Bytes that must be read."""
        return self.problem.reads_bytes(self.workload)

    @property
    def writes_bytes(self) -> int:
        """Bytes that must be written."""
        return self.problem.writes_bytes(self.workload)

    @property
    def least_bytes(self) -> int:
        """Bytes that must move."""
        return self.reads_bytes + self.writes_bytes

    @property
    def flops(self) -> int:
        """Operations that must be done."""
        return self.problem.flops(self.workload)

    @property
    def math(self) -> str:
        """Arithmetic peak that they count against."""
        return self.problem.math(self.workload)

    def peak(self, machine: Machine) -> str:
        """Return the peak that binds on a card, in words."""
        return "memory bandwidth" if bound(self, machine) == "memory" else f"{self.math} arithmetic"

    def of_peak(self, time_us: float, machine: Machine) -> float:
        """Return the share of the peak that binds: its bytes or operations in a time, against the data sheet."""
        if bound(self, machine) == "memory":
            return self.least_bytes / (time_us * machine.bandwidth_gb_per_s * 1e3)
        return self.flops / (time_us * machine.peak_tflops[self.math] * 1e6)


def read_tasks(file: Path = FILE) -> dict[str, Task]:
    """Return the tasks by the names of their problems, in the order of the file.

    Raises:
        Unusable: the file is wrong, in one line.
    """
    try:
        told = [one for one in of_the_harness(file).values() if one.students]
        return {one.name: _task(file, one.name, one.time, LEVELS[one.level]) for one in told}
    except NoTask as error:
        raise Unusable(str(error)) from None


def _task(file: Path, name: str, size: str, level: str) -> Task:
    problem = find_problem(name)
    try:
        workload = Workload.parse(size)
    except (TypeError, ValueError) as error:
        raise Unusable(f"{file.name}: [{name}]: time: {error}") from None
    if set(workload.dims) not in [set(known.dims) for known in problem.time_on]:
        has = ", ".join(problem.time_on[0].dims)
        raise Unusable(f"{file.name}: [{name}]: time: {size}: {name} has {has}")
    return Task(problem, workload, level)


def find_machine(name: str) -> Machine:
    """Return a card's data sheet by its short name, or as the driver or NVIDIA calls it.

    Raises:
        Unusable: there is none.
    """
    for machine in MACHINES:
        if name.lower() in (machine.slug, machine.name.lower()):
            return machine
    if found := machine_for(name):
        return found
    raise Unusable(f"no data sheet of {name!r}; there are {', '.join(m.slug for m in MACHINES)}")


def listed(tasks: Mapping[str, Task], machine: Machine) -> str:
    """Return the list for a terminal: what must move, what must be done, the least time and what binds."""
    rows = [("task", "level", "size", "bytes", "operations", "floor in µs", "bound by")]
    for task in tasks.values():
        floor = (
            f"{floor_us(task, machine):,.1f}" if task.flops == 0 or _has_peak(task, machine) else "no peak"
        )
        size = task.workload.as_text()
        rows.append(
            (
                task.name,
                task.level,
                size,
                f"{task.least_bytes:,}",
                f"{task.flops:,}",
                floor,
                task.peak(machine),
            )
        )
    wide = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, wide, strict=True)).rstrip() for row in rows
    ]
    return "\n".join([f"{machine.name}: floors by its data sheet, not measured", *lines])


def where_words_are(root: Path, tasks: Mapping[str, Task]) -> str:
    """Return how to see what a task asks for, and what a model proposed for it, for a student who has none.

    Raises:
        Unusable: a recorded proposal is not as it was made.
    """
    lines = ["what a task asks for, word for word: nox -s harness -- TASK --words"]
    try:
        of_task = {name: ", ".join(series(root, name)) for name in tasks}
    except NoTask as error:
        raise Unusable(str(error)) from None
    for names in dict.fromkeys(of_task.values()):
        having = ", ".join(name for name, has in of_task.items() if has == names)
        who = "every task" if len(set(of_task.values())) == 1 else having
        if names:
            lines.append(
                f"without a model, for {who}: nox -s harness -- TASK --series NAME, NAME one of {names}; "
                "their files lie in proposals/TASK/NAME"
            )
        else:
            lines.append(f"without a model, nothing is recorded for {who}")
    return "\n".join(lines)


def _has_peak(task: Task, machine: Machine) -> bool:
    return task.math in machine.peak_tflops
