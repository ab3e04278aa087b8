"""Every number that is derived from a measurement when the site is rendered: rates, fractions, the state of the card.

Nothing of this is stored, so a formula can be mended without a GPU. Needs neither torch nor a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from course_kernels.measure.machine import Machine
from course_kernels.measure.record_types import Measurement
from course_kernels.measure.roofline import bound, compute_floor_us, floor_us, memory_floor_us

# A time in microseconds, or an array of resampled times: everything derived from it has the same shape.
Time = float | np.ndarray


def derive(
    leaf: Measurement, attribute: str, time_us: Time | None = None, machine: Machine | None = None
) -> Any:
    """Return a derived value of a measurement, at the median or at other times.

    Args:
        leaf: the measurement.
        attribute: one of `ATTRIBUTES`.
        time_us: microseconds, or an array of them; what depends on time then has its shape.
        machine: the data sheet of the card.
    Returns:
        The value in the unit `ATTRIBUTES` names; None where it needs a peak that `machine` does not have, or what the
        card did not tell.
    Raises:
        KeyError: unknown attribute; the message lists the known ones.
    """
    if attribute not in ATTRIBUTES:
        raise KeyError(f"a measurement has no {attribute!r}; it has {', '.join(ATTRIBUTES)}")
    return ATTRIBUTES[attribute][1](leaf, leaf.median_us if time_us is None else time_us, machine)


def spread(leaf: Measurement) -> float:
    """Return how far apart the medians of a measurement's blocks lie: largest less smallest, over the median of all."""
    if not leaf.blocks_us:
        return 0.0
    return (max(leaf.blocks_us) - min(leaf.blocks_us)) / leaf.median_us


def median_reading(running: Sequence[Mapping[str, Any]], key: str) -> float | None:
    """Return the middle one of the readings taken while a competitor ran; None where the card told none."""
    values = [reading[key] for reading in running if reading.get(key) is not None]
    return float(np.median(values)) if values else None


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
    return lambda m, t, machine: median_reading(m.running, key)


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
    "spread": ("1", lambda m, t, machine: spread(m)),
    "error": ("1", lambda m, t, machine: m.error),
    "allowed": ("1", lambda m, t, machine: m.allowed),
    "host_us": ("µs", lambda m, t, machine: m.host_us.get("0.5")),
    "host_bound": ("1", lambda m, t, machine: m.host_bound),
    "sm_mhz": ("MHz", _state("sm_mhz")),
    "memory_mhz": ("MHz", _state("memory_mhz")),
    "power_w": ("W", _state("power_w")),
    "temperature_c": ("°C", _state("temperature_c")),
    "hbm_gb": ("GB", lambda m, t, machine: (m.reads_bytes + m.writes_bytes) / 1e9),
    "hbm_mb": ("MB", lambda m, t, machine: (m.reads_bytes + m.writes_bytes) / 1e6),
    "gflop": ("GFLOP", lambda m, t, machine: m.flops / 1e9),
    "intensity": ("FLOP/B", lambda m, t, machine: m.flops / (m.reads_bytes + m.writes_bytes)),
}
