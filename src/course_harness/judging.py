"""Judging and profiling of a text that was proposed: in the judge's worker, and in the profiler's, never here."""

from __future__ import annotations

import dataclasses
import random
import shutil
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from course_harness.tasks import Task, Unusable
from course_judge.__main__ import environment, modules
from course_judge.host import CannotJudge, Host
from course_judge.host import Task as Asked
from course_judge.protocol.limits import Limits
from course_judge.protocol.verdict import RIGHT, Evidence, Verdict, escaped
from course_kernels.problem import Problem, Workload

PROFILED_CHARACTERS = 4000
TRIES = 2  # of a file with which the process ends that starts strangers


class Judging(Protocol):
    """Judge of texts.

    Attributes:
        on: the card, or that there is none.
        has_card: whether right files are timed.
    """

    on: str
    has_card: bool

    def judge_hash(self, task: Task) -> str:
        """Return the hash of all that decides a verdict."""

    def judge(self, task: Task, text: str, own: bool) -> dict[str, Any]:
        """Return the verdict on a file, as sealed plain data."""

    def profile(self, task: Task, text: str) -> str:
        """Return the profiler's words on a file, or a line that says why there are none."""


class Judge:
    """The course's judge and profiler, with the hosts of workers that they need."""

    def __init__(self, *, seconds: float = 120.0, sizes: int | None = None) -> None:
        """
        Args:
            seconds: the limit for each answer of a file.
            sizes: of the announced sizes so many are asked on a card, drawn anew for each file; None for all of them.
        Raises:
            Unusable: torch is missing.
        """
        try:
            import torch
        except ImportError as error:
            raise Unusable(f"torch is not installed here ({error}): nox -s harness installs it") from None
        self.has_card = torch.cuda.is_available()
        self.on = torch.cuda.get_device_name() if self.has_card else "without a card"
        self._limits, self._sizes = Limits(seconds=seconds), sizes
        self._hosts: dict[bool, Host] = {}
        self._rivals: dict[tuple[str, str], dict[str, Any]] = {}
        self._folder = Path(tempfile.mkdtemp(prefix="harness-"))

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *exception: object) -> None:
        for host in self._hosts.values():
            host.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def judge_hash(self, task: Task) -> str:
        """Return the hash of the judge's files and of the problem."""
        from course_judge.judge import hash_of_judge

        return hash_of_judge(task.problem())

    def judge(self, task: Task, text: str, own: bool) -> dict[str, Any]:
        """Return the verdict on a file; of a rival of the task the one that was reached before, if it was right.

        Raises:
            Unusable: judging could not begin.
        """
        key = task.name, text
        if not own and key in self._rivals:
            return self._rivals[key]
        found = self._judged(task, text, own)
        # Every series of a task races the same two rivals, on this card and by this judge.
        if not own and is_right(found) and text in (task.eager, task.compiled):
            self._rivals[key] = found
        return found

    def _judged(self, task: Task, text: str, own: bool) -> dict[str, Any]:
        file = self._written(task, text)
        why = ""
        for _ in range(TRIES):
            host = self._host(own)
            try:
                verdict = self._verdict(host, task, file, own)
            except CannotJudge as error:
                # Whoever ends the process that starts strangers is not asked for ever, nor is anybody after it.
                self._hosts.pop(own).close()
                why = str(error)
            else:
                return _without_folder(verdict, self._folder).as_json()
        evidence = Evidence(sha256(file.read_bytes()).hexdigest(), self.judge_hash(task), self.on, ())
        return Verdict("died", f"{TRIES} times, and with it {why}", evidence=evidence).as_json()

    def _verdict(self, host: Host, task: Task, file: Path, own: bool) -> Verdict:
        from course_judge.judge import judge

        problem = task.problem()
        return judge(
            host,
            file,
            problem,
            workloads=self._announced(problem),
            device="cuda" if self.has_card else "cpu",
            time_on=task.workload if self.has_card else None,
            task=Asked(file, problem.name, own=own, limits=self._limits),
        )

    def _announced(self, problem: Problem) -> Sequence[Workload]:
        if not self.has_card or self._sizes is None or self._sizes >= len(problem.check_on):
            return ()  # all of them
        drawn = random.SystemRandom().sample(range(len(problem.check_on)), self._sizes)
        return [problem.check_on[place] for place in sorted(drawn)]

    def _host(self, own: bool) -> Host:
        """Return the process that starts strangers, a new one where there is none.

        Raises:
            Unusable: it does not start.
        """
        if own not in self._hosts:
            try:
                self._hosts[own] = Host(modules(self.has_card, own), environment(self.has_card))
            except CannotJudge as error:
                raise Unusable(str(error)) from None
        return self._hosts[own]

    def profile(self, task: Task, text: str) -> str:
        """Profile a file that the judge called right. It is run once more, and without the judge's limits."""
        from course_labs.lab import LabError
        from course_profile.diagnosis import diagnose
        from course_profile.errors import Unusable as NoProfile
        from course_profile.errors import Wrong
        from course_profile.format import table
        from course_profile.run import profile
        from course_profile.subject import take

        try:
            subject = take(f"{self._written(task, text)}:{task.name}", task.name, task.time)
            found = profile(subject, gpu=self.has_card)
            words = table(found, diagnose(found.reading), hint=True)
        except (NoProfile, Wrong, LabError) as error:
            return f"no profile: {escaped(str(error).replace(str(self._folder), '.'))}"
        return words[:PROFILED_CHARACTERS]

    def _written(self, task: Task, text: str) -> Path:
        # A folder each: what a file left beside it, the next one would find.
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        file = folder / f"{task.name}_proposed.py"
        file.write_bytes(text.encode(errors="surrogatepass"))
        return file


def _without_folder(verdict: Verdict, folder: Path) -> Verdict:
    """Return the verdict without the name of the folder that the file lay in, which is another one every time."""
    why, printed = (one.replace(str(folder), ".") for one in (verdict.why, verdict.printed))
    return dataclasses.replace(verdict, why=why, printed=printed)


def is_right(verdict: dict[str, Any]) -> bool:
    """Return whether a verdict says that the file is right."""
    return bool(verdict["found"] == RIGHT)
