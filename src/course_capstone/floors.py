"""Least bytes and operations of every task, kept in a file: with a data sheet they are its floor, without torch.

A page is built where no problem can be loaded. `python -m course_capstone --keep` works them out anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from course_capstone.tasks import Task

KEPT = Path(__file__).with_name("floors.json")


@dataclass(frozen=True)
class Least:
    """The least that a task needs.

    Attributes:
        level: what it is of, in words.
        label: its size, such as "M16384-N8192-float32".
        math: arithmetic peak that its operations count against.
    """

    level: str
    label: str
    reads_bytes: int
    writes_bytes: int
    flops: int
    math: str


def worked_out(tasks: Mapping[str, Task]) -> dict[str, Least]:
    """Return what every task needs, from its problem."""
    return {
        name: Least(
            task.level, task.workload.label, task.reads_bytes, task.writes_bytes, task.flops, task.math
        )
        for name, task in tasks.items()
    }


def as_text(least: Mapping[str, Least]) -> str:
    """Return the file's text."""
    return json.dumps({name: asdict(one) for name, one in least.items()}, indent=1) + "\n"


def kept(file: Path = KEPT) -> dict[str, Least]:
    """Return what is kept, by task, in the order of the list."""
    return {name: Least(**one) for name, one in json.loads(file.read_text(encoding="utf-8")).items()}
