"""Measuring: check first, then time.

    from course_kernels.measure import compare, record
    record(flash=compare({"ours": k03_flash, "library": library.sdpa_flash}, workload))

Names are loaded when they are first used, so that reading a record needs neither torch nor a GPU.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "Competitor": "competitor",
    "WrongResult": "check",
    "checked_error": "check",
    "Sampler": "sensors",
    "SensorsUnavailable": "sensors",
    "CountersUnavailable": "counters",
    "artifact": "artifacts",
    "count": "counters",
    "count_many": "counters",
    "FasterThanFloor": "roofline",
    "Refused": "errors",
    "Measurement": "record_types",
    "compare": "run",
    "measure": "run",
    "quantity": "recording",
    "record": "recording",
    "samples": "readings",
    "stopwatch": "readings",
    "refusal": "run",
    "text": "recording",
    "trace": "recording",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOME)
