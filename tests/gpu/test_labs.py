"""Every lab on the card: answers pass with a time and a percent of peak, starters and wrong answers are refused."""

import functools
import re
from pathlib import Path

import pytest

from course_labs.grade import grade
from course_labs.lab import ON_THE_CPU, find_labs, same_lines
from course_labs.verdict import NEXT

ROOT = Path(__file__).parents[2]
LABS = find_labs(ROOT)
ON_THE_CARD = [name for name, lab in LABS.items() if set(lab.doors) - set(ON_THE_CPU)]

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
    pytest.param(name, *wrong, id=f"{name}-{wrong[0].name}")
    for name in ON_THE_CARD
    for wrong in wrong_answers(name)
]


@functools.cache
def verdicts(name):
    """What the grader says of everything that lies beside a lab, in as few processes as it needs."""
    lab = LABS[name]
    files = [lab.snapshot(door, stage) for door in lab.doors for stage in range(len(lab.stages) + 1)]
    for file in files:
        file.read_bytes()  # so that the record of this run names what was graded
    files += [file for file, _, _ in wrong_answers(name)]
    return dict(zip(files, grade(lab, files, needs_gpu=True), strict=True))


def test_the_labs_are_found():
    assert "first_kernel" in ON_THE_CARD


@pytest.mark.parametrize(("name", "door", "stage"), SNAPSHOTS)
def test_a_snapshot_is_told_what_the_lab_says(name, door, stage):
    lab = LABS[name]
    verdict = verdicts(name)[lab.snapshot(door, stage)]
    expected = lab.on_gpu[door][stage] or lab.prints(door, stage)

    if stage == len(lab.stages) or expected.startswith("right; "):
        timed = (
            r"right; [\d.]+ µs, [\d.]+% of peak on \S.*"
            if door not in ON_THE_CPU
            else r"right; no speed claim: .*"
        )
        assert re.fullmatch(timed, verdict.text.splitlines()[0]), verdict.text
        if lab.beside and door not in ON_THE_CPU:
            beside = rf"the library's {re.escape(lab.beside)}: [\d.]+ µs, [\d.]+% of peak"
            assert re.fullmatch(beside, verdict.text.splitlines()[1]), verdict.text
    else:
        assert same_lines(expected, verdict.text), verdict.text
        assert verdict.code == 1
        assert "\nnext: " in verdict.text


@pytest.mark.parametrize(("name", "file", "found", "said"), WRONG)
def test_a_wrong_answer_is_refused_for_its_reason(name, file, found, said):
    verdict = verdicts(name)[file]

    assert verdict.found == found, verdict.text
    assert said in verdict.text
    assert verdict.code == 1
