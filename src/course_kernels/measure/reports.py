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
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from course_kernels.measure.check import WrongResult
from course_kernels.measure.competitor import competitor_of
from course_kernels.measure.counters import SOURCES, CountersUnavailable, why
from course_kernels.problem import Workload

TIMEOUT_S = 300
SHORTEST = 4  # letters: a shorter name would be found inside of words that are no names
FILLER = "_"


def take_report(competitor: Any, workload: Workload) -> bytes:
    """One call of a kernel under `ncu --set full`, as the scrubbed bytes of an .ncu-rep file.

    Args:
        competitor: a kernel module or a function of a problem folder; its own kernels are in the report.
        workload: what to compute; a smaller one than is timed will do, if it is far past L2.
    Raises:
        CountersUnavailable: no ncu, no permission, no kernel.
        WrongResult: the answer is wrong.
    """
    found = competitor_of(competitor)
    ncu = shutil.which("ncu")
    if ncu is None:
        raise CountersUnavailable(
            "report: Nsight Compute's `ncu` is not on PATH: install it with the CUDA toolkit"
        )
    with tempfile.TemporaryDirectory(prefix="course-report-") as folder:
        request, answer, report = (
            Path(folder, name) for name in ("request.json", "answer.json", "of.ncu-rep")
        )
        request.write_text(json.dumps([{"kernel": found.kernel, "workload": workload.as_json()}]))
        command = [
            *(ncu, "--clock-control", "none", "--profile-from-start", "off", "--target-processes", "all"),
            *("--set", "full", "--export", str(report), "--kernel-name", f"regex:{found.problem.name}"),
            *(sys.executable, "-m", "course_kernels.measure.counters", str(request), str(answer)),
        ]
        paths = os.pathsep.join(filter(None, [str(SOURCES), os.environ.get("PYTHONPATH")]))
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                env={**os.environ, "PYTHONPATH": paths},
            )
        except subprocess.TimeoutExpired:
            raise CountersUnavailable(f"report: ncu did not end within {TIMEOUT_S} s") from None
        said = json.loads(answer.read_text()) if answer.exists() else {}
        if said.get("wrong"):
            raise WrongResult(said["wrong"])
        if not said.get("done") or not report.exists():
            raise CountersUnavailable(f"report: {why(done.stdout + done.stderr, said.get('error', ''))}")
        return scrubbed(report.read_bytes(), private_words())


def private_words() -> tuple[str, ...]:
    """What names this machine and its user: the host, and the folders that a path may begin with."""
    folders = {Path.home(), Path.cwd(), SOURCES.parent, Path(sys.prefix), Path(sys.base_prefix)}
    return tuple(sorted({platform.node(), *map(str, folders)}))


def scrubbed(data: bytes, words: Iterable[str]) -> bytes:
    """The same bytes with every word blotted out, letter for letter, so that no length in the file changes.

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
