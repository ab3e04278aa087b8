"""Recording: put results into the record of the page that runs. Needs neither torch nor NumPy nor a GPU."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from course_kernels.measure import gate
from course_kernels.measure.machine import Machine
from course_kernels.measure.record_types import HOW, LEAVES, Quantity, Text, Trace

MIME = "application/vnd.course.record+json"


def quantity(
    value: float, unit: str = "1", how: str = "computed", *, of: str = "", sm_mhz: float | None = None
) -> Quantity:
    """Return a number that is no timing, for `record`.

    Args:
        value: a finite number.
        unit: "B", "GB/s", "µs" …; "1" for none.
        how: "counted" by hardware, "timed", "computed" by hand, told by the "device"; or "given", by a source.
        of: of a rate that is not given, which limit of `gate.py` holds for it: "hbm", "fp32" …
        sm_mhz: the clock of the multiprocessors, where a rate needs it.
    Raises:
        TypeError, ValueError: no finite number, or an unknown `how`.
    """
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise TypeError(f"quantity: expected a number, got {value!r}")
    if number != number or number in (float("inf"), float("-inf")):
        raise ValueError(f"quantity: expected a finite number, got {number}")
    if how not in HOW:
        raise ValueError(f"quantity: expected how to be one of {', '.join(HOW)}, got {how!r}")
    return Quantity(number, unit, how, of, None if sm_mhz is None else float(sm_mhz))


def text(value: str) -> Text:
    """Return a text, for `record`.

    Raises:
        TypeError: not a str.
    """
    if not isinstance(value, str):
        raise TypeError(f"text: expected a str, got {value!r}")
    return Text(value)


def trace(columns: Mapping[str, Sequence[float]], *, of: Mapping[str, str] | None = None) -> Trace:
    """Columns of equal length over time, for `record`; a column's unit ends its name: "t_s", "power_w".

    Args:
        columns: by name.
        of: for every column that is a rate, "tflops" or "gb_per_s", which limit of `gate.py` holds for it.
    Raises:
        ValueError: no columns, columns of different lengths, or a name that is no identifier.
    """
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        raise ValueError(f"trace: expected columns of one length above 0, got {lengths}")
    for name in columns:
        _check_name(name)
    return Trace(
        {name: [float(value) for value in values] for name, values in columns.items()}, dict(of or {})
    )


def record(**names: Any) -> None:
    """Put results into the record of the page that runs, under names its prose can use.

    Args:
        names: measurements, counts, quantities, texts, traces, or dicts of them, by name.
    Raises:
        TypeError: a value of another kind.
        ValueError: a name that is no identifier, or a rate that does not say what limits it.
        Refused: a rate above what this card can do, or a time below the least possible.
    """
    machine = gate.running_machine()
    data = {name: _plain(name, value, machine) for name, value in names.items()}
    bundle = {MIME: {"names": data}, "text/plain": f"recorded: {', '.join(data)}"}
    ipython = sys.modules.get("IPython")
    if ipython is None or ipython.get_ipython() is None:
        print(bundle["text/plain"])
        return
    from IPython.display import display

    display(bundle, raw=True)


def _plain(path: str, value: Any, machine: Machine | None) -> dict[str, Any]:
    _check_name(path.rsplit(".", 1)[-1])
    if isinstance(value, LEAVES):
        gate.check(path, value, machine)
        return value.as_json()
    if isinstance(value, Mapping):
        if not value:
            raise ValueError(f"record: {path} is empty")
        for name in value:
            _check_name(name)
        return {name: _plain(f"{path}.{name}", child, machine) for name, child in value.items()}
    raise TypeError(
        f"record: {path}: expected a measurement, count(), quantity(), text(), trace() or a dict of them, "
        f"got {value!r}"
    )


def _check_name(name: Any) -> None:
    # "kind" is how a reader of the record tells a value from a group of values.
    if not isinstance(name, str) or not name.isidentifier() or name == "kind":
        raise ValueError(f"record: expected a name such as flash or n512, got {name!r}")
