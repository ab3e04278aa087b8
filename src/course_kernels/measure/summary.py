"""Summary of samples as a leaf: quantiles of all of them, and which are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from course_kernels.measure.record_types import Measurement, Samples

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
HOST_QUANTILES = (0.25, 0.5, 0.75)
MAX_STORED_SAMPLES = 200
MAX_CHUNKS = 6  # parts of a list of readings, each with a median of its own


def measurement_of(
    kernel: str,
    workload: Any,
    problem: Any,
    samples_us: Sequence[float] | np.ndarray,
    *,
    group: str,
    error: float,
    blocks: Sequence[int] | np.ndarray | None = None,
    rounds: int | None = None,
    every: int = 1,
    seed: int = 0,
    host_us: Sequence[float] | np.ndarray = (),
    host_bound: int = 0,
    running: Sequence[Mapping[str, Any]] = (),
) -> Measurement:
    """Make a measurement out of all samples of one competitor, in the order they were taken.

    Args:
        kernel, workload, problem: who computed what.
        samples_us: microseconds.
        group, error, every, seed, host_bound, running: as in `Measurement`.
        blocks: the block of every sample; without it they are one block.
        rounds: rounds of the group; without it, as many as samples.
        host_us: what every call cost the host, microseconds.
    """
    samples = np.asarray(samples_us, dtype=float)
    of_block = np.zeros(len(samples), dtype=int) if blocks is None else np.asarray(blocks)
    # Evenly spaced, chosen by their number alone: the same rounds for competitors sampled as often.
    kept = _kept(len(samples))
    return Measurement(
        kernel=kernel,
        workload=workload.as_json(),
        n=len(samples),
        samples_us=[round(float(value), 3) for value in samples[kept]],
        quantiles_us=_quantiles(samples, QUANTILES),
        group=group,
        rounds=len(samples) if rounds is None else rounds,
        reads_bytes=int(problem.reads_bytes(workload)),
        writes_bytes=int(problem.writes_bytes(workload)),
        flops=int(problem.flops(workload)),
        math=problem.math(workload),
        error=float(error),
        allowed=float(problem.max_error(workload)),
        blocks_us=[
            round(float(np.median(samples[of_block == block])), 3)
            for block in dict.fromkeys(of_block.tolist())
        ],
        every=every,
        seed=seed,
        host_us=_quantiles(np.asarray(host_us, dtype=float), HOST_QUANTILES) if len(host_us) else {},
        host_bound=host_bound,
        running=[dict(reading) for reading in running],
    )


def samples_of(
    readings: Sequence[float] | np.ndarray, unit: str, how: str, group: str, of: str = ""
) -> Samples:
    """Make a leaf out of all readings, in the order they were taken."""
    values = np.asarray(readings, dtype=float)
    quantiles = np.quantile(values, QUANTILES)
    chunks = np.array_split(values, min(len(values), MAX_CHUNKS))
    return Samples(
        unit=unit,
        how=how,
        n=len(values),
        samples=[_short(value) for value in values[_kept(len(values))]],
        quantiles={f"{q:g}": _short(v) for q, v in zip(QUANTILES, quantiles, strict=True)},
        group=group,
        blocks=[_short(np.median(chunk)) for chunk in chunks],
        of=of,
    )


def _quantiles(values: np.ndarray, which: Sequence[float]) -> dict[str, float]:
    """Microseconds to the nanosecond, by the quantile as text."""
    return {f"{q:g}": round(float(v), 3) for q, v in zip(which, np.quantile(values, which), strict=True)}


def _kept(n: int) -> np.ndarray:
    """Return which of n samples are stored: evenly spaced, chosen by their number alone."""
    return np.unique(np.linspace(0, n - 1, min(n, MAX_STORED_SAMPLES)).round().astype(int))


def _short(value: Any) -> float:
    return float(f"{float(value):.6g}")
