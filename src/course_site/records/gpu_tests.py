"""The run of the GPU tests before anything is measured: groups side by side, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from course_site.records.environments import environment_on_gpu, with_source
from course_site.records.plan import UNKNOWN_S
from course_site.records.store import Outcome

if TYPE_CHECKING:
    from course_site.records.gpu_test_records import Verdict

# Processes of GPU tests at once: most of their time is compiling, and no part can be shorter than its longest group.
SIDE_BY_SIDE = 5


def run_tests(root: Path, groups: list[Verdict], outcome: Outcome) -> None:
    """Run the groups of GPU tests: side by side, but for those that look at time, and for the labs.

    A wrong answer that races is found by what it leaves behind, and that is another thing beside a busy neighbour.
    """
    from course_site.records import gpu_test_records

    project = gpu_test_records.Project(root)
    alone = [
        verdict
        for verdict in groups
        if project.looks_at_time(verdict.group) or verdict.group.startswith(gpu_test_records.LAB)
    ]
    parts = _shared_out([verdict for verdict in groups if verdict not in alone], SIDE_BY_SIDE)
    print(f"docs: GPU tests of {len(groups)} group{'s' * (len(groups) != 1)}", flush=True)
    codes = _pytest(root, parts) + _pytest(root, [alone] if alone else [])
    wrong = [code for code in codes if code]
    if wrong:
        outcome.failed.append(("tests/gpu", f"pytest ended with {wrong[0]}, see above"))


def _shared_out(groups: list[Verdict], parts: int) -> list[list[Verdict]]:
    """Return the groups in so many parts at most, which take about as long as each other.

    Each group goes to the shortest part so far.
    """
    found: list[list[Verdict]] = [[] for _ in range(min(parts, len(groups)))]

    def seconds(verdicts: list[Verdict]) -> float:
        return sum(UNKNOWN_S if verdict.seconds is None else verdict.seconds for verdict in verdicts)

    for verdict in sorted(groups, key=lambda verdict: seconds([verdict]), reverse=True):
        min(found, key=seconds).append(verdict)
    return found


def _pytest(root: Path, parts: list[list[Verdict]]) -> list[int]:
    """Run the GPU tests of each part in a process of its own, all at once; what each says comes when it ends."""
    environment = with_source(root, environment_on_gpu(root))
    if len(parts) > 1:  # each would take all cores for an answer that it works out without the card
        environment["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // len(parts)))
    running = []
    try:
        for part in parts:
            options = [word for verdict in part for word in ("--group", verdict.group)]
            command = [sys.executable, "-m", "pytest", "-q", "tests/gpu", *options]
            said = tempfile.TemporaryFile() if len(parts) > 1 else None  # noqa: SIM115
            process = subprocess.Popen(
                command, cwd=root, env=environment, stdout=said, stderr=subprocess.STDOUT if said else None
            )
            running.append((process, said))
        codes = []
        for process, said in running:
            codes.append(process.wait())
            if said:
                said.seek(0)
                print(said.read().decode(errors="replace"), end="", flush=True)
        return codes
    finally:
        for process, said in running:
            if process.poll() is None:
                process.terminate()
                process.wait()
            if said:
                said.close()
