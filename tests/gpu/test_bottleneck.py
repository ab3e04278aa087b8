"""The lab of the six kernels on a card: each one anew must be quicker than the one that was given.

Everything else of the lab is judged without one: tests/cpu/test_labs.py and tests/cpu/test_diagnosis.py.
"""

import re
from pathlib import Path

import pytest

# Loaded by their names, and part of what is tested.
import course_kernels.bank_conflicts.problem
import course_kernels.bias_gelu.problem
import course_kernels.fused_multiply_add.problem
import course_kernels.reduction.problem
import course_kernels.softmax.problem
import course_kernels.vector_add.problem  # noqa: F401
from course_labs.diagnosis import SuspectsGrader, completed
from course_labs.lab import find_lab
from course_labs.verdict import RIGHT
from course_labs.worker import suspects  # noqa: F401
from course_labs.wrong_answers import wrong_files
from course_profile import competitor, subject  # noqa: F401

ROOT = Path(__file__).parents[2]
GROUPS = ("bottleneck",)
ALONE = True  # it looks at time

LAB = find_lab(ROOT, "bottleneck")
NAMES = [name.removeprefix("fixed_") for name in LAB.entry]
# Wrong answers that only a card can judge.
WRONG = {file: wrong.refused_for for file, wrong in wrong_files(LAB).items() if wrong.gpu_only}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """What the grader says of a file, once the recorded values are in it."""
    grader, complete = SuspectsGrader(LAB, needs_gpu=True), completed(LAB, ROOT)

    def graded(file):
        mine = tmp_path_factory.mktemp("mine") / "bottleneck.py"
        mine.write_text(complete(file.read_text(encoding="utf-8")), encoding="utf-8")
        return grader.verdict(mine, LAB.seconds)

    return graded


def test_every_kernel_of_the_answer_gains(graded, record_property):
    verdict = graded(LAB.solution("python"))
    record_property("said", verdict.text)

    assert verdict.found == RIGHT, verdict.text
    gains = [line for line in verdict.lines if re.fullmatch(r"\w+: [\d.]+ µs as it was given, .* now", line)]
    assert [line.partition(":")[0] for line in gains] == NAMES
    assert verdict.alone.found == RIGHT


@pytest.mark.parametrize(("file", "found"), WRONG.items(), ids=[file.name for file in WRONG])
def test_a_kernel_that_gains_nothing_is_refused(graded, file, found, record_property):
    verdict = graded(file)
    record_property("said", verdict.text)

    assert verdict.found == found, verdict.text
    assert verdict.code == 1
