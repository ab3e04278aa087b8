"""The judge: what it refuses and what it lets pass, on a machine without a GPU; and that nothing is left behind."""

import functools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from course_judge import __main__ as command
from course_judge.channel import MAX_MESSAGE, Channel, Gone, OutOfTurn, TimedOut
from course_judge.host import Host, Task
from course_judge.judge import judge
from course_judge.limits import GIB, Limits
from course_judge.sizes import drawn, small
from course_judge.verdict import PROPERTIES, RIGHT, Verdict, escaped, refused
from course_kernels.problem import Workload

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "judge"
QUICK = Limits(seconds=20.0, memory_bytes=2 * GIB, disk_bytes=GIB // 4)
SCALE = command.find_problem("refusals")


def header(file):
    """(property, where, what must be said) of a file's first line."""
    line = file.read_text(encoding="utf-8-sig").splitlines()[0]
    found = re.fullmatch(r"# refused for: ([^|]+?) \| on: ([^|]+?) \| source: ([^|]+?)(?: \| says: (.+))?", line)
    assert found, f"{file}: its first line does not say what it must be refused for"
    assert found[1] in PROPERTIES, f"{file}: the judge knows no {found[1]!r}"
    return found[1], found[2].split(", "), found[4] or ""


CHEATS = {file.stem: header(file) for file in sorted((FOLDER / "cheats").glob("*.py"))}
ON_THE_CPU = [name for name, (_, on, _) in CHEATS.items() if "cpu" in on]
RIGHT_ONES = sorted(file.stem for file in (FOLDER / "right").glob("*.py") if "# on: gpu" not in file.read_text())


@pytest.fixture(scope="module")
def host():
    with Host(command.modules(), command.environment(False)) as host:
        yield host


def judged(host, file, problem=SCALE, seed=None, limits=QUICK):
    return judge(host, file, problem, task=Task(file, problem.name, limits=limits), seed=seed)


def test_there_are_thirty_cheats_and_some_that_are_right():
    assert len(ON_THE_CPU) >= 30
    assert len(RIGHT_ONES) >= 8


@pytest.mark.parametrize("name", ON_THE_CPU)
def test_a_cheat_is_refused_for_its_reason(host, name):
    found, _, said = CHEATS[name]
    verdict = judged(host, FOLDER / "cheats" / f"{name}.py")

    assert (verdict.found, verdict.code) == (found, 1), verdict.text
    assert said in verdict.text


@pytest.mark.parametrize("name", RIGHT_ONES)
def test_what_is_right_passes(host, name):
    verdict = judged(host, FOLDER / "right" / f"{name}.py")
    assert (verdict.found, verdict.code) == (RIGHT, 0), verdict.text
