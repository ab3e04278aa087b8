"""Result of one hand-in for Classroom 50: `result.json` in its form `classroom50/result/v1`, and words for people.

The form is that of its page *Advanced Autograding*, read on 2026-11-30:
https://github.com/foundation50/classroom50/wiki/Advanced-Autograding
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from typing import Any

from course_labs.lab import Lab

SCHEMA = "classroom50/result/v1"


def result(lab: Lab, answer: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """Return `result.json` as data: a test for each stage, and one for the last task.

    Args:
        answer: what `grading_line.answered` says of the file that counts.
        environment: the variables that its runner sets.
    """
    tests = _tests(lab, answer)
    commit = environment.get("COMMIT_URL", "")
    return {
        "schema": SCHEMA,
        "classroom": environment.get("CLASSROOM", ""),
        "assignment": environment.get("ASSIGNMENT", ""),
        "assignment_type": environment.get("ASSIGNMENT_TYPE") or "individual",
        "owner": environment.get("OWNER") or environment.get("USERNAME", ""),
        "submission": environment.get("SUBMISSION_TAG", ""),
        "commit": commit,
        "release": environment.get("RELEASE_URL", ""),
        "review": environment.get("REVIEW_URL") or commit,
        "datetime": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "score": sum(test["score"] for test in tests),
        "max-score": sum(test["max-score"] for test in tests),
        "tests": tests,
    }


def _tests(lab: Lab, answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    stages = answer["stages"] or 0
    tests = [
        _test(f"stage {number}: {stage.title}", number <= stages)
        for number, stage in enumerate(lab.stages, start=1)
    ]
    if lab.alone is not None:
        tests.append(_test(f"last task: {lab.alone.title}", answer["alone_right"]))
    failed = [test for test in tests if not test["passed"]]
    (failed or tests)[0]["output"] = answer["text"]
    return tests


def _test(name: str, passed: bool) -> dict[str, Any]:
    return {"test-name": name, "passed": passed, "score": int(passed), "max-score": 1}


def body(lab: Lab, told: Mapping[str, Any], answer: Mapping[str, Any], others: Sequence[str] = ()) -> str:
    """Return the words for the release, in Markdown: the stages, and what the grader says.

    Args:
        told: `result.json` as data.
        others: names of further files that were graded and count less.
    """
    rows = [
        f"| {_cell(test['test-name'])} | {'yes' if test['passed'] else 'not yet'} |" for test in told["tests"]
    ]
    parts = [
        f"### {_cell(lab.title)}: {told['score']} of {told['max-score']}",
        "\n".join(["| | |", "|---|---|", *rows]),
        "The grader says:",
        fenced(answer["text"]),
    ]
    if answer.get("ran"):
        parts.append(f"It ran {answer['ran']}.")
    if answer.get("printed"):
        parts += ["What your file printed; it decides nothing:", fenced(answer["printed"])]
    if others:
        parts.append(f"Graded as well, and worth less: {', '.join(others)}.")
    return "\n\n".join(parts) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def fenced(text: str) -> str:
    """Return a text as a block of code that nothing in it can end."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"
