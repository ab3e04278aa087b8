"""The labs' CUDA C++ files, run without a GPU: thread by thread, through the same launch.py and the same grader."""

import functools
import os
from pathlib import Path

import pytest
from answers import repeats

from course_labs import hints
from course_labs.further_cases import further_of
from course_labs.grade import Grader
from course_labs.lab import find_labs, same_lines
from course_labs.verdict import NOT_BEGUN, RIGHT
from course_labs.wrong_answers import wrong_files

ROOT, HERE = Path(__file__).parents[2], Path(__file__).parent
KERNELS = ROOT / "src" / "course_kernels"
LABS = {name: lab for name, lab in find_labs(ROOT).items() if "cuda" in lab.doors}
# Wrong only with more numbers than one launch has threads: too many for a CPU.
LARGE = {"reduction/stage3", "wrong_one_walk"}
# Two threads, or two warps, meet at one word only where they run at the same time.
RACES = {"wrong_no_atomic", "wrong_one_room_for_all"}
ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "-1",
    "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(ROOT / "src")]),
}
SECONDS = 120  # a compiler builds each file first


class OnTheCpu(Grader):
    """A grader whose CUDA C++ kernels run on the CPU, on the sizes that a GPU would see, as far as they are small."""

    worker = "worker_on_cpu"

    def __init__(self, lab, *_):
        super().__init__(lab, "cuda", environment=ENVIRONMENT)
        if lab.problem:
            more = [w for w in self.problem.check_on if self._alike(w, self.tries)]
            self.tries = [w for w in self.tries + more if self.problem.reads_bytes(w) < 2**19]

    def _drawn_further(self):
        return further_of(self.lab, self.door, slow=True)


@functools.cache
def grader(name):
    return OnTheCpu(LABS[name])


def verdict(name, file):
    return grader(name).verdict(file, SECONDS)


def of_lab(name, **_):
    """What decides the verdict on any file of a lab, beside the grader."""
    problem = [KERNELS / LABS[name].problem] if LABS[name].problem else []
    return [LABS[name].folder, *problem]


by_the_lab = pytest.mark.kept(HERE / "worker_on_cpu.py", of=of_lab, but=["labs/*"])
SNAPSHOTS = [(name, stage) for name, lab in LABS.items() for stage in range(len(lab.stages) + 1)]


@by_the_lab
@pytest.mark.parametrize(("name", "stage"), SNAPSHOTS, ids=lambda value: str(value))
def test_every_stage_gets_the_verdict_that_the_lab_promises_for_a_gpu(name, stage):
    if f"{name}/stage{stage}" in LARGE:
        pytest.skip("its sizes are too large for a CPU")
    lab = LABS[name]
    if lab.prints("cuda", stage).startswith("refused: does not compile"):
        pytest.skip("refused by the compiler, before anything runs")
    found = verdict(name, lab.snapshot("cuda", stage))
    if stage == len(lab.stages) and lab.alone:
        assert found.alone.found == NOT_BEGUN
    if stage == len(lab.stages) or not lab.on_gpu["cuda"][stage]:
        assert found.found == "right", found.text
    else:
        assert same_lines(lab.on_gpu["cuda"][stage], found.text), found.text


@by_the_lab
@pytest.mark.parametrize("name", [name for name, lab in LABS.items() if lab.alone])
def test_every_last_task_is_right_in_its_solution(name):
    found = verdict(name, LABS[name].solution("cuda"))
    assert (found.found, found.alone.found) == (RIGHT, RIGHT), found.text


WRONG = [
    pytest.param(name, path, wrong.refused_for, id=f"{name}-{path.stem}")
    for name, lab in LABS.items()
    for path, wrong in wrong_files(lab).items()
    if path.suffix == ".cu"
]


@by_the_lab
@pytest.mark.parametrize(("name", "path", "reason"), WRONG)
def test_every_wrong_kernel_is_refused_for_its_reason(name, path, reason):
    if path.stem in LARGE | RACES:
        pytest.skip("shows on a GPU only")
    if reason in ("does not compile", "function missing", "not yours"):
        pytest.skip("refused by the compiler, before anything runs")
    lab = LABS[name]
    if path.stem.startswith("alone_") and repeats(path, lab.snapshot("cuda", len(lab.stages))):
        found = grader(name).alone._own_verdict(path, SECONDS)
    else:
        found = verdict(name, path)
        found = found.alone if path.stem.startswith("alone_") else found
    assert found.found == reason, found.text


def test_a_kernel_that_is_right_only_sometimes_is_told_of_a_race():
    said = "work on another stream: right when the host waits for the whole GPU"

    assert hints.wrong(said, "M=1 N=1 K=1 float32", "cuda").text.splitlines() == [
        "refused on M=1 N=1 K=1 float32: wrong: right in one call and wrong in another",
        "next: two threads use one place at the same time, and which comes first is chance. Where must they wait?",
    ]
