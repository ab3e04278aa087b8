"""The least time a workload can take on a card: pure arithmetic on the data sheet.

    floor = max(cold bytes / bandwidth, operations / peak)

Cold bytes are all reads (the clock empties the cache before every sample) and the writes that do not fit into
L2, since a kernel may end while its last writes are still there.
"""

from __future__ import annotations

from typing import Protocol

from course_kernels.measure.errors import Refused
from course_kernels.measure.machine import Machine


class FasterThanFloor(Refused):
    """A time below the least possible: the work was not done inside the timed range."""


class Cost(Protocol):
    """The least a workload needs: bytes from and to memory, and operations of one arithmetic."""

    @property
    def reads_bytes(self) -> int:
        """Bytes that must be read."""

    @property
    def writes_bytes(self) -> int:
        """Bytes that must be written."""

    @property
    def flops(self) -> int:
        """Operations that must be done."""

    @property
    def math(self) -> str:
        """Arithmetic peak that they count against."""


def memory_floor_us(cost: Cost, machine: Machine) -> float:
    """Microseconds that the cold bytes need at data-sheet bandwidth."""
    cold_bytes = cost.reads_bytes + max(0, cost.writes_bytes - machine.l2_bytes)
    return cold_bytes / (machine.bandwidth_gb_per_s * 1e3)


def compute_floor_us(cost: Cost, machine: Machine) -> float:
    """Microseconds that the operations need at the data-sheet peak; 0 where the card has no such peak."""
    peak = machine.peak_tflops.get(cost.math)
    return 0.0 if peak is None else cost.flops / (peak * 1e6)


def floor_us(cost: Cost, machine: Machine) -> float:
    """Return the least possible time in microseconds."""
    return max(memory_floor_us(cost, machine), compute_floor_us(cost, machine))


def bound(cost: Cost, machine: Machine) -> str:
    """Return what binds the workload on this card: "memory" or "compute"."""
    return "memory" if memory_floor_us(cost, machine) >= compute_floor_us(cost, machine) else "compute"


def check_floor(what: str, median_us: float, cost: Cost, machine: Machine | None) -> None:
    """Refuse a median below the floor; a card without a data sheet has no floor.

    Raises:
        FasterThanFloor: the median is below the least possible time.
    """
    if machine is None:
        return
    floor = floor_us(cost, machine)
    if not median_us >= floor:
        raise FasterThanFloor(
            f"{what}: faster than the floor: it took {median_us / floor:.2g} of the least possible time on "
            f"{machine.name} ({bound(cost, machine)} binds), so the work was not done inside the timed range"
        )
