"""Tasks of the capstone with their floors, worked out from problem and data sheet; nothing is measured.

[[task]]
problem = "softmax"                           # a folder of src/course_kernels
level = "operator"                            # or "fusion", "block"
size = "dtype=float32,M=16384,N=8192"         # left out: the first size that the problem times
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from course_capstone.table_file import read_tables, text_of
from course_judge.__main__ import Unusable, find_problem
from course_kernels.measure.machine import MACHINES, Machine, machine_for
from course_kernels.measure.roofline import bound, floor_us
from course_kernels.problem import Problem, Workload

FILE = "capstone/tasks.toml"
LEVELS = ("operator", "fusion", "block")


@dataclass(frozen=True)
class Task:
    """One task: a problem on one size. It has what a floor is worked out from.

    Attributes:
        level: "operator", "fusion" of several, or "block" of a model.
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


def read_tasks(root: Path) -> dict[str, Task]:
    """Return the tasks by the names of their problems, in the order of the file.

    Raises:
        Unusable: the file is wrong, in one line.
    """
    found: dict[str, Task] = {}
    for number, table in enumerate(read_tables(root / FILE, "task"), 1):
        where = f"{FILE}: task {number}"
        if strange := sorted(set(table) - {"problem", "level", "size"}):
            raise Unusable(f"{where}: no key {strange[0]!r}; there are problem, level, size")
        problem = find_problem(text_of(table, "problem", where))
        level = text_of(table, "level", where)
        if level not in LEVELS:
            raise Unusable(f"{where}: level {level!r}; there are {', '.join(LEVELS)}")
        if problem.name in found:
            raise Unusable(f"{where}: {problem.name} is there twice")
        found[problem.name] = Task(problem, _workload(table.get("size"), problem, where), level)
    return found


def _workload(size: object, problem: Problem, where: str) -> Workload:
    if size is None:
        return problem.time_on[0]
    try:
        workload = Workload.parse(str(size))
    except (TypeError, ValueError) as error:
        raise Unusable(f"{where}: {error}") from None
    if set(workload.dims) not in [set(known.dims) for known in problem.time_on]:
        raise Unusable(f"{where}: {size}: {problem.name} has {', '.join(problem.time_on[0].dims)}")
    return workload


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


def listed(tasks: dict[str, Task], machine: Machine) -> str:
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


def _has_peak(task: Task, machine: Machine) -> bool:
    return task.math in machine.peak_tflops
