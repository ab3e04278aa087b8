"""A report of Nsight Compute to open and to publish: every section of one kernel, without what names the machine.

    record(first=artifact("first.ncu-rep", take_report(k01_thread_a_row, workload)))

Counts that a page quotes come from `counters`; a report is for the reader who wants to look further.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_kernels.measure.check import WrongResult
from course_kernels.measure.competitor import competitor_of
from course_kernels.measure.counters import SOURCES, CountersUnavailable, parse, why
from course_kernels.problem import Workload

TIMEOUT_S = 300
SHORTEST = 4  # letters: a shorter name would be found inside of words that are no names
FILLER = "_"
PASSES = "profiler__replayer_passes"  # how often the kernel ran for what was asked


def take_report(competitor: Any, workload: Workload) -> bytes:
    """Return one call of a kernel under `ncu --set full`, as the scrubbed bytes of an .ncu-rep file.

    Args:
        competitor: a kernel module or a function of a problem folder; its own kernels are in the report.
        workload: what to compute; a smaller one than is timed will do, if it is far past L2.
    Raises:
        CountersUnavailable: no ncu, no permission, no kernel.
        WrongResult: the answer is wrong.
    """
    with tempfile.TemporaryDirectory(prefix="course-report-") as folder:
        report = Path(folder, "of.ncu-rep")
        _under_ncu(competitor, workload, Path(folder), ["--set", "full", "--export", str(report)])
        if not report.exists():
            raise CountersUnavailable("report: ncu wrote none: run it again")
        return scrubbed(report.read_bytes(), private_words())


@dataclass(frozen=True)
class Seen:
    """One kernel as the profiler saw it.

    Attributes:
        values: by metric, in base units: bytes, seconds, or none.
        passes: how often the profiler ran the kernel for them.
    """

    values: Mapping[str, float]
    passes: int

    def of(self, metric: str) -> float:
        """Return one metric's value."""
        return self.values[metric]


def count_with(
    competitor: Any, workload: Workload, metrics: Sequence[str], options: Sequence[str] = ()
) -> Seen:
    """Count one kernel with options of ncu's own, such as `--cache-control none`: to see what the profiler changes.

    Raises:
        CountersUnavailable: no ncu, no permission, a metric that this card lacks, or not one kernel of the problem.
        WrongResult: the answer is wrong.
    """
    with tempfile.TemporaryDirectory(prefix="course-report-") as folder:
        asked = [
            "--csv",
            "--page",
            "raw",
            "--print-units",
            "base",
            "--metrics",
            ",".join((*metrics, PASSES)),
            *options,
        ]
        output = _under_ncu(competitor, workload, Path(folder), asked)
    return read_seen(output, metrics)


def read_seen(output: str, metrics: Sequence[str]) -> Seen:
    """Return the one kernel in what ncu printed.

    Raises:
        CountersUnavailable: not one kernel, or a metric that is missing.
    """
    launches = parse(output, (*metrics, PASSES))
    if len(launches) != 1:
        raise CountersUnavailable(f"counters: expected one kernel, ncu tells of {len(launches)}")
    found = {name: value for name, (value, _) in launches[0].metrics.items()}
    missing = [metric for metric in (*metrics, PASSES) if metric not in found]
    if missing:
        raise CountersUnavailable(f"counters: this card has no {missing[0]}")
    return Seen(found, int(found.pop(PASSES)))


def _under_ncu(competitor: Any, workload: Workload, folder: Path, options: Sequence[str]) -> str:
    """Return one call of a kernel, of which only the problem's own kernels are profiled; what ncu printed."""
    found = competitor_of(competitor)
    ncu = shutil.which("ncu")
    if ncu is None:
        raise CountersUnavailable(
            "counters: Nsight Compute's `ncu` is not on PATH: install it with the CUDA toolkit, or add its folder"
        )
    request, answer = folder / "request.json", folder / "answer.json"
    request.write_text(json.dumps([{"kernel": found.kernel, "workload": workload.as_json()}]))
    command = [
        *(ncu, "--clock-control", "none", "--profile-from-start", "off", "--target-processes", "all"),
        *("--kernel-name", f"regex:{found.problem.name}", *options),
        *(sys.executable, "-m", "course_kernels.measure.counters", str(request), str(answer)),
    ]
    paths = os.pathsep.join(filter(None, [str(SOURCES), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": paths}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment)
    except subprocess.TimeoutExpired:
        raise CountersUnavailable(f"counters: ncu did not end within {TIMEOUT_S} s") from None
    output = done.stdout + "\n" + done.stderr
    said = json.loads(answer.read_text()) if answer.exists() else {}
    if said.get("wrong"):
        raise WrongResult(said["wrong"])
    if not said.get("done"):
        raise CountersUnavailable(f"counters: {why(output, said.get('error', ''))}")
    return output


def private_words() -> tuple[str, ...]:
    """Return what names this machine and its user: the host, and the folders that a path may begin with."""
    folders = {Path.home(), Path.cwd(), SOURCES.parent, Path(sys.prefix), Path(sys.base_prefix)}
    return tuple(sorted({platform.node(), *map(str, folders)}))


def scrubbed(data: bytes, words: Iterable[str]) -> bytes:
    """Return the same bytes with every word blotted out, letter for letter, so that no length in the file changes.

    A word is found in UTF-8 and in UTF-16, also inside of a longer one: in such a file the byte before a text is its
    length and the byte behind it begins the next field, and either may look like a letter.

    Args:
        data: of a file that holds its texts as they are, such as a report or a trace.
        words: the longest is blotted out first; those under four letters are left alone.
    """
    for word in sorted({word for word in words if len(word) >= SHORTEST}, key=len, reverse=True):
        for coding in ("utf-8", "utf-16-le"):
            there = word.encode(coding)
            blot = (FILLER * len(word)).encode(coding).ljust(len(there), FILLER.encode())
            data = data.replace(there, blot)  # a letter may take several bytes; their number stays
    return data
