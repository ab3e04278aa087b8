"""Every lab on the card: answers pass with a time and a percent of peak, starters and wrong answers are refused."""

import functools
import re
from pathlib import Path

import pytest
import torch

from course_kernels.measure.machine import machine_for
from course_labs.grade import grade_all
from course_labs.lab import ON_THE_CPU, find_labs, same_lines
from course_labs.verdict import NEXT

ROOT = Path(__file__).parents[2]
LABS = find_labs(ROOT)
ON_THE_CARD = [name for name, lab in LABS.items() if set(lab.doors) - set(ON_THE_CPU)]
# A card without a data sheet has no peak.
PEAK = r", [\d.]+% of peak" if machine_for(torch.cuda.get_device_name()) else r" \(no data sheet .*\)"
SPEED = rf"[\d.]+ µs{PEAK}"

SNAPSHOTS = [
    pytest.param(name, door, stage, id=f"{name}-{door}-{stage or 'starter'}")
    for name in ON_THE_CARD
    for door in LABS[name].doors
    for stage in range(len(LABS[name].stages) + 1)
]


def wrong_answers(name):
    """(file, property it must be refused for, what must be said)."""
    found = []
    for file in sorted((ROOT / "tests" / "labs" / name).glob("wrong_*")):
        head = re.match(r"(?:#|//) refused for: ([^|\n]+?)(?: \| ([^\n]+))?\n", file.read_text())
        assert head, f"{file}: its first line does not say what it must be refused for"
        assert head[1] in NEXT, f"{file}: the grader knows no {head[1]!r}"
        found.append((file, head[1], "" if head[2] in (None, "GPU only") else head[2]))
    return found


WRONG = [
    pytest.param(*wrong, id=f"{name}-{wrong[0].name}")
    for name in ON_THE_CARD
    for wrong in wrong_answers(name)
]


@functools.cache
def verdicts():
    """What the grader says of everything that lies beside a lab, by file, in as few processes as it can."""
    tasks = []
    for name in ON_THE_CARD:
        lab = LABS[name]
        tasks += [(lab, d, lab.snapshot(d, stage)) for d in lab.doors for stage in range(len(lab.stages) + 1)]
        tasks += [(lab, lab.door_of(file), file) for file, _, _ in wrong_answers(name)]
    for *_, file in tasks:
        file.read_bytes()  # so that the record of this run names what was graded
    return dict(zip([file for *_, file in tasks], grade_all(tasks, needs_gpu=True), strict=True))


def test_the_labs_are_found():
    assert "first_kernel" in ON_THE_CARD


@pytest.mark.parametrize(("name", "door", "stage"), SNAPSHOTS)
def test_a_snapshot_is_told_what_the_lab_says(name, door, stage):
    lab = LABS[name]
    verdict = verdicts()[lab.snapshot(door, stage)]
    expected = lab.on_gpu[door][stage] or lab.prints(door, stage)
    lines = verdict.text.splitlines()

    if stage == len(lab.stages) or expected.startswith("right; "):
        cpu = door in ON_THE_CPU
        assert re.fullmatch(r"right; no speed claim: .*" if cpu else rf"right; \S.* takes {SPEED}", lines[0])
        if lab.beside and not cpu:
            assert re.fullmatch(rf"the library's {re.escape(lab.beside)}: {SPEED}", lines[1])
    else:
        assert same_lines(expected, verdict.text), verdict.text
        assert verdict.code == 1
        assert "\nnext: " in verdict.text


@pytest.mark.parametrize(("file", "found", "said"), WRONG)
def test_a_wrong_answer_is_refused_for_its_reason(file, found, said):
    verdict = verdicts()[file]

    assert verdict.found == found, verdict.text
    assert said in verdict.text
    assert verdict.code == 1
