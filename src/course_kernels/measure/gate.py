"""The physical gate: no recorded rate is above what the card can do, and no median below the least possible time.

Asked twice, with the same answer: when a page records, and again when the site is rendered, of the data sheets as they
are then. Needs neither torch nor NumPy.

What limits a rate is said where it is recorded, as `of`:

    hbm           device memory, by the data sheet
    hbm:1024      1024 MiB that are read round and round: in every lap, L2 may hold as much of them as fits
    l2, l1        what a multiprocessor takes in; in each clock: L1 of one of them, L2 of the whole card
    shared        the banks; in each clock: of one multiprocessor
    fp32          the lanes; in each clock: of one multiprocessor
    tensor:bf16   the tensor cores, by their arithmetic; in each clock: of one multiprocessor
"""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Iterator, Sequence

from course_kernels.measure.errors import Refused
from course_kernels.measure.machine import MIB, Machine, machine_for
from course_kernels.measure.record_types import Leaf, Measurement, Quantity, Samples, Trace
from course_kernels.measure.roofline import floor_us

SYNTAX = "hbm, hbm:<MiB>, l2, l1, shared, fp32 or tensor:<arithmetic>"

# One reading may lie above a limit by what its clock can be off. The timer of the whole card moves in steps of up to
# a microsecond; a reading takes a hundred of them and more. A median has no such excuse.
READING = 0.01

# What a pair of CUDA events is good to, in microseconds.
EVENT_US = 0.5

# What is worked out by hand from a bus, a clock, a number of lanes is no reading, and no data sheet: the sheet prints
# such a product with two or three digits.
SHEET = 0.01

_UNIT = re.compile(r"(?P<scale>[kMGTP]i?|)(?P<what>B|FLOP|OP)/(?P<per>s|clk)")
_SCALES = {"": 1.0, **{f"{letter}": 1e3**n for n, letter in enumerate("kMGTP", 1)}}
_SCALES |= {f"{letter}i": 1024.0**n for n, letter in enumerate("kMGTP", 1)}
# How the columns of a trace end: they have no unit of their own.
_COLUMNS = {"tflops": "TFLOP/s", "gflops": "GFLOP/s", "gb_per_s": "GB/s", "tb_per_s": "TB/s"}


class AboveLimit(Refused):
    """A rate above what the card can do: the work was not done inside the timed range, or its clock is wrong."""


def check(path: str, leaf: Leaf, machine: Machine | None) -> None:
    """Refuse a result that cannot be.

    Args:
        path: name under which it is recorded.
        leaf: what is recorded.
        machine: data sheet of the card; without one, only what a rate says of itself is asked.
    Raises:
        ValueError: a rate that does not say what limits it.
        AboveLimit: above its limit, or below the least possible time.
    """
    for complaint in unlabelled(path, leaf):
        raise ValueError(f"record: {complaint}")
    for complaint in impossible(path, leaf, machine):
        raise AboveLimit(complaint)


def complaints(path: str, leaf: Leaf, machine: Machine | None) -> Iterator[str]:
    """Yield what speaks against a leaf, a line each: of what `check` raises, all."""
    said = list(unlabelled(path, leaf))
    yield from said or impossible(path, leaf, machine)


