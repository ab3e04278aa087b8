"""What a page records, as plain data; and every number that is derived from it.

Only samples, counts and the state of the card are stored. Rates, fractions and units are worked out here when
the site is rendered, so a formula can be mended without a GPU. Needs neither torch nor a GPU.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from course_kernels.measure.machine import Machine
from course_kernels.measure.roofline import bound, compute_floor_us, floor_us, memory_floor_us

# A time in microseconds, or an array of resampled times: everything derived from it has the same shape.
Time = float | np.ndarray

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
MAX_STORED_SAMPLES = 200
HOW = ("counted", "computed", "device", "given", "timed")


@dataclass(frozen=True)
class Measurement:
    """The samples of one kernel on one workload on one GPU, taken after its answer was checked.

    Attributes:
        kernel: kernel id, "attention/k03_flash" or "attention/library.sdpa_flash".
        workload: {"dtype": ..., "dims": {...}}.
        n: number of samples taken.
        samples_us: at most 200 of them, microseconds, from evenly spaced rounds, the same rounds in a group.
        quantiles_us: quantiles of all n samples, keys as text: "0", "0.05" … "1".
        group: what competitors timed together share; their samples are paired by round.
        rounds: rounds of the group.
        reads_bytes, writes_bytes, flops, math: the least cost of the workload.
        error: the worst element's error, over all checks.
        allowed: the largest error a right answer can have.
        before, after: state of the card around the rounds: sm_mhz, memory_mhz, power_w, temperature_c, throttle.
    """

    kind: ClassVar[str] = "measurement"

    kernel: str
    workload: Mapping[str, Any]
    n: int
    samples_us: Sequence[float]
    quantiles_us: Mapping[str, float]
    group: str
    rounds: int
    reads_bytes: int
    writes_bytes: int
    flops: int
    math: str
    error: float
    allowed: float
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)

    @property
    def median_us(self) -> float:
        """The central time: the median of all samples, in microseconds."""
        return self.quantiles_us["0.5"]

    @property
    def spread(self) -> float:
        """Interquartile range over median."""
        return (self.quantiles_us["0.75"] - self.quantiles_us["0.25"]) / self.median_us

    def derive(self, attribute: str, time_us: Time | None = None, machine: Machine | None = None) -> Any:
        """A derived value, at the median or at other times.

        Args:
            attribute: one of `ATTRIBUTES`.
            time_us: microseconds, or an array of them; what depends on time then has its shape.
            machine: the data sheet of the card.
        Returns:
            The value in the unit `ATTRIBUTES` names; None where it needs a peak that `machine` does not have.
        Raises:
            KeyError: unknown attribute; the message lists the known ones.
        """
        if attribute not in ATTRIBUTES:
            raise KeyError(f"a measurement has no {attribute!r}; it has {', '.join(ATTRIBUTES)}")
        return ATTRIBUTES[attribute][1](self, self.median_us if time_us is None else time_us, machine)

    def as_json(self) -> dict[str, Any]:
        """Plain data, as records hold it."""
        return _as_json(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Measurement:
        """The inverse of `as_json`; keys of a later version are ignored."""
        return _from_json(cls, data)


def _of_compute(m: Measurement, time_us: Time, machine: Machine | None) -> Time | None:
    if machine is None or machine.peak_tflops.get(m.math) is None:
        return None
    return m.flops / time_us / 1e6 / machine.peak_tflops[m.math]


def _of_bandwidth(m: Measurement, time_us: Time, machine: Machine | None) -> Time | None:
    if machine is None:
        return None
    return (m.reads_bytes + m.writes_bytes) / time_us / 1e3 / machine.bandwidth_gb_per_s


def _of_peak(m: Measurement, time_us: Time, machine: Machine | None) -> Time | None:
    """Fraction of the peak that binds: the one whose floor is larger."""
    if machine is None:
        return None
    if m.flops and machine.peak_tflops.get(m.math) is None:
        return None
    return (_of_bandwidth if bound(m, machine) == "memory" else _of_compute)(m, time_us, machine)


def _floor(of: Callable[..., float]) -> Callable[..., float | None]:
    return lambda m, t, machine: None if machine is None else of(m, machine)


def _state(key: str) -> Callable[..., float | None]:
    """Mean of the readings before and after the rounds."""

    def read(m: Measurement, t: Time, machine: Machine | None) -> float | None:
        values = [state[key] for state in (m.before, m.after) if state.get(key) is not None]
        return sum(values) / len(values) if values else None

    return read


# name -> (unit, function of measurement, time in microseconds, machine)
ATTRIBUTES: dict[str, tuple[str, Callable[[Measurement, Any, Machine | None], Any]]] = {
    "us": ("µs", lambda m, t, machine: t),
    "ms": ("ms", lambda m, t, machine: t / 1e3),
    "s": ("s", lambda m, t, machine: t / 1e6),
    "tflops": ("TFLOP/s", lambda m, t, machine: m.flops / t / 1e6),
    "gflops": ("GFLOP/s", lambda m, t, machine: m.flops / t / 1e3),
    "gb_per_s": ("GB/s", lambda m, t, machine: (m.reads_bytes + m.writes_bytes) / t / 1e3),
    "tb_per_s": ("TB/s", lambda m, t, machine: (m.reads_bytes + m.writes_bytes) / t / 1e6),
    "of_peak": ("1", _of_peak),
    "of_compute": ("1", _of_compute),
    "of_bandwidth": ("1", _of_bandwidth),
    "floor_us": ("µs", _floor(floor_us)),
    "memory_floor_us": ("µs", _floor(memory_floor_us)),
    "compute_floor_us": ("µs", _floor(compute_floor_us)),
    "n": ("1", lambda m, t, machine: m.n),
    "spread": ("1", lambda m, t, machine: m.spread),
    "error": ("1", lambda m, t, machine: m.error),
    "allowed": ("1", lambda m, t, machine: m.allowed),
    "sm_mhz": ("MHz", _state("sm_mhz")),
    "memory_mhz": ("MHz", _state("memory_mhz")),
    "power_w": ("W", _state("power_w")),
    "temperature_c": ("°C", _state("temperature_c")),
    "hbm_gb": ("GB", lambda m, t, machine: (m.reads_bytes + m.writes_bytes) / 1e9),
    "hbm_mb": ("MB", lambda m, t, machine: (m.reads_bytes + m.writes_bytes) / 1e6),
    "gflop": ("GFLOP", lambda m, t, machine: m.flops / 1e9),
    "intensity": ("FLOP/B", lambda m, t, machine: m.flops / (m.reads_bytes + m.writes_bytes)),
}


def measurement_of(
    kernel: str,
    workload: Any,
    problem: Any,
    samples_us: Sequence[float] | np.ndarray,
    *,
    group: str,
    error: float,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> Measurement:
    """Make a measurement out of all samples of one competitor, in the order of the rounds."""
    samples = np.asarray(samples_us, dtype=float)
    # Evenly spaced rounds, chosen by their number alone: the same for every competitor of a group.
    kept = _kept(len(samples))
    quantiles = np.quantile(samples, QUANTILES)
    return Measurement(
        kernel=kernel,
        workload=workload.as_json(),
        n=len(samples),
        samples_us=[round(float(value), 3) for value in samples[kept]],
        quantiles_us={f"{q:g}": round(float(v), 3) for q, v in zip(QUANTILES, quantiles, strict=True)},
        group=group,
        rounds=len(samples),
        reads_bytes=int(problem.reads_bytes(workload)),
        writes_bytes=int(problem.writes_bytes(workload)),
        flops=int(problem.flops(workload)),
        math=problem.math(workload),
        error=float(error),
        allowed=float(problem.max_error(workload)),
        before=dict(before),
        after=dict(after),
    )


@dataclass(frozen=True)
class Counted:
    """Memory traffic of one call, read from the card's hardware counters, over all kernels of the call.

    Attributes:
        kernel: kernel id.
        workload: {"dtype": ..., "dims": {...}}.
        read_bytes, write_bytes: bytes from and to device memory.
        kernels: for every kernel the call launched, in order: name, read_bytes, write_bytes; and "metrics",
            {metric: {"value", "unit"}}, where others were asked for.
    """

    kind: ClassVar[str] = "counted"

    kernel: str
    workload: Mapping[str, Any]
    read_bytes: float
    write_bytes: float
    kernels: Sequence[Mapping[str, Any]]

    def as_json(self) -> dict[str, Any]:
        """Plain data, as records hold it."""
        return _as_json(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Counted:
        """The inverse of `as_json`."""
        return _from_json(cls, data)


@dataclass(frozen=True)
class Quantity:
    """One number with its unit and how it came about: one of `HOW`."""

    kind: ClassVar[str] = "quantity"

    value: float
    unit: str = "1"
    how: str = "computed"

    def as_json(self) -> dict[str, Any]:
        """Plain data, as records hold it."""
        return _as_json(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Quantity:
        """The inverse of `as_json`."""
        return _from_json(cls, data)


@dataclass(frozen=True)
class Samples:
    """Several readings of one number that is no time of a checked kernel: cycles of one load, a wait of the host.

    Attributes:
        unit: unit of every reading, such as "cycles" or "µs".
        how: how they came about, one of `HOW`.
        n: number of readings.
        samples: at most 200 of them, evenly spaced.
        quantiles: quantiles of all n readings, keys as text: "0", "0.05" … "1". The median is the value.
        group: what readings taken together in rounds share; they are resampled together.
    """

    kind: ClassVar[str] = "samples"

    unit: str
    how: str
    n: int
    samples: Sequence[float]
    quantiles: Mapping[str, float]
    group: str

    def as_json(self) -> dict[str, Any]:
        """Plain data, as records hold it."""
        return _as_json(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Samples:
        """The inverse of `as_json`."""
        return _from_json(cls, data)


def samples_of(readings: Sequence[float] | np.ndarray, unit: str, how: str, group: str) -> Samples:
    """Make a leaf out of all readings, in the order they were taken."""
    values = np.asarray(readings, dtype=float)
    quantiles = np.quantile(values, QUANTILES)
    return Samples(
        unit=unit,
        how=how,
        n=len(values),
        samples=[_short(value) for value in values[_kept(len(values))]],
        quantiles={f"{q:g}": _short(v) for q, v in zip(QUANTILES, quantiles, strict=True)},
        group=group,
    )


def _kept(n: int) -> np.ndarray:
    """Which of n samples are stored: evenly spaced, chosen by their number alone."""
    return np.unique(np.linspace(0, n - 1, min(n, MAX_STORED_SAMPLES)).round().astype(int))


def _short(value: float) -> float:
    return float(f"{value:.6g}")


@dataclass(frozen=True)
class Text:
    """A text a cell found out: a message, a name, a version."""

    kind: ClassVar[str] = "text"

    value: str

    def as_json(self) -> dict[str, Any]:
        """Plain data, as records hold it."""
        return _as_json(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Text:
        """The inverse of `as_json`."""
        return _from_json(cls, data)


@dataclass(frozen=True)
class Trace:
    """Columns of equal length; a column's unit is the end of its name, as in "power_w"."""

    kind: ClassVar[str] = "trace"

    columns: Mapping[str, Sequence[float]]

    def as_json(self) -> dict[str, Any]:
        """Plain data, as records hold it."""
        return _as_json(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Trace:
        """The inverse of `as_json`."""
        return _from_json(cls, data)


LEAVES = (Measurement, Counted, Quantity, Samples, Text, Trace)
Leaf = Measurement | Counted | Quantity | Samples | Text | Trace


def leaf_from_json(data: Mapping[str, Any]) -> Leaf:
    """The leaf that `as_json` made.

    Raises:
        ValueError: the data has no known "kind".
    """
    for leaf in LEAVES:
        if data.get("kind") == leaf.kind:
            return leaf.from_json(data)
    kinds = ", ".join(leaf.kind for leaf in LEAVES)
    raise ValueError(f"recorded data: expected a kind out of {kinds}, got {data.get('kind')!r}")


def _as_json(leaf: Any) -> dict[str, Any]:
    return {"kind": leaf.kind, **dataclasses.asdict(leaf)}


def _from_json(cls: Any, data: Mapping[str, Any]) -> Any:
    names = {f.name for f in dataclasses.fields(cls)}
    return cls(**{name: value for name, value in data.items() if name in names})
