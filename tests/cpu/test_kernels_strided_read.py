"""Strided read on the CPU: right, and wrong where a fault is planted."""

from math import nan

import pytest
import torch
from cuda_on_cpu import build

from course_kernels.problem import Workload, worst_error
from course_kernels.strided_read import k01_strided
from course_kernels.strided_read.problem import PROBLEM

pytestmark = pytest.mark.kept


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    built = {}

    def run(w, text=None):
        def load_kernel(source, name, defines=None):
            key = (name, text)
            if key not in built:
                built[key] = build(tmp_path_factory.mktemp(name), source, name, text=text)
            return built[key]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(k01_strided, "load_kernel", load_kernel)
            patch.setattr(
                k01_strided, "launch", lambda kernel, grid, block, *args: kernel(grid, block, *args)
            )
            patch.setattr(torch, "empty_like", lambda x: torch.full_like(x, nan))
            (x,) = PROBLEM.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
            out = k01_strided.strided_read(x, stride=w.S)
            return worst_error(out, PROBLEM.reference(x, stride=w.S))

    return run


@pytest.mark.parametrize("w", [w for w in PROBLEM.check_on if w.N < 10_000], ids=lambda w: w.label)
def test_kernel_is_right(run, w):
    assert run(w) == 0.0


FAULTS = {
    "no stride": ("x[i * S + blockIdx.y]", "x[i + blockIdx.y * lap]"),
    "one lap again and again": ("x[i * S + blockIdx.y]", "x[i * S]"),
    "the end of a lap is left out": ("if (i >= lap) return;", "if (i >= lap - 1) return;"),
}


@pytest.mark.parametrize(("right", "wrong"), FAULTS.values(), ids=FAULTS)
def test_planted_fault_is_seen(run, right, wrong):
    text = k01_strided.SOURCE.read_text()
    assert text.count(right) == 1
    w = Workload.of("float32", N=3 * 1001, S=3)

    assert not run(w, text.replace(right, wrong)) <= 0


def test_the_truth_is_the_walk():
    x = torch.arange(12.0)

    assert PROBLEM.reference(x, stride=4).tolist() == [x[i % 3 * 4 + i // 3].item() for i in range(12)]


def test_refusals():
    with pytest.raises(TypeError, match="x: expected float32, got float64"):
        k01_strided.strided_read(torch.zeros(8, dtype=torch.float64), stride=2)
    for stride in (0, 3, 1 << 20):
        with pytest.raises(ValueError, match=f"stride: expected a divisor of N=8 up to 65535, got {stride}"):
            k01_strided.strided_read(torch.zeros(8), stride=stride)
