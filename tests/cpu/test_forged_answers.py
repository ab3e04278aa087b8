"""What a student's process may say in place of its answer: a verdict in one line, and no crash of the grader."""

import json
from pathlib import Path

import pytest

from course_labs.interactive_cases import grade
from course_labs.lab import find_lab

ROOT = Path(__file__).parents[2]
NO_GPU = {"CUDA_VISIBLE_DEVICES": "-1"}
FORGE = """

import json
from course_judge.worker.connection import Connection

def say(self, answer):
    told = json.loads({forged!r})
    self._channel.send({{**told, "of": self._mark}} if isinstance(told, dict) else told)

class Forged:
    def __init__(self, function):
        self.function = function

    def __call__(self, *inputs, **options):
        Connection.say = say
        return self.function(*inputs, **options)

{name} = Forged({name})
"""
ARRAY = {"type": "ndarray", "plain": True, "dtype": "<f4", "shape": [1], "strides": [1]}


def judged(tmp_path, lab, door, answer, name, forged):
    lab = find_lab(ROOT, lab)
    file = tmp_path / lab.student_file(door)
    file.write_text(
        (lab.folder / door / answer).read_text() + FORGE.format(forged=json.dumps(forged), name=name)
    )
    return grade(lab, [file], door, environment=NO_GPU)[0]


@pytest.mark.parametrize(
    "forged",
    [
        [],
        {"value": [1]},
        {"value": {"a": 1}},
        {"value": True},
        {"value": 1, "verdict": "right"},
        {"strange": 5},
        {"outputs": []},
        {"failed": [], "why": ""},
        {"failed": "wrong"},
        {"failed": "right", "why": "it is"},
    ],
    ids=json.dumps,
)
def test_by_hand(tmp_path, forged):
    verdict = judged(tmp_path, "roofline", "python", "stage5.py", find_lab(ROOT, "roofline").entry[0], forged)
    assert verdict.found == "out of turn", verdict.text
    assert "\n" not in verdict.why


def test_a_whole_number_past_every_float_is_a_wrong_one(tmp_path):
    name = find_lab(ROOT, "roofline").entry[0]
    verdict = judged(tmp_path, "roofline", "python", "stage5.py", name, {"value": 10**400})
    assert verdict.found == "wrong", verdict.text


@pytest.mark.parametrize(
    "forged",
    [
        {"outputs": 1},
        {"outputs": [1]},
        {"outputs": [{}]},
        {"outputs": [ARRAY] * 65},
        {"outputs": [], "held": "much"},
        *(
            {"outputs": [ARRAY | wrong]}
            for wrong in (
                {"dtype": "V999999999999"},
                {"dtype": "f4,f4"},
                {"dtype": "(2,3"},
                {"dtype": 5},
                {"shape": [-1]},
                {"shape": [10**30]},
                {"shape": [1] * 17},
                {"strides": [10**30]},
                {"strides": []},
                {"at": 0},
                {"at": 10**30},
                {"at": [1]},
                {"shares": "0"},
                {"again": 1},
            )
        ),
    ],
    ids=lambda forged: json.dumps(forged)[-60:],
)
def test_over_arrays(tmp_path, forged):
    verdict = judged(tmp_path, "first_kernel", "numpy", "stage4.py", "vector_add", forged)
    assert verdict.found in ("out of turn", "wrong result", "wrong shape"), verdict.text
    assert "\n" not in verdict.why
