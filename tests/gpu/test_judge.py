"""The judge on the card: every cheat that shows there, every kernel and every Triton answer of the library.

What must be timed to show is in test_judge_clocks.py. A cheat that shows on any machine is judged without a card as
well: tests/cpu/test_judge.py.
"""

import os
import pwd
import re
import shutil
import tempfile
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
import torch

from course_judge import __main__ as command
from course_judge.host import Host, Task
from course_judge.judge import judge
from course_judge.protocol.limits import GIB, Limits
from course_judge.protocol.verdict import RIGHT
from course_kernels.problem import Workload
from course_kernels.refusals.problem import PROBLEM as SCALE
from course_labs.lab import find_labs

GROUPS = ("judge",)

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "judge"
PATIENT = Limits(seconds=30.0, memory_bytes=4 * GIB, disk_bytes=GIB // 4)
# Some end no sooner than their limit.
QUICK = replace(PATIENT, seconds=4.0)
# Each call leaves a process; there are more calls than a stranger may have processes.
MANY = replace(PATIENT, processes=1000)
# Beside those that need a card: what a timed call shows.
TIMED = {"faster_than_floor", "right_at_first", "batched_calls", "worker_thread", "late_thread"}
# It asks the process that starts strangers to end.
KILLS = "kills_the_judge"
# Where the system has no walls around files these only write, and the verdict says that nothing held them.
WRITE = {"writes_into_home", "writes_into_site_packages", "writes_into_the_repository"}
TIME = r"\S+ takes ([\d.]+) µs"


def header(file):
    """(properties, where, what must be said) of a file's first line."""
    line = file.read_text(encoding="utf-8-sig").splitlines()[0]
    found = re.fullmatch(
        r"# refused for: ([^|]+) \| on: ([^|]+) \| source: ([^|]+?)(?: \| says: (.+))?", line
    )
    assert found, f"{file}: its first line does not say what it must be refused for"
    return found[1].split(" or "), found[2].split(", "), found[4] or ""


def files_in(folder):
    return sorted(file for file in (FOLDER / folder).iterdir() if file.name.endswith((".py", ".py.txt")))


def name_of(file):
    return file.name.split(".")[0]


CHEATS = [file for file in files_in("cheats") if "gpu" in header(file)[1]]
HONEST = files_in("right")


@pytest.fixture(scope="module")
def host():
    with Host(command.modules(True, own=True), command.environment(True)) as host:
        yield host


@pytest.fixture
def judged(host, tmp_path):
    def judged(file, problem=SCALE, *, by=host, limits=PATIENT, own=False, function=None, **how):
        if file.suffix == ".txt":  # what no formatter leaves as it is
            file = Path(shutil.copy(file, tmp_path / file.stem))
        task = Task(file, function or problem.name, own=own, limits=limits)
        return judge(by, file, problem, device="cuda", task=task, **how)

    return judged


def written_outside():
    """What was written where nothing may be, under the names that the cheats use."""
    beside_torch = Path(torch.__file__).parents[1]
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    return [*ROOT.glob("src/**/*.cheated"), *home.glob(".*.cheated"), *beside_torch.glob("*.cheated")]


def limits_of(properties):
    if "timed out" in properties:
        return QUICK
    return MANY if "left behind" in properties else PATIENT


def is_timed(file):
    return header(file)[1] == ["gpu"] or file.stem in TIMED


def is_refused(judged, file, record_property, **how):
    """A cheat is refused for one of the reasons that its first line gives."""
    properties, _, said = header(file)
    how |= {"limits": limits_of(properties), "own": properties in (["not yours"], ["out of bounds"])}
    if file.stem == KILLS:
        with Host(command.modules(True, own=True), command.environment(True)) as another:
            verdict = judged(file, by=another, **how)
    else:
        verdict = judged(file, **how)
    record_property("found", verdict.found)

    if "clock" in properties and verdict.found == RIGHT:
        # Its patch met nothing: it does the work many times over, and both clocks say so.
        took = re.match(rf"{TIME}, [\d.]+% of peak; the judge's own clock", verdict.lines[0])
        assert took, verdict.text
        assert float(took[1]) > 1000, verdict.text
        return
    if file.stem in WRITE and "files outside of its folder" in verdict.not_held:
        for written in written_outside():
            written.unlink()
        return
    assert verdict.found in properties, verdict.text
    assert verdict.code == 1
    assert said in verdict.text


@pytest.mark.parametrize("file", [file for file in CHEATS if not is_timed(file)], ids=name_of)
def test_a_cheat_is_refused_for_its_reason(judged, file, record_property):
    is_refused(judged, file, record_property)


@pytest.mark.parametrize("file", HONEST, ids=name_of)
def test_what_is_right_passes(judged, file):
    verdict = judged(file)
    assert verdict.found == RIGHT, verdict.text


# --- what the library has -------------------------------------------------------------------------

KERNELS = sorted((ROOT / "src" / "course_kernels").glob("*/k[0-9][0-9]_*.py"))
# One of each kind is timed as well.
CLOCKED = {
    "vector_add/k02_triton",
    "softmax/k01_online",
    "reduction/k04_vectorised",
    "transpose/k04_swizzled",
    "sgemm/k05_register_tile",
    "gemm/k05_triton",
}
# What the truth in double precision works out in a moment.
MOST_FLOPS = 2**31
MOST_BYTES = 2**26


def kernel_of(file):
    return f"{file.parent.name}/{file.stem}"


def sizes_for(file, problem):
    """Of the workloads that a kernel takes a small one, a large one, and the largest in whole vectors."""
    kernel = import_module(f"course_kernels.{file.parent.name}.{file.stem}")
    supports = getattr(kernel, "supports", lambda w: True)
    fit = [
        w
        for w in problem.check_on
        if supports(w)
        and problem.flops(w) <= MOST_FLOPS
        and problem.reads_bytes(w) + problem.writes_bytes(w) <= MOST_BYTES
    ]
    fit.sort(key=lambda w: (problem.flops(w), problem.reads_bytes(w)))
    whole = [w for w in fit if all(size % 8 == 0 for name, size in w.dims.items() if name in "MNK")]
    # So small that a size of its own kind can still be drawn: a wide one has none, and nobody would be asked.
    return list(dict.fromkeys([fit[len(fit) // 8], fit[-1], *whole[-1:]]))


def is_right(judged, file, *, clocked=False):
    problem = command.find_problem(file.parent.name)
    how = {"time_on": problem.time_on[0]} if clocked else {}
    verdict = judged(file, problem, limits=Limits(), workloads=sizes_for(file, problem), **how)
    assert verdict.found == RIGHT, verdict.text
    return verdict


@pytest.mark.parametrize("file", [file for file in KERNELS if kernel_of(file) not in CLOCKED], ids=kernel_of)
def test_a_kernel_of_the_library_is_right(judged, file):
    is_right(judged, file)


def test_every_kernel_that_is_timed_is_there():
    assert set(map(kernel_of, KERNELS)) >= CLOCKED
    assert {file.stem for file in CHEATS} >= TIMED | WRITE | {KILLS}


# The answers in CUDA C++ are started as their lab starts them: tests/gpu/test_labs.py.
ANSWERS = [pytest.param(lab, id=name) for name, lab in find_labs(ROOT).items() if "triton" in lab.doors]


@pytest.mark.parametrize("lab", ANSWERS)
def test_the_triton_answer_of_a_lab_is_right_and_its_own(judged, lab):
    problem = command.find_problem(lab.problem)
    sizes = [Workload.parse(text) for text in lab.tries][:3]
    verdict = judged(
        lab.solution("triton"), problem, limits=Limits(), own=True, function=lab.entry[0], workloads=sizes
    )
    assert verdict.found == RIGHT, verdict.text


def test_nothing_is_left():
    assert not list(Path(tempfile.gettempdir()).glob("judge-*"))
    assert not written_outside()
