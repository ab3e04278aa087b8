"""The run of the GPU tests on one card, after the pages: groups side by side, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from course_site.records.environments import environment_on_gpu, with_source
from course_site.records.plan import GroupJob
from course_site.records.store import Outcome

# Processes of GPU tests at once: most of their time is compiling, and no part can be shorter than its longest group.
SIDE_BY_SIDE = 5


def run_tests(root: Path, groups: list[GroupJob], outcome: Outcome) -> None:
    """Run the groups of GPU tests: side by side, but for those that look at time, and for the labs.

    A wrong answer that races is found by what it leaves behind, and that is another thing beside a busy neighbour.
    """
    alone = [job for job in groups if job.alone]
    parts = _shared_out([job for job in groups if not job.alone], SIDE_BY_SIDE)
    print(f"docs: GPU tests of {len(groups)} group{'s' * (len(groups) != 1)}", flush=True)
    codes = _pytest(root, parts) + _pytest(root, [alone] if alone else [])
    wrong = [code for code in codes if code]
    if wrong:
        outcome.failed.append(("tests/gpu", f"pytest ended with {wrong[0]}, see above"))


def _shared_out(groups: list[GroupJob], parts: int) -> list[list[GroupJob]]:
    """Return the groups in so many parts at most, which take about as long as each other.

    Each group goes to the shortest part so far.
    """
    found: list[list[GroupJob]] = [[] for _ in range(min(parts, len(groups)))]

    def seconds(part: list[GroupJob]) -> float:
        return sum(job.forecast_s for job in part)

    for job in sorted(groups, key=lambda job: job.forecast_s, reverse=True):
        min(found, key=seconds).append(job)
    return found


def _pytest(root: Path, parts: list[list[GroupJob]]) -> list[int]:
    """Run the GPU tests of each part in a process of its own, all at once; what each says comes when it ends."""
    environment = with_source(root, environment_on_gpu(root))
    if len(parts) > 1:  # each would take all cores for an answer that it works out without the card
        environment["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // len(parts)))
    running = []
    try:
        for part in parts:
            options = [word for job in part for word in ("--group", job.verdict.group)]
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
