"""Measure one workload from a terminal: the command that stands under every timing in the ledger.

python -m course_kernels.measure attention/k03_flash attention/library.sdpa_flash --workload dtype=bfloat16,N=4096
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from course_kernels.measure.derive import ATTRIBUTES, derive, median_reading, spread
from course_kernels.measure.errors import Refused
from course_kernels.measure.machine import Machine, machine_for
from course_kernels.measure.provenance import provenance
from course_kernels.measure.record_types import Measurement
from course_kernels.problem import Workload

COLUMNS = (
    ("us", "{:.1f}"),
    ("tflops", "{:.1f}"),
    ("gb_per_s", "{:.0f}"),
    ("of_peak", "{:.1%}"),
    ("host_us", "{:.1f}"),
)
HEADS = {"of_peak": "of peak", "host_us": "host µs"}
STATE = {
    "sm_mhz": "MHz SM",
    "memory_mhz": "MHz memory",
    "power_w": "W",
    "temperature_c": "°C",
}

LONGEST_S = 600  # nobody waits longer for one kernel; a typing error does


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 when everything was measured, 2 when it was refused or could not be."""
    parser = argparse.ArgumentParser(prog="python -m course_kernels.measure", description=__doc__)
    parser.add_argument("kernels", nargs="+", help="kernel ids, such as attention/k03_flash")
    parser.add_argument("--workload", required=True, help="such as dtype=bfloat16,B=1,H=16,N=4096,D=128")
    parser.add_argument("--seconds", type=_seconds, default=1.0, help="time to sample for each kernel")
    parser.add_argument("--seed", type=int, help="draw inputs, order and addresses as a run before did")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write samples and provenance to a file")
    given = parser.parse_args(arguments)
    if given.json and not given.json.resolve().parent.is_dir():
        parser.error(f"--json {given.json}: there is no folder {given.json.parent}; make it first")
    try:
        workload = Workload.parse(given.workload)

        from course_kernels.measure.competitor import competitor_named
        from course_kernels.measure.run import compare

        field = {kernel: competitor_named(kernel) for kernel in given.kernels}
        results = compare(field, workload, seconds=given.seconds, seed=given.seed)
    except (Refused, RuntimeError, ValueError, TypeError, KeyError, AttributeError, ImportError) as error:
        line = str(error).strip().splitlines()
        name = "" if isinstance(error, Refused) else f"{type(error).__name__}: "
        advice = "; pip install -e '.[measure]'" if isinstance(error, ImportError) else ""
        print(f"not measured: {name}{line[0] if line else ''}{advice}", file=sys.stderr)
        return 2
    came_from = provenance()
    gpu = str(came_from["gpu"])
    print("\n".join(report(f"{gpu} ({came_from['uuid']})", workload, results, machine_for(gpu))))
    if given.json:
        write(given.json, came_from, results)
    return 0


def _seconds(text: str) -> float:
    """Return a time to sample that ends; what argparse refuses, it refuses before a card is asked for."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= LONGEST_S:
        raise argparse.ArgumentTypeError(
            f"{text} is no time to sample; give more than 0 and at most {LONGEST_S}"
        )
    return seconds


def report(
    card: str, workload: Workload, results: Mapping[str, Measurement], machine: Machine | None
) -> list[str]:
    """Return the lines of a short table, and for every competitor what the card told while it ran."""
    head = ["kernel", *(HEADS.get(name, ATTRIBUTES[name][0]) for name, _ in COLUMNS)]
    rows = [[*head, "spread", "n", "error"]]
    for measured in results.values():
        values = [(form, derive(measured, name, None, machine)) for name, form in COLUMNS]
        rows.append(
            [
                measured.kernel,
                *("–" if value is None else form.format(value) for form, value in values),
                f"{spread(measured):.1%}",
                str(measured.n),
                f"{measured.error:.1e}",
            ]
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    seed = next(iter(results.values())).seed
    lines = [f"{card}, {workload.label}, seed {seed}"]
    lines += [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]
    lines.append("spread is between the medians of the blocks")
    lines += [f"{measured.kernel}: {_state(measured)}" for measured in results.values()]
    return lines


def _state(measured: Measurement) -> str:
    """Return what the card told while a competitor ran, and what else its samples are."""
    running = measured.running
    found = {unit: median_reading(running, key) for key, unit in STATE.items()}
    parts = [f"{value:.0f} {unit}" for unit, value in found.items() if value is not None]
    parts += dict.fromkeys(word for reading in running for word in reading.get("throttle", []))
    if measured.every > 1:
        parts.append(f"every {measured.every}th round")
    if measured.host_bound:
        parts.append(f"{measured.host_bound} of {measured.n} samples timed the host")
    return ", ".join(parts)


def write(path: Path, came_from: Mapping[str, Any], results: Mapping[str, Measurement]) -> None:
    """Write what was measured, by kernel, and where it comes from; to a temporary name first."""
    found = {name: measured.as_json() for name, measured in results.items()}
    text = json.dumps({"provenance": came_from, "measurements": found}, indent=1, allow_nan=False)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        temporary.write_text(text + "\n", encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
