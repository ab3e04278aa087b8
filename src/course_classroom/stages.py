"""Stages that a hand-in has, by what the grader said of it and what `lab.toml` says of the file after each stage.

The grader asks in an order, and stops at the first thing that is wrong. Whoever is refused later than the file after
stage 2 has stage 2. Where two stages are told apart on a card only, a right file without one has both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from course_labs.diagnosis import ENTRY
from course_labs.grade import size_of
from course_labs.lab import Lab, has_given_kernels, load_file, same_lines
from course_labs.verdict import NOT_RUN, RIGHT

NOWHERE, AT_THE_END = -1.0, math.inf
# What is found only once every size is right: it comes after them.
AFTER_ALL_SIZES = ("not in blocks", "holds too much", "does not compile")
REASONS, COUNTERS = ("not filled in", "wrong reason"), ("wrong counter", "wrong value")
_LINE = re.compile(r"\bline (\d+|…)")


@dataclass(frozen=True)
class Asked:
    """The grader's questions about one lab, in their order.

    Attributes:
        jobs: what each is about, as a complaint names it after *on*, and the function that it calls, or "".
        ties: whether a complaint about the same question may still be about an earlier stage.
    """

    jobs: tuple[tuple[str, str], ...]
    ties: bool

    def place(self, found: str, on: str, why: str) -> float:
        """Return the place of a complaint among them; beyond all where it is about what nobody announced."""
        if found == RIGHT:
            return AT_THE_END
        if not on:
            return NOWHERE
        if found in AFTER_ALL_SIZES:
            return len(self.jobs)
        for place, (job, call) in enumerate(self.jobs):
            if job == on and (not call or why.startswith(f"{call}(")):
                return place
        return next((place for place, (job, _) in enumerate(self.jobs) if job == on), len(self.jobs))


def asked(lab: Lab) -> Asked:
    """Return what the grader asks of a lab's files."""
    if has_given_kernels(lab):
        return Asked((), ties=False)
    if lab.problem:
        from course_kernels.problem import Workload

        texts = [*lab.tries, *filter(None, [lab.held_on])]
        return Asked(tuple((size_of(Workload.parse(text)), "") for text in texts), ties=True)
    cases: Sequence[Any] = load_file(lab.folder / "truth.py", "lab_truth").cases()
    if cases and not isinstance(cases[0], dict):  # plays, see course_labs.interactive_cases
        first = [play for play in cases if not play.long]
        return Asked(tuple((play.job, "") for play in [*first, *(p for p in cases if p.long)]), ties=False)
    return Asked(tuple((case["job"], case["call"]) for case in cases), ties=False)


def reached(lab: Lab, door: str, verdict: dict[str, Any], questions: Asked) -> int | None:
    """Return how many of a lab's stages a hand-in has; None where it was not run and nobody knows.

    Args:
        verdict: with `found`, `on`, `why` and `text`.
    """
    found, on, why = verdict["found"], verdict["on"], verdict["why"]
    if found == NOT_RUN:
        return None
    if found == RIGHT:
        return len(lab.stages)
    place = _place(lab, questions, found, on, why)
    said = {number: _said(lab, door, number) for number in range(len(lab.stages), 0, -1)}
    places = {number: _place(lab, questions, *_parts(lab, questions, line)) for number, line in said.items()}
    if questions.ties:
        # At one size much can be wrong: only the complaint itself tells the stages apart that end there.
        first = verdict["text"].splitlines()[0]
        same = [number for number in said if places[number] == place and _alike(said[number], first)]
    else:
        same = [number for number in said if places[number] == place != NOWHERE]
    return max(same or [number for number in said if places[number] < place], default=0)


def _place(lab: Lab, questions: Asked, found: str, on: str, why: str) -> float:
    if not has_given_kernels(lab) or found == RIGHT or not on:
        return questions.place(found, on, why)
    names = [entry.removeprefix(ENTRY.format("")) for entry in lab.entry]
    name = on.partition(",")[0]
    if name not in names:
        return NOWHERE
    phase = 0 if found in REASONS else 1 if found in COUNTERS else 2
    return phase * len(names) + names.index(name)


def _said(lab: Lab, door: str, number: int) -> str:
    """Return the first line that the grader prints of the file after a stage."""
    lines = lab.prints(door, number).strip().splitlines()
    if lines[0].startswith("compiled") and lab.on_gpu[door][number]:
        lines = lab.on_gpu[door][number].splitlines()
    return lines[0]


def _parts(lab: Lab, questions: Asked, said: str) -> tuple[str, str, str]:
    """Return what was found, on what, and why, of a first line such as "refused on N=1 float32: wrong: …"."""
    if not said.startswith("refused"):
        return (RIGHT, "", "")
    if said.startswith("refused: "):
        found, _, why = said.removeprefix("refused: ").partition(": ")
        return (found, "", why)
    rest = said.removeprefix("refused on ")
    jobs = sorted((job for job, _ in questions.jobs if rest.startswith(f"{job}: ")), key=len)
    on = jobs[-1] if jobs else rest.partition(": ")[0]
    found, _, why = rest[len(on) + 2 :].partition(": ")
    return (found, on, why)


def _alike(said: str, line: str) -> bool:
    return same_lines(_LINE.sub("line …", said), _LINE.sub("line 0", line))
