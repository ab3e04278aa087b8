"""Every lab on the card: answers pass with a time and a percent of peak, starters and wrong answers are refused.

Of the wrong answers those that only a card can judge. The others are judged without one: tests/cpu/test_labs.py, which
also sees to it that none is left out.

Nothing else runs on the card meanwhile: a wrong answer that races is refused for what it leaves behind, and beside a
busy neighbour it may leave something else.
"""

import functools
import re
from pathlib import Path

import pytest
import torch

from course_kernels.measure.machine import machine_for
from course_labs.grade import grade_each
from course_labs.lab import ON_THE_CPU, find_labs, same_lines
from course_labs.verdict import NEXT, RIGHT
from course_labs.wrong_answers import wrong_files

ROOT = Path(__file__).parents[2]
LABS = find_labs(ROOT)
GROUPS = ("every lab",)
# The other doors are graded without a card: tests/cpu/test_labs.py.
DOORS = {name: [door for door in lab.doors if door not in ON_THE_CPU] for name, lab in LABS.items()}
ON_THE_CARD = [name for name, doors in DOORS.items() if doors]


def of_lab(name):
    return pytest.mark.group(f"lab:{name}")


SNAPSHOTS = [
    pytest.param(name, door, stage, id=f"{name}-{door}-{stage or 'starter'}", marks=of_lab(name))
    for name in ON_THE_CARD
    for door in DOORS[name]
    for stage in range(len(LABS[name].stages) + 1)
]


def wrong_answers(name):
    """(file, property it must be refused for, what must be said), of the files that only a card can judge."""
    found = []
    for file, wrong in wrong_files(LABS[name]).items():
        assert wrong.refused_for in NEXT, f"{file}: the grader knows no {wrong.refused_for!r}"
        if file.suffix == ".cu" or wrong.gpu_only:
            found.append((file, wrong.refused_for, wrong.says))
    return found


WRONG = [
    pytest.param(name, *wrong, id=f"{name}-{wrong[0].name}", marks=of_lab(name))
    for name in ON_THE_CARD
    for wrong in wrong_answers(name)
]


ALONE = [
    pytest.param(name, door, True, id=f"{name}-{door}-alone", marks=of_lab(name))
    for name in ON_THE_CARD
    for door in DOORS[name]
    if LABS[name].alone
]


def task_of(name, file=None, door="", stage=0, solved=False, **_):
    """(lab, door, file), as the grader takes them."""
    lab = LABS[name]
    if solved:
        return (lab, door, lab.solution(door))
    return (lab, lab.door_of(file), file) if file else (lab, door, lab.snapshot(door, stage))


@functools.cache
def speed():
    """What a time looks like; a card without a data sheet has no peak."""
    peak = r", [\d.]+% of peak" if machine_for(torch.cuda.get_device_name()) else r" \(no data sheet .*\)"
    return rf"[\d.]+ µs{peak}"


@pytest.fixture(scope="module")
def verdict_on(request):
    """What the grader says of a file; it grades, in one process, what the chosen tests will ask for, in their order."""
    asking = [item for item in request.session.items if "verdict_on" in item.fixturenames]
    tasks = [task_of(**item.callspec.params) for item in asking]
    coming = zip([file for *_, file in tasks], grade_each(tasks, needs_gpu=True), strict=True)
    known = {}

    def verdict_on(file):
        while file not in known:
            known.update([next(coming)])
        return known[file]

    return verdict_on


@pytest.mark.group("lab:first_kernel")
def test_the_labs_are_found():
    assert "first_kernel" in ON_THE_CARD


@pytest.mark.parametrize(("name", "door", "stage"), SNAPSHOTS)
def test_a_snapshot_is_told_what_the_lab_says(verdict_on, name, door, stage):
    lab = LABS[name]
    verdict = verdict_on(lab.snapshot(door, stage))
    expected = lab.on_gpu[door][stage] or lab.prints(door, stage)
    lines = verdict.text.splitlines()

    if stage == len(lab.stages) or expected.startswith("right: "):
        assert re.fullmatch(rf"right: correct on every size tried; \S.* takes {speed()}", lines[0])
        if lab.alone and stage == len(lab.stages):
            assert lines[-1] == f"alone: {lab.alone.doors[door]}"
        if lab.beside:
            assert re.fullmatch(rf"the library's {re.escape(lab.beside)}: {speed()}", lines[1])
    else:
        assert same_lines(expected, verdict.text), verdict.text
        assert verdict.code == 1
        assert "\nnext: " in verdict.text


@pytest.mark.parametrize(("name", "door", "solved"), ALONE)
def test_a_last_task_is_right_in_its_solution(verdict_on, name, door, solved):
    lab = LABS[name]
    verdict = verdict_on(lab.solution(door))

    assert verdict.code == 0, verdict.text
    timed = rf"\S.* takes {speed()}" if lab.alone.time else "no speed claim: this task is not timed"
    assert re.fullmatch(
        rf"alone: right, and the lab is done: correct on every size tried; {timed}",
        verdict.text.splitlines()[-1],
    )


@pytest.mark.parametrize(("name", "file", "found", "said"), WRONG)
def test_a_wrong_answer_is_refused_for_its_reason(verdict_on, name, file, found, said):
    verdict = verdict_on(file)
    assert verdict.code == 1, verdict.text
    if file.name.startswith("alone_"):
        assert verdict.found == RIGHT, verdict.text
        verdict = verdict.alone

    assert verdict.found == found, verdict.text
    assert said in verdict.text
    assert verdict.code == 1
