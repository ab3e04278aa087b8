"""The course's own kernel on a task: a measurement in a committed record, named as PATH:name."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_capstone.table_file import read_json
from course_capstone.tasks import Task
from course_judge.__main__ import Unusable
from course_kernels.measure.derive import derive
from course_kernels.measure.machine import machine_for
from course_kernels.measure.record_types import Measurement

DATA = "application/vnd.course.record+json"


@dataclass(frozen=True)
class OwnRecord:
    """A measurement of the course's own.

    Attributes:
        path: of the record, and the name in it.
        kernel: what was measured, such as "vector_add/k01_cuda".
        of_peak: share of the peak that binds on its card; None for a card without a data sheet.
    """

    path: str
    kernel: str
    card: str
    date: str
    commit: str
    of_peak: float | None


def read_own_record(text: str, root: Path, task: Task) -> OwnRecord:
    """Return the measurement behind PATH:name.

    Raises:
        Unusable: no such record, changed since its commit, or of another workload than the task's.
    """
    path, _, name = text.partition(":")
    file = root / path
    if not file.resolve().is_relative_to((root / "records").resolve()) or not file.is_file() or not name:
        raise Unusable(f"record: {text!r}: expected records/CARD/PAGE.ipynb:NAME, a file that is there")
    if _has_changed(file, root):
        raise Unusable(f"record: {path} is not as it was committed")
    notebook = read_json(file)
    leaf: Any = _names(notebook)
    try:
        for part in name.split("."):
            leaf = leaf[part]
        found = Measurement.from_json(leaf)
        about = notebook["metadata"]["course"]["provenance"]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Unusable(f"record: {path} has no measurement {name!r}") from None
    if found.workload != task.workload.as_json() or not found.kernel.startswith(f"{task.name}/"):
        raise Unusable(f"record: {text} is of {found.kernel} on {found.workload}, and the task is {task.name} on "
                       f"{task.workload.as_text()}")  # fmt: skip
    share = derive(found, "of_peak", machine=machine_for(about["gpu"]))
    return OwnRecord(text, found.kernel, about["gpu"], about["date"][:10], about["commit"], share)


def _names(notebook: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for cell in notebook.get("cells", []):
        for output in cell.get("outputs", []):
            found |= output.get("data", {}).get(DATA, {}).get("names", {})
    return found


def _has_changed(file: Path, root: Path) -> bool:
    """Return whether a file differs from its commit; True where nobody can say."""
    asked = ["git", "-C", str(root), "status", "--porcelain", "--", str(file)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.returncode != 0 or bool(done.stdout.strip())
