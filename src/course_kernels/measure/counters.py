"""Count memory traffic with the card's own counters, through Nsight Compute (`ncu`), in a child process.

The child makes the inputs, checks the answer, and profiles one call of every job. ncu empties the caches before
every kernel, so tensors must be well past L2 for a call of several kernels to mean anything. A copy that the
driver does without a kernel (`Tensor.copy_` of contiguous memory) is not seen.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import course_kernels
from course_kernels.measure.check import WrongResult, checked_error
from course_kernels.measure.competitor import Competitor, competitor_named, competitor_of
from course_kernels.measure.record_types import Counted
from course_kernels.problem import Workload

READ, WRITE = "dram__bytes_read.sum", "dram__bytes_write.sum"
MARKER = "course_job_begins"
TIMEOUT_S = 900
SOURCES = Path(course_kernels.__file__).resolve().parents[1]

# ncu picks a unit for every value; everything is brought back to the base unit.
PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "m": 1e-3, "u": 1e-6, "n": 1e-9}
BASE_UNITS = {"byte": "B", "second": "s", "sec": "s", "hz": "Hz"}

# What ncu says when it cannot count, and what to do about it.
KNOWN_FAILURES = {
    "ERR_NVGPUCTRPERM": "this user may not read the GPU's counters: run as root, or let the administrator set "
    "NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module",
    "LibraryNotLoaded": "ncu cannot load the driver's profiler library (seen in sandboxed containers): "
    "run outside the sandbox",
}
NO_KERNELS = "No kernels were profiled"


class CountersUnavailable(RuntimeError):
    """Hardware counters cannot be read here; the message is one line: what, where, what to do."""


def count(competitor: Any, workload: Workload, metrics: Sequence[str] = ()) -> Counted:
    """Count the bytes one call moves from and to device memory, over all kernels it launches.

    Args:
        competitor: a kernel module or a function of a problem folder.
        workload: what to compute; tensors well past L2.
        metrics: further ncu metrics, returned for every kernel under "metrics".
    Raises:
        CountersUnavailable: no ncu, no permission, no kernel: one line that says what to do.
        WrongResult: the answer is wrong.
    """
    return count_many([(competitor, workload)], metrics)[0]


def count_many(jobs: Iterable[tuple[Any, Workload]], metrics: Sequence[str] = ()) -> list[Counted]:
    """`count` for several jobs in one child process, which costs some seconds however many they are."""
    field = [(competitor_of(thing), workload) for thing, workload in jobs]
    if not field:
        return []
    ncu = shutil.which("ncu")
    if ncu is None:
        raise CountersUnavailable(
            "counters: Nsight Compute's `ncu` is not on PATH: install it with the CUDA toolkit, or add its folder"
        )
    wanted = list(dict.fromkeys([READ, WRITE, *metrics]))
    with tempfile.TemporaryDirectory(prefix="course-counters-") as folder:
        request, answer = Path(folder, "request.json"), Path(folder, "answer.json")
        request.write_text(json.dumps([{"kernel": c.kernel, "workload": w.as_json()} for c, w in field]))
        command = [
            *(ncu, "--clock-control", "none", "--profile-from-start", "off", "--target-processes", "all"),
            *("--csv", "--page", "raw", "--print-units", "base", "--print-kernel-base", "function"),
            *("--metrics", ",".join(wanted)),
            *(sys.executable, "-m", "course_kernels.measure.counters", str(request), str(answer)),
        ]
        output = _run(command)
        report = json.loads(answer.read_text()) if answer.exists() else {}
    if report.get("wrong"):
        raise WrongResult(report["wrong"])
    if not report.get("done"):
        raise CountersUnavailable(f"counters: {why(output, report.get('error', ''))}")
    launches = parse(output, wanted)
    if not launches:
        raise CountersUnavailable(f"counters: {why(output)}")
    return [
        _counted(competitor, workload, group, metrics)
        for (competitor, workload), group in zip(field, split_jobs(launches, len(field)), strict=True)
    ]


# --- reading what ncu prints --------------------------------------------------------------------


@dataclass(frozen=True)
class Launch:
    """One kernel launch in a profile: its name, and value and base unit by metric."""

    name: str
    metrics: dict[str, tuple[float, str]]


def parse(output: str, wanted: Sequence[str]) -> list[Launch]:
    """Return the launches in ncu's CSV with the metrics wanted, in order; one row a launch, or one row a metric.

    Raises:
        CountersUnavailable: a value that is no number.
    """
    lines = output.splitlines()
    start = next((n for n, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return []
    header, *rows = list(csv.reader(line for line in lines[start:] if line.startswith('"')))
    table = [dict(zip(header, row, strict=False)) for row in rows if len(row) == len(header)]
    if "Metric Name" in header:
        found: dict[str, Launch] = {}
        for row in table:
            launch = found.setdefault(row["ID"], Launch(row["Kernel Name"], {}))
            if row["Metric Name"] in wanted:
                launch.metrics[row["Metric Name"]] = _value(row["Metric Value"], row["Metric Unit"])
        return list(found.values())
    # Wide: the row under the header holds the units.
    units = table.pop(0) if table and not table[0]["ID"] else {}
    return [
        Launch(
            row["Kernel Name"],
            {name: _value(row[name], units.get(name, "")) for name in wanted if row.get(name)},
        )
        for row in table
    ]


def split_jobs(launches: Sequence[Launch], jobs: int) -> list[list[Launch]]:
    """Return the launches of every job: a marker kernel stands before each.

    Raises:
        CountersUnavailable: not one marker for every job, or a job that launched no kernel.
    """
    groups: list[list[Launch]] = []
    for launch in launches:
        if MARKER in launch.name:
            groups.append([])
        elif groups:
            groups[-1].append(launch)
    if len(groups) != jobs:
        raise CountersUnavailable(f"counters: ncu profiled {len(groups)} of {jobs} calls: run it again")
    if not all(groups):
        number = next(n for n, group in enumerate(groups, start=1) if not group)
        raise CountersUnavailable(
            f"counters: call {number} of {jobs} launched no kernel: a plain copy is not counted; take a kernel"
        )
    return groups


def why(output: str, otherwise: str = "") -> str:
    """Return one line out of what ncu printed: what went wrong and what to do."""
    for sign, advice in KNOWN_FAILURES.items():
        if sign in output:
            return f"{advice} ({sign})"
    if otherwise:
        return otherwise
    if NO_KERNELS in output:
        return "ncu saw no kernel: the call must launch one (a plain copy does not)"
    errors = [line for line in output.splitlines() if line.startswith("==ERROR==")]
    said = errors or [line for line in output.splitlines() if line.strip()] or ["it printed nothing"]
    return f"ncu failed: {said[0 if errors else -1].removeprefix('==ERROR==').strip()}"


def _value(text: str, unit: str) -> tuple[float, str]:
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        raise CountersUnavailable(f"counters: ncu gave {text!r}, which is no number") from None
    for prefix in sorted(PREFIXES, key=len, reverse=True):
        base = BASE_UNITS.get(unit.removeprefix(prefix).removesuffix("s").lower()) if unit else None
        if unit.startswith(prefix) and base:
            return number * PREFIXES[prefix], base
    return number, unit


def _counted(
    competitor: Competitor, workload: Workload, launches: Sequence[Launch], metrics: Sequence[str]
) -> Counted:
    kernels = []
    for launch in launches:
        missing = [name for name in (READ, WRITE) if name not in launch.metrics]
        if missing:
            raise CountersUnavailable(
                f"counters: this card has no {missing[0]}: take a card with device counters"
            )
        kernel: dict[str, Any] = {
            "name": launch.name,
            "read_bytes": launch.metrics[READ][0],
            "write_bytes": launch.metrics[WRITE][0],
        }
        if metrics:
            kernel["metrics"] = {
                name: {"value": launch.metrics[name][0], "unit": launch.metrics[name][1]}
                for name in metrics
                if name in launch.metrics
            }
        kernels.append(kernel)
    return Counted(
        kernel=competitor.kernel,
        workload=workload.as_json(),
        read_bytes=sum(kernel["read_bytes"] for kernel in kernels),
        write_bytes=sum(kernel["write_bytes"] for kernel in kernels),
        kernels=kernels,
    )


def _run(command: Sequence[str]) -> str:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.empty_cache()  # the child needs memory on the same card
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(SOURCES), environment.get("PYTHONPATH")]))
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment)
    except subprocess.TimeoutExpired:
        raise CountersUnavailable(
            f"counters: ncu did not end within {TIMEOUT_S} s: take fewer calls"
        ) from None
    except OSError as error:
        raise CountersUnavailable(f"counters: {command[0]} does not start: {error.strerror}") from None
    return done.stdout + "\n" + done.stderr


# --- the child ----------------------------------------------------------------------------------


def main(request: Path, answer: Path) -> int:
    """Profile one call of every job in `request`; write to `answer` how it went."""
    sys.stdout = sys.stderr  # ncu writes its table to the same standard output
    report: dict[str, Any] = {}
    try:
        _profile(json.loads(request.read_text()))
        report["done"] = True
    except WrongResult as wrong:
        report["wrong"] = str(wrong)
    except Exception as error:
        lines = str(error).strip().splitlines()
        report["error"] = f"the profiled process failed: {type(error).__name__}: {lines[0] if lines else ''}"
    temporary = answer.with_suffix(".part")
    temporary.write_text(json.dumps(report))
    os.replace(temporary, answer)
    return 0 if report.get("done") else 1


def _profile(jobs: Sequence[dict[str, Any]]) -> None:
    import torch

    from course_kernels.measure.marker import mark

    field = [(competitor_named(job["kernel"]), Workload.from_json(job["workload"])) for job in jobs]
    number = torch.zeros(1, dtype=torch.int32, device="cuda")
    mark(number)
    for competitor, workload in field:
        checked_error(competitor, workload)  # and everything is compiled and warm after it
        torch.cuda.empty_cache()
        generator = torch.Generator(device="cuda").manual_seed(1)
        inputs = competitor.problem.make_inputs(workload, generator, "cuda")
        options = competitor.problem.options(workload)
        with torch.no_grad():
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
            mark(number)
            result = competitor.function(*inputs, **options)
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()
        del result, inputs


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
