"""Replay of one recorded proposal: the judge's verdict, had anew.

For pages. A record of all proposals is `course_harness.record`; this here is one file, judged now.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from course_harness import recorded
from course_harness.judging import Judging, is_right
from course_harness.loop import verdict_of
from course_harness.tasks import Unusable, task

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Replayed:
    """Outcome of one file.

    Attributes:
        is_right: whether the judge says so.
        says: the first line of its verdict.
        us: the time of a call, in microseconds, as the judge vouches for it; 0 where none was taken.
        by: the clocks, as in `course_judge.protocol.verdict.Taken`; empty where no time was taken.
        seconds: what judging took.
    """

    is_right: bool
    says: str
    us: float
    by: str
    seconds: float

    def over(self, rival_us: float) -> float:
        """Return a rival's time over its time; 0 where it has none, since what is wrong has no speed."""
        return rival_us / self.us if self.us else 0.0


def replay(judging: Judging, name: str, series: str, at: tuple[int, int] = (1, 1)) -> Replayed:
    """Judge a recorded proposal once more.

    Args:
        judging: the judge.
        name: of the task.
        series: the name of the series.
        at: sample and round.
    Raises:
        Unusable: there is no such proposal, or judging could not begin.
    """
    text = proposed(name, series, at)
    began = time.perf_counter()
    verdict = judging.judge(task(name), text, True)
    seconds = time.perf_counter() - began
    right, taken = is_right(verdict), verdict.get("time")
    says = verdict_of(verdict).text.splitlines()[0]
    if right and taken:
        return Replayed(right, says, float(taken["us"]), str(taken["by"]), seconds)
    return Replayed(right, says, 0.0, "", seconds)


def proposed(name: str, series: str, at: tuple[int, int] = (1, 1), root: Path = ROOT) -> str:
    """Return the text of a recorded proposal.

    Raises:
        Unusable: there is none.
    """
    kept = recorded.series(root, name).get(series)
    if kept is None or at not in kept.files:
        raise Unusable(f"{name}: no sample {at[0]}, round {at[1]} of a series {series!r} is recorded")
    return (kept.folder / kept.files[at]).read_bytes().decode()
