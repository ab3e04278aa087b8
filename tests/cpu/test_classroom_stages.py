"""How far a hand-in has come, by what the grader said: the files after each stage stand where their stage is."""

import re
from pathlib import Path

import pytest

from course_classroom.stages import _parts, _said, asked, reached
from course_labs.lab import find_labs
from course_labs.verdict import NEXT, NOT_RUN, RIGHT

LABS = find_labs(Path(__file__).parents[2])
OTHERS = {"wrong reason", "wrong counter", "no page", "cheat refused"}  # of labs with words of their own
DOORS = [(name, door) for name, lab in LABS.items() for door in lab.doors if door != "cuda"]


def verdict_of(lab, door, number, questions):
    said = _said(lab, door, number)
    found, on, why = _parts(lab, questions, said)
    return {"found": found, "on": on, "why": why, "text": said}


@pytest.mark.parametrize(("name", "door"), DOORS)
def test_the_file_after_a_stage_has_that_stage(name, door):
    """Or a later one, where the grader says the same of both."""
    lab = LABS[name]
    questions = asked(lab)
    said = [verdict_of(lab, door, number, questions) for number in range(len(lab.stages) + 1)]
    for number, verdict in enumerate(said):
        assert verdict["found"] in {RIGHT, *NEXT, *OTHERS}, verdict
        alike = [
            n
            for n, other in enumerate(said)
            if (other["found"], other["on"]) == (verdict["found"], verdict["on"])
        ]
        assert reached(lab, door, verdict, questions) in [n for n in alike if n >= number], (number, verdict)


@pytest.mark.parametrize(
    ("name", "door", "text", "stages"),
    [
        ("first_kernel", "numpy", "refused: syntax error: line 3: '(' was never closed", 0),
        ("first_kernel", "numpy", "refused on N=1 float32: crashed: line 9: NotImplementedError", 0),
        ("first_kernel", "numpy", "refused on N=1 float32: crashed: line 99: IndexError: index 1 is out of bounds for "
         "axis 0 with size 1", 2),
        ("first_kernel", "numpy", "refused on N=1000 float32: wrong: 7 of 1000 elements", 2),
        ("first_kernel", "numpy", "refused on N=5000 float32: wrong: 7 of 5000 elements", 2),
        ("first_kernel", "numpy", "refused on N=5000 float32: not in blocks: right numbers, but", 3),
        ("first_kernel", "numpy", "refused on N=777 float32: wrong: nobody announced it", 3),
        ("paged", "python", "refused on one that fits: wrong: runs_out: expected 0, got 1", 4),
        ("paged", "python", "refused on 1 token in pages of 1: wrong row: token 0", 0),
        ("roofline", "python", "refused on adding two lists of 1 numbers: wrong: add_flops(N=1): expected 1, got 2", 1),
        ("roofline", "python", "refused on adding two lists of 1 numbers: wrong: add_bytes(N=1): got 2", 0),
        ("bottleneck", "python", "refused on add: wrong reason: add does not wait for that", 0),
        ("bottleneck", "python", "refused on add: wrong counter: dram", 1),
        ("bottleneck", "python", "refused on bias_gelu, N=1 float32: wrong: 1 of 1", 2),
    ],
)  # fmt: skip
def test_who_is_refused_later_has_more(name, door, text, stages):
    lab = LABS[name]
    questions = asked(lab)
    found, on, why = _parts(lab, questions, text)
    assert reached(lab, door, {"found": found, "on": on, "why": why, "text": text}, questions) == stages


def test_right_is_all_and_not_run_is_nothing_known():
    lab = LABS["transpose"]
    for found, stages in ((RIGHT, 5), (NOT_RUN, None)):
        verdict = {"found": found, "on": "", "why": "", "text": re.sub("^", found, "")}
        assert reached(lab, "triton", verdict, asked(lab)) == stages
