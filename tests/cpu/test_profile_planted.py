"""The planted kernels on the CPU: each solves its problem, and says what must be named."""

from pathlib import Path

import pytest
from cuda_on_cpu import build

from course_kernels.measure.check import Check, WrongResult
from course_kernels.problem import Workload
from course_profile.load import competitor_of, problem_of
from course_profile.rules import RULES
from course_profile.take import take

PLANTED = Path(__file__).parents[1] / "profile"
# A size that no block divides.
SMALL = {
    "bank_conflicts.cu": "dtype=float32,M=33,N=70",
    "uncoalesced.cu": "dtype=float32,M=33,N=72",
    "bytes_in_flight.cu": "dtype=float32,N=40001",
    "spills.cu": "dtype=float32,N=33,C=64,K=6",
    "tail_wave.cu": "dtype=float32,N=33,C=8,K=6",
    "divergence.cu": "dtype=float32,N=777,W=8",
    "atomics.cu": "dtype=float32,N=777",
    "lab/barriers.cu": "dtype=float32,N=2777",
    "lab/one_chain.cu": "dtype=float32,N=33,C=3,K=22",
    "lab/arithmetic.cu": "dtype=float32,M=5,N=264",
    "lab/cache_traffic.cu": "dtype=float32,N=1337,S=2",
    "lab/few_warps.cu": "dtype=float32,N=777",
}


def planted():
    """Every planted kernel, with what must be named."""
    found = {}
    for file in sorted(PLANTED.rglob("*")):
        if file.suffix in (".cu", ".py"):
            first = file.read_text(encoding="utf-8").splitlines()[0]
            found[file.relative_to(PLANTED).as_posix()] = first.partition("planted: ")[2]
    return found


def test_each_says_which_rule_must_name_it():
    assert len([name for name in planted() if "/" not in name]) == 8
    assert len([name for name in planted() if name.startswith("lab/")]) == 6
    assert set(planted().values()) <= {rule.name for rule in RULES}


def check(name, folder, text=None):
    subject = take(str(PLANTED / name))
    problem, workload = problem_of(subject), Workload.parse(SMALL[name])
    kernel = build(folder, subject.file, subject.function, text=text)

    def starts(grid, block, *arguments, shared_bytes=0):
        kernel(grid, block, *arguments, **({"shared_bytes": shared_bytes} if shared_bytes else {}))

    Check({"it": competitor_of(subject, problem, workload, starts)}, workload, 0, "cpu").before()


@pytest.mark.parametrize("name", SMALL)
def test_a_planted_kernel_is_right(name, tmp_path):
    check(name, tmp_path)


def test_a_wrong_one_is_refused(tmp_path):
    text = (PLANTED / "atomics.cu").read_text(encoding="utf-8").replace("i < N", "i < N - 1")

    with pytest.raises(WrongResult, match="wrong: 1 of 1"):
        check("atomics.cu", tmp_path, text)


def test_each_kernel_in_cuda_is_checked_here():
    assert set(SMALL) == {name for name in planted() if name.endswith(".cu")}