def running_machine() -> Machine | None:
    """Return the data sheet of the card that torch uses now; None without torch, a card or a sheet."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    return machine_for(torch.cuda.get_device_name())


def is_rate(unit: str) -> bool:
    """Return whether a unit counts bytes or operations in a second or in a clock."""
    return _UNIT.fullmatch(unit) is not None


def unlabelled(path: str, leaf: Leaf) -> Iterator[str]:
    """Yield the rates of a leaf that do not say what limits them, or not in full."""
    for name, unit, of, sm_mhz in _rates(path, leaf):
        if not of:
            yield f"{name} is a rate in {unit} and does not say what limits it: write of= with {SYNTAX}"
        elif not _known(of):
            yield f'{name}: of="{of}" is no limit: write {SYNTAX}'
        elif (of == "hbm" or of.startswith("hbm:")) and unit.endswith("/clk") and not sm_mhz:
            yield f"{name} is a rate of {of} in {unit}: write sm_mhz= with the clock of the same launches"


def impossible(path: str, leaf: Leaf, machine: Machine | None) -> Iterator[str]:
    """Yield what of a leaf is more than the card can do."""
    if machine is None:
        return
    if isinstance(leaf, Measurement):
        yield from _too_fast(path, leaf, machine)
    for name, unit, of, sm_mhz in _rates(path, leaf):
        limit = limit_of(of, unit, sm_mhz, machine) if _known(of) else None
        if limit is None:
            continue
        middle, high, room = _judged(leaf, name)
        for value, allowed, what in ((middle, room, ""), (high, READING, "its highest readings, ")):
            if value > limit * (1 + allowed) * (1 + 1e-9):
                yield (
                    f"{name}: {what}{value:.4g} {unit} of {of}, is above what {machine.name} can do, {limit:.4g} "
                    f"{unit}: the work was not done inside the timed range, or the clock is wrong"
                )
                break


def limit_of(of: str, unit: str, sm_mhz: float | None, machine: Machine) -> float | None:
    """Return the most that a card can do, in a unit.

    Args:
        of: which limit, see above.
        unit: "B/clk", "TB/s", "FLOP/clk" …
        sm_mhz: the clock of the multiprocessors, where it is known.
        machine: the data sheet.
    Returns:
        The limit; None where the sheet does not have it, or the unit is not one of that limit.
    """
    found = _UNIT.fullmatch(unit)
    if found is None:
        return None
    of_bytes = found["what"] == "B"
    scale, per_clock = _SCALES[found["scale"]], found["per"] == "clk"
    sms = machine.multiprocessors
    name, _, detail = of.partition(":")
    if of_bytes != (name not in ("fp32", "tensor")):
        return None
    if name == "hbm":
        per_second: float | None = machine.bandwidth_gb_per_s * 1e9
        if detail:
            span = int(detail) * MIB
            in_l2 = _per_second(_load_bytes(machine), sm_mhz, machine)
            if span > machine.l2_bytes:
                per_second = machine.bandwidth_gb_per_s * 1e9 * span / (span - machine.l2_bytes)
                per_second = per_second if in_l2 is None else min(per_second, in_l2)
            else:
                per_second = in_l2
        if per_second is None or (per_clock and not sm_mhz):
            return None
        return per_second / (sm_mhz * 1e6 if per_clock and sm_mhz else 1.0) / scale
    if name == "tensor" and not per_clock:
        peak = machine.peak_tflops.get(detail)
        return None if peak is None else peak * 1e12 / scale
    if name == "fp32" and not per_clock:
        return machine.peak_tflops["fp32"] * 1e12 / scale
    if sms is None:
        return None
    if name == "l2":
        whole_card: float | None = _load_bytes(machine)
        limit = whole_card if per_clock else _per_second(whole_card, sm_mhz, machine)
    elif name in ("l1", "shared"):
        limit = sms.load_bytes if per_clock else _per_second(_load_bytes(machine), sm_mhz, machine)
    else:
        limit = 2.0 * sms.fp32_lanes if name == "fp32" else sms.tensor_flops.get(detail)
    return None if limit is None else limit / scale


def _load_bytes(machine: Machine) -> float | None:
    """Return what all multiprocessors together take in, in each clock."""
    sms = machine.multiprocessors
    return None if sms is None else float(sms.count * sms.load_bytes)


def _per_second(each_clock: float | None, sm_mhz: float | None, machine: Machine) -> float | None:
    if each_clock is None or machine.multiprocessors is None:
        return None
    return each_clock * (sm_mhz or machine.multiprocessors.max_mhz) * 1e6


def _known(of: str) -> bool:
    return re.fullmatch(r"hbm(:[1-9]\d*)?|l2|l1|shared|fp32|tensor:\w+", of) is not None


def _rates(path: str, leaf: Leaf) -> Iterator[tuple[str, str, str, float | None]]:
    """Yield every rate of a leaf that is no figure of somebody else's: name, unit, what limits it, the clock."""
    if isinstance(leaf, Quantity | Samples):
        if is_rate(leaf.unit) and leaf.how != "given":
            yield path, leaf.unit, leaf.of, leaf.sm_mhz
    elif isinstance(leaf, Trace):
        for column in leaf.columns:
            unit = next((unit for end, unit in _COLUMNS.items() if re.search(rf"(^|_){end}$", column)), None)
            if unit:
                yield f"{path}.{column}", unit, leaf.of.get(column, ""), None


def _judged(leaf: Leaf, name: str) -> tuple[float, float, float]:
    """Return the middle of a rate, its highest readings, and how far the middle may lie above its limit."""
    if isinstance(leaf, Samples):
        return leaf.quantiles["0.5"], leaf.quantiles["0.95"], 0.0
    if isinstance(leaf, Trace):
        column: Sequence[float] = leaf.columns[name.rpartition(".")[2]]
        return statistics.median(column), sorted(column)[int(0.95 * (len(column) - 1))], 0.0
    assert isinstance(leaf, Quantity)
    return leaf.value, leaf.value, SHEET if leaf.how == "computed" else 0.0


def _too_fast(path: str, leaf: Measurement, machine: Machine) -> Iterator[str]:
    floor = floor_us(leaf, machine)
    median, quick = leaf.median_us, leaf.quantiles_us["0.05"]
    for value, least, what in ((median, floor, "it took"), (quick, floor - EVENT_US, "its quickest took")):
        if not value >= least:
            yield (
                f"{path}: {leaf.kernel} is faster than the floor: {what} {value:.4g} µs, the least possible time on "
                f"{machine.name} is {floor:.4g} µs: the work was not done inside the timed range"
            )
            return
