"""Measurement of one kernel on one workload, by clock, counters and launch. Plain data.

Of what a call launches the kernel that ran longest is the one that is looked at; bytes are those of the whole call.
A counter that the card, or its profiler, does not have is missing here, and a rule that reads it is not asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

TIME = "gpu__time_duration.sum"
SM_BUSY = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY_BUSY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
DRAM_BUSY = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
ISSUE = "smsp__issue_active.avg.pct_of_peak_sustained_active"
WARPS = "sm__warps_active.avg.pct_of_peak_sustained_active"
SMS_BUSY = "sm__cycles_active.avg.pct_of_peak_sustained_elapsed"
TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
INSTRUCTIONS = "smsp__inst_executed.sum"
LANES = "smsp__thread_inst_executed_per_inst_executed.ratio"

LOAD_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
LOAD_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
STORE_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"
STORE_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
LOAD_USED = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"
STORE_USED = "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio"
# What goes past L1.
FROM_L2, TO_L2 = "lts__t_sectors_srcunit_tex_op_read.sum", "lts__t_sectors_srcunit_tex_op_write.sum"

CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
STORE_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"
TURNS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
STORE_TURNS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"

LOCAL_LOADS = "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum"
LOCAL_STORES = "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"

# Additions to memory, over all slices of L2 and in the busiest one. Those whose result nobody reads are `red`.
REDUCED, REDUCED_IN_ONE = "lts__t_sectors_op_red.sum", "lts__t_sectors_op_red.max"
ATOMICS, ATOMICS_IN_ONE = "lts__t_sectors_op_atom.sum", "lts__t_sectors_op_atom.max"

GRID, BLOCK = "launch__grid_size", "launch__block_size"
REGISTERS = "launch__registers_per_thread"
SHARED = "launch__shared_mem_per_block"
WAVES = "launch__waves_per_multiprocessor"
LIMITS = {
    "registers": "launch__occupancy_limit_registers",
    "shared memory": "launch__occupancy_limit_shared_mem",
    "warps": "launch__occupancy_limit_warps",
    "blocks": "launch__occupancy_limit_blocks",
}

STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
# Why a warp issued nothing. Who issued (selected), and who could have and was not chosen (not_selected), waits for
# nothing: they are no reason.
REASONS = (
    "barrier",
    "branch_resolving",
    "dispatch_stall",
    "drain",
    "gmma",
    "imc_miss",
    "lg_throttle",
    "long_scoreboard",
    "math_pipe_throttle",
    "membar",
    "mio_throttle",
    "misc",
    "no_instruction",
    "short_scoreboard",
    "sleeping",
    "tex_throttle",
    "wait",
)

METRICS = (
    *(TIME, SM_BUSY, MEMORY_BUSY, DRAM_BUSY, ISSUE, WARPS, SMS_BUSY, TENSOR, INSTRUCTIONS, LANES),
    *(LOAD_REQUESTS, LOAD_SECTORS, STORE_REQUESTS, STORE_SECTORS, LOAD_USED, STORE_USED, FROM_L2, TO_L2),
    *(CONFLICTS, STORE_CONFLICTS, TURNS, STORE_TURNS, LOCAL_LOADS, LOCAL_STORES),
    *(REDUCED, REDUCED_IN_ONE, ATOMICS, ATOMICS_IN_ONE),
    *(GRID, BLOCK, REGISTERS, SHARED, WAVES, *LIMITS.values()),
    *map(STALL.format, REASONS),
)


# Shares of a few reasons are no shares of all waiting: a largest one needs so many to be the largest of.
ENOUGH_REASONS = 7


class NotCounted(Exception):
    """Error: a rule asked for what this reading does not have; the message is its name."""


@dataclass(frozen=True)
class Reading:
    """One kernel on one workload.

    Attributes:
        kernel: the name of the kernel that was looked at.
        counters: by ncu's name, in base units: bytes, percent, and nanoseconds for `TIME`.
        launches: kernels that the call launches.
        kernels_us: the time of all of them together, as the profiler saw it.
        read_bytes, write_bytes: counted, from and to device memory, over the whole call.
        time_us: the median of the call, by the house's clock.
        host_us: what the call costs the host.
        floor_us, of_peak, bound: by the data sheet; None where there is none for this card.
        least_read_bytes, least_write_bytes, flops: of the problem.
        sms: multiprocessors of the card.
        missing: counters that were asked for and not told.
    """

    kernel: str = ""
    counters: Mapping[str, float] = field(default_factory=dict)
    launches: int = 1
    kernels_us: float | None = None
    read_bytes: float | None = None
    write_bytes: float | None = None
    time_us: float | None = None
    host_us: float | None = None
    floor_us: float | None = None
    of_peak: float | None = None
    bound: str = ""
    least_read_bytes: int | None = None
    least_write_bytes: int | None = None
    flops: int | None = None
    sms: int | None = None
    missing: Sequence[str] = ()

    def __getitem__(self, name: str) -> float:
        """Return a counter.

        Raises:
            NotCounted: it was not told.
        """
        if name not in self.counters:
            raise NotCounted(name)
        return self.counters[name]

    def known(self, attribute: str) -> float:
        """Return an attribute that is a number.

        Raises:
            NotCounted: it is not known.
        """
        value = getattr(self, attribute)
        if value is None:
            raise NotCounted(attribute)
        return float(value)

    @property
    def least_bytes(self) -> int | None:
        """Bytes that must move, each once."""
        if self.least_read_bytes is None or self.least_write_bytes is None:
            return None
        return self.least_read_bytes + self.least_write_bytes

    @property
    def counted_bytes(self) -> float | None:
        """Bytes that did move."""
        if self.read_bytes is None or self.write_bytes is None:
            return None
        return self.read_bytes + self.write_bytes

    @property
    def stalls(self) -> dict[str, float]:
        """Share of their waiting that warps spend on each reason, largest first; {} if none is counted."""
        found = {reason: self.counters.get(STALL.format(reason), 0.0) for reason in REASONS}
        total = sum(found.values())
        if not total:
            return {}
        ordered = sorted(found.items(), key=lambda item: -item[1])
        return {reason: value / total for reason, value in ordered if value}

    @property
    def stall(self) -> tuple[str, float]:
        """The largest of them, and its share.

        Raises:
            NotCounted: not enough of them are counted.
        """
        if sum(STALL.format(reason) in self.counters for reason in REASONS) < ENOUGH_REASONS:
            raise NotCounted("stall reasons")
        return next(iter(self.stalls.items()), ("", 0.0))

    @property
    def occupancy_limit(self) -> tuple[str, int]:
        """Limit of the blocks that one multiprocessor holds, by name, and how many; several at once are all named.

        Raises:
            NotCounted: the launch was not told.
        """
        found = {name: int(self[metric]) for name, metric in LIMITS.items()}
        least = min(found.values())
        return " and ".join(name for name, blocks in found.items() if blocks == least), least

    @property
    def waves(self) -> float:
        """Number of times the blocks fill the card. Worked out if the card is known: the profiler has two digits of it.

        Raises:
            NotCounted: the launch was not told.
        """
        told = self[WAVES]
        if self.sms is None or not all(metric in self.counters for metric in (GRID, *LIMITS.values())):
            return told
        return self[GRID] / (self.sms * max(self.occupancy_limit[1], 1))

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Reading:
        """Return the inverse of `as_json`.

        Raises:
            ValueError: a key that no reading has.
        """
        strange = sorted(set(data) - {f.name for f in fields(cls)})
        if strange:
            raise ValueError(f"a reading has no {strange[0]!r}")
        return cls(**{**data, "missing": tuple(data.get("missing", ()))})
