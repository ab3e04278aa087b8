"""The judge on the card: the cheats that only a card or its clock can show, kernels that are right, and their times.

The other cheats are judged without a card: tests/cpu/test_judge.py.
"""

import re
import tempfile
from pathlib import Path

import pytest

from course_judge import __main__ as command
from course_judge.host import Host, Task
from course_judge.judge import judge
from course_judge.limits import Limits
from course_judge.verdict import RIGHT

GROUPS = ("judge",)
ALONE = True  # it looks at time

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "judge"
SCALE = command.find_problem("refusals")
QUICK = Limits(seconds=12.0)
# Beside those that need a card: what only a timed call shows.
TIMED = {
    "faster_than_floor",
    "looks_who_asks",
    "right_at_first",
    "batched_calls",
    "worker_thread",
    "late_thread",
}
KERNELS = (
    "vector_add/k02_triton.py",
    "softmax/k01_online.py",
    "reduction/k04_vectorised.py",
    "transpose/k04_swizzled.py",
    "sgemm/k05_register_tile.py",
    "gemm/k05_triton.py",
)


def header(file):
    found = re.match(r"# refused for: ([^|]+) \| on: ([^|]+) \|", file.read_text(encoding="utf-8-sig"))
    return found[1].split(" or "), found[2].split(", ")


CHEATS = [
    file
    for file in sorted((FOLDER / "cheats").glob("*.py"))
    if header(file)[1] == ["gpu"] or file.stem in TIMED
]
HONEST = sorted((FOLDER / "right").glob("*.py"))
TIME = r"\S+ takes ([\d.]+) µs"


@pytest.fixture(scope="module")
def host():
    with Host(command.modules(), command.environment(True)) as host:
        yield host


def judged(host, file, problem, time_on=True, own=False):
    task = Task(file, problem.name, own=own, limits=QUICK)
    how = {"time_on": problem.time_on[0]} if time_on else {}
    return judge(host, file, problem, device="cuda", task=task, **how)


@pytest.mark.parametrize("file", CHEATS, ids=lambda file: file.stem)
def test_a_cheat_is_refused_for_its_reason(host, file):
    properties, _ = header(file)
    verdict = judged(host, file, SCALE, own=properties in (["not yours"], ["out of bounds"]))
    if "clock" in properties and verdict.found == RIGHT:
        # Its patch met nothing: it does the work many times over, and both clocks say so.
        took = re.match(rf"{TIME}, [\d.]+% of peak; the judge's own clock", verdict.lines[0])
        assert took, verdict.text
        assert float(took[1]) > 1000, verdict.text
        return
    assert verdict.found in properties, verdict.text
    assert verdict.code == 1


@pytest.mark.parametrize("file", HONEST, ids=lambda file: file.stem)
def test_what_is_right_passes(host, file):
    verdict = judged(host, file, SCALE, time_on=False)
    assert verdict.found == RIGHT, verdict.text


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_of_the_library_is_right_and_both_clocks_agree(host, name):
    file = ROOT / "src" / "course_kernels" / name
    verdict = judged(host, file, command.find_problem(file.parent.name))
    assert verdict.found == RIGHT, verdict.text
    assert re.match(
        rf"{TIME}, [\d.]+% of peak; the judge's own clock, launches included: ", verdict.lines[0]
    ), verdict.text


def test_nothing_is_left_in_the_temporary_folder():
    assert not list(Path(tempfile.gettempdir()).glob("judge-*"))
