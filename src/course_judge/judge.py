"""The judge: draws inputs, asks a stranger's process, and decides from what it hands over."""

from __future__ import annotations

import dataclasses
import random
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from course_judge.hidden_sizes import draw, small
from course_judge.host import Broken, Host, Stranger, Task
from course_judge.protocol.messages import Load
from course_judge.protocol.verdict import AFTER, RIGHT, Verdict, refused
from course_judge.remote import Remote
from course_judge.timing import NoTime, Times
from course_kernels.measure.check import Check, WrongResult
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Problem, Workload

# Further questions on one size when all seems right: nobody knows beforehand how many, or on which.
AGAIN = (25, 120)
AGAIN_SECONDS = 2.0  # none is begun later; the least of them are always asked


def judge(
    host: Host,
    file: Path,
    problem: Problem,
    *,
    workloads: Sequence[Workload] = (),
    device: str = "cpu",
    time_on: Workload | None = None,
    task: Task | None = None,
    seed: int | None = None,
) -> Verdict:
    """Judge one file.

    Args:
        host: what starts its process.
        file: defines a function of the problem's name, called as the problem's kernels are.
        workloads: the sizes announced; without them those of the problem, on the CPU the small ones.
        device: "cpu" or "cuda".
        time_on: what is timed, on a card.
        task: how its process is started; without it as the problem says, with the usual limits.
        seed: for tests; otherwise nobody knows it.
    """
    task = task or Task(file, problem.name)
    rng = random.Random(secrets.randbits(64) if seed is None else seed)
    workloads = tuple(workloads) or (problem.check_on if device == "cuda" else small(problem))
    examination = _Examination(problem, device, rng)
    with host.stranger(task) as stranger:
        try:
            stranger.ask(Load())
            verdict = examination.of(stranger, workloads, time_on)
            stranger.finish()
        except Broken as broken:
            verdict = Verdict(broken.found, broken.why, examination.size)
        printed = stranger.printed
        return dataclasses.replace(verdict, printed=printed, not_held=stranger.not_held)


class _Examination:
    def __init__(self, problem: Problem, device: str, rng: random.Random) -> None:
        self._problem, self._device, self._rng = problem, device, rng
        self.size = ""

    def of(self, stranger: Stranger, workloads: Sequence[Workload], time_on: Workload | None) -> Verdict:
        """Return the verdict on a stranger whose file is loaded."""
        function = Remote(stranger, self._problem, self._device)
        unannounced = draw(self._problem, workloads, self._rng)
        try:
            for workload in (*workloads, *unannounced):
                self._checked(function, workload)
            lines: tuple[str, ...] = ()
            if time_on:
                self.size = time_on.label
                lines = (self._time(function, time_on),)
            again = self._rng.choice([*small(self._problem, workloads), *unannounced])
            until = time.monotonic() + AGAIN_SECONDS
            for number in range(self._rng.randint(*AGAIN)):
                if number >= AGAIN[0] and time.monotonic() > until:
                    break
                self._once_more(function, again)
        except WrongResult as error:
            return refused(error.why, self.size)
        finally:
            function.close()
        count = len(workloads) + len(unannounced)
        return Verdict(RIGHT, f"{count} sizes, {len(unannounced)} of them not announced", lines=lines)

    def _time(self, function: Remote, workload: Workload) -> str:
        try:
            timed = Times(function, self._problem, workload, self._rng).taken()
        except NoTime as error:
            return f"{workload.label}: no time; {error}"
        clause = f"; the judge's own clock, launches included: {timed.wall_us:.1f} µs"
        return timed.text(workload.label) + (clause if timed.agrees else "")

    def _checked(self, function: Remote, workload: Workload) -> None:
        self.size = workload.label
        field = {"it": Competitor("the file", self._problem, function)}
        function.begin(workload)
        RemoteCheck(function, field, workload, self._rng.getrandbits(32), self._device).before()

    def _once_more(self, function: Remote, workload: Workload) -> None:
        """Ask a single question, which a stranger who counts calls cannot foresee."""
        self.size = workload.label
        field = {"it": Competitor("the file", self._problem, function)}
        function.begin(workload)
        check = RemoteCheck(function, field, workload, self._rng.getrandbits(32), self._device)
        try:
            check.once()
        except WrongResult as error:
            raise WrongResult(str(error), AFTER + error.why) from None


class RemoteCheck(Check):
    """The check of a function that runs in another process: what needs that process is done there."""

    def __init__(self, function: Remote, *rest: Any) -> None:
        super().__init__(*rest)
        self._remote = function

    def once(self) -> None:
        """Check one question, and no more."""
        from course_kernels.measure.check import _Wrong

        working = self._draw()
        values = tuple(tensor.clone() for tensor in working)
        with torch.no_grad():
            try:
                self._first_time(working, values)
            except _Wrong as wrong:
                self._refuse(wrong.name, wrong.why)

    def _behind_a_hold(self, name: str, working: Any, first: Any, second: Any) -> Any:
        return self._remote.behind_a_hold(working, first, second, self._options)
