"""Record types as plain data: the kinds of leaf, and how they are written and read back.

Only samples, counts and the state of the card are stored. `summary.py` makes leaves out of samples; what is derived
from them when the site is rendered is in `derive.py`. Needs neither torch nor NumPy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

HOW = ("counted", "computed", "device", "given", "timed")


@dataclass(frozen=True)
class Measurement:
    """The samples of one kernel on one workload on one GPU; its answer was checked before and after.

    Attributes:
        kernel: kernel id, "attention/k03_flash" or "attention/library.sdpa_flash".
        workload: {"dtype": ..., "dims": {...}}.
        n: number of samples taken.
        samples_us: at most 200 of them, microseconds, evenly spaced in the order they were taken; competitors of a
            group that were sampled in the same rounds store the same rounds.
        quantiles_us: quantiles of all n samples, keys as text: "0", "0.05" … "1".
        group: what competitors timed together share.
        rounds: rounds of the group.
        reads_bytes, writes_bytes, flops, math: the least cost of the workload.
        error: the worst element's error, over all checks.
        allowed: the largest error a right answer can have.
        blocks_us: the median of every block of rounds, in order, microseconds; each block has inputs of its own, at
            addresses of its own. Competitors of a group are paired by block.
        every: it was sampled in every `every`-th round; 1 is all of them.
        seed: what drew inputs, order and addresses.
        host_us: quantiles of what the call itself cost the host, microseconds: keys "0.25", "0.5", "0.75".
        host_bound: how many of the n samples timed the host, since the GPU had to wait for it.
        running: what the card told while this competitor ran back to back, apart from its samples: sm_mhz, memory_mhz,
            power_w, temperature_c, throttle (reasons in words).
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
    blocks_us: Sequence[float] = field(default_factory=list)
    every: int = 1
    seed: int = 0
    host_us: Mapping[str, float] = field(default_factory=dict)
    host_bound: int = 0
    running: Sequence[Mapping[str, Any]] = field(default_factory=list)

    @property
    def median_us(self) -> float:
        """The central time: the median of all samples, in microseconds."""
        return self.quantiles_us["0.5"]

    def as_json(self) -> dict[str, Any]:
        """Plain data, as records hold it."""
        return _as_json(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Measurement:
        """Return the inverse of `as_json`; keys of another version are ignored."""
        return _from_json(cls, data)


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
        """Return the inverse of `as_json`."""
        return _from_json(cls, data)


@dataclass(frozen=True)
class Quantity:
    """One number with its unit and how it came about: one of `HOW`; of a rate, what limits it, as in `Samples`."""

    kind: ClassVar[str] = "quantity"

    value: float
    unit: str = "1"
    how: str = "computed"
    of: str = ""
    sm_mhz: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain data, as records hold it."""
        return _as_json(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Quantity:
        """Return the inverse of `as_json`."""
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
        blocks: medians of up to six consecutive parts of the readings, in order.
        of: which physical limit holds for them: "" for none, else one that `gate.py` lists.
        sm_mhz: the clock of the multiprocessors in the same launches, where a rate needs it.
    """

    kind: ClassVar[str] = "samples"

    unit: str
    how: str
    n: int
    samples: Sequence[float]
    quantiles: Mapping[str, float]
    group: str
    blocks: Sequence[float] = field(default_factory=list)
    of: str = ""
    sm_mhz: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain data, as records hold it."""
        return _as_json(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Samples:
        """Return the inverse of `as_json`."""
        return _from_json(cls, data)


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
        """Return the inverse of `as_json`."""
        return _from_json(cls, data)


@dataclass(frozen=True)
class Trace:
    """Columns of equal length; a column's unit is the end of its name, as in "power_w".

    Attributes:
        columns: by name.
        of: for every column that is a rate, which limit of `gate.py` holds for it.
    """

    kind: ClassVar[str] = "trace"

    columns: Mapping[str, Sequence[float]]
    of: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Plain data, as records hold it."""
        return _as_json(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Trace:
        """Return the inverse of `as_json`."""
        return _from_json(cls, data)


LEAVES = (Measurement, Counted, Quantity, Samples, Text, Trace)
Leaf = Measurement | Counted | Quantity | Samples | Text | Trace


def leaf_from_json(data: Mapping[str, Any]) -> Leaf:
    """Return the leaf that `as_json` made.

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
