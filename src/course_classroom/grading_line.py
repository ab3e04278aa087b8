"""``python -m course_classroom.grading_line FD``: grades file after file, and says each verdict as a line of JSON.

Many of these run at once (`course_classroom.grading`). What runs a student's file is a process of the grader's, with
the judge's limits; here nothing of the file is loaded. Verdicts go out through a pipe of their own, which no process
that is started from here inherits: whatever a file prints, it is no verdict.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from course_classroom.stages import asked, reached
from course_labs.grade import CannotGrade
from course_labs.interactive_cases import grade
from course_labs.lab import find_lab
from course_labs.verdict import RIGHT, Verdict

ROOT = Path(__file__).resolve().parents[2]
EASY_TO_END = "900"  # of 1000: where memory runs out, the system ends a hand-in, and not the one who counts


def main(pipe: int) -> int:
    """Grade what standard input asks for, a JSON object a line, until it ends."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(EASY_TO_END, encoding="ascii")
    os.set_inheritable(pipe, False)
    with os.fdopen(pipe, "w", encoding="utf-8") as answers:
        for line in sys.stdin:
            task = json.loads(line)
            answers.write(json.dumps(answered(task)) + "\n")
            answers.flush()
    return 0


def answered(task: dict[str, Any], root: Path = ROOT) -> dict[str, Any]:
    """Return the verdict on one file as plain data, or why it could not be graded.

    Args:
        task: `lab`, `door`, `file`, `seconds` or None, and `gpu`.
    """
    lab = find_lab(root, task["lab"])
    begun = time.monotonic()
    try:
        verdict = grade(
            lab,
            [Path(task["file"])],
            task["door"],
            seconds=task["seconds"],
            needs_gpu=task["gpu"],
            compile=True,  # as for a student who grades alone
        )[0]
    except CannotGrade as error:
        return {"ungraded": str(error)}
    told = as_data(verdict)
    told["stages"] = reached(lab, task["door"], told, asked(lab))
    told["alone"] = None if verdict.alone is None else as_data(verdict.alone)
    told["alone_right"] = verdict.alone is not None and verdict.alone.found == RIGHT
    told["seconds"] = round(time.monotonic() - begun, 1)
    return told


def as_data(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as plain data, with its text for the student."""
    names = ("found", "why", "on", "printed", "ran", "code", "text")
    return {name: getattr(verdict, name) for name in names}


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
