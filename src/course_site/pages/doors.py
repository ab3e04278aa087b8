"""The doors of a lab, as every page names them: words, the option that chooses one, what the grader says behind it."""

from __future__ import annotations

from course_labs.lab import Lab

DOORS = {"triton": "Triton", "cuda": "CUDA C++", "numpy": "NumPy", "python": "Python"}


def option(lab: Lab, door: str) -> str:
    """Return what `nox -s lab` must be told for this door; nothing for the first."""
    return "" if door == next(iter(lab.doors)) else f" --door {door}"


def said(lab: Lab, door: str, stage: int) -> str:
    """Return what the grader says after a stage, on a machine that can run it."""
    if door == "cuda" and stage == len(lab.stages):
        return "right: …"
    return lab.on_gpu[door][stage] or lab.prints(door, stage)


def reasons(lab: Lab, door: str, stage: int) -> list[str]:
    """Return the same in lines without its advice for the next try, which is the students'."""
    lines = said(lab, door, stage).splitlines()
    return [line for line in lines if line.strip() and not line.startswith("next:")]
