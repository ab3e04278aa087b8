"""Profile of one kernel, as it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from course_kernels.measure.machine import Machine
from course_kernels.problem import Workload
from course_profile.measurement import Reading
from course_profile.occupancy import Occupancy
from course_profile.subject import Subject


@dataclass(frozen=True)
class Profile:
    """Profile of one kernel.

    Attributes:
        subject: what was asked for.
        workload: the size.
        formula: what it computes.
        reading: clock, counters and launch.
        machine: the data sheet; without a GPU, and for a card we have no source for, that of the reference card.
        gpu: the card's name; empty where there is none.
        math: the arithmetic that counts.
        places: occupancy, worked out from what the compiler says; None where that is not known.
        launch: grid, block and dynamic shared memory of a `.cu`; empty where that is not known.
        resources: registers, static shared memory and local memory that the compiler gave it; empty where not known.
        checked: how the answer was checked.
        spread: between the medians of the blocks, of the time; None where nothing was timed.
        missing: lines that say what could not be done, and why.
    """

    subject: Subject
    workload: Workload
    formula: str
    reading: Reading
    machine: Machine
    gpu: str = ""
    math: str = "fp32"
    places: Occupancy | None = None
    launch: Sequence[Any] = ()
    resources: Sequence[int] = ()
    checked: str = ""
    spread: float | None = None
    missing: tuple[str, ...] = ()

    @property
    def intensity(self) -> float:
        """Operations for each byte that must move."""
        least = self.reading.least_bytes or 1
        return (self.reading.flops or 0) / least
