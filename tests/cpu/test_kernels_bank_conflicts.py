"""Bank conflicts on the CPU: right, wrong where a fault is planted, one read of shared memory for every round."""

import re
from math import gcd, nan

import pytest
import torch
from cuda_on_cpu import build
from machine_code import sass

from course_kernels.bank_conflicts import k01_stride
from course_kernels.bank_conflicts.problem import PROBLEM, ROUNDS, TILE
from course_kernels.cuda.compile import compile_cubin
from course_kernels.problem import Workload, worst_error

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
            patch.setattr(k01_stride, "load_kernel", load_kernel)
            patch.setattr(k01_stride, "launch", lambda kernel, grid, block, *args: kernel(grid, block, *args))
            patch.setattr(torch, "empty_like", lambda x: torch.full_like(x, nan))
            (x,) = PROBLEM.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
            out = k01_stride.bank_conflicts(x, stride=w.S)
            return worst_error(out, PROBLEM.reference(x, stride=w.S))

    return run


@pytest.mark.parametrize("w", PROBLEM.check_on, ids=lambda w: w.label)
def test_kernel_is_right(run, w):
    assert run(w) <= PROBLEM.max_error(w)


FAULTS = {
    "no barrier": ("__syncthreads();", ""),
    "no second half": ("tile[TILE + thread] = mine", "tile[TILE + thread] = 0"),
    "a round too few": ("r < ROUNDS; r++", "r < ROUNDS - 1; r++"),
    "another stride": ("(S * (", "((S - 1) * ("),
    "all warps in one place": ("+ thread / WARP * WARP", ""),
    "no mask": ("n < N ? x[n] : 0.0f", "x[n % N]"),
}


@pytest.mark.parametrize(("right", "wrong"), FAULTS.values(), ids=FAULTS)
def test_planted_fault_is_seen(run, right, wrong):
    text = k01_stride.SOURCE.read_text()
    assert text.count(right) == 1
    w = Workload.of("float32", N=1500, S=32)

    assert not run(w, text.replace(right, wrong)) <= PROBLEM.max_error(w)


def test_the_truth_is_the_sum_of_the_windows():
    x = torch.rand(1100, generator=torch.Generator().manual_seed(0))
    truth = PROBLEM.reference(x, stride=3)
    for n in (0, 33, 1023, 1024, 1099):
        tile = torch.zeros(TILE, dtype=torch.float64)
        start = n // TILE * TILE
        tile[: len(x[start : start + TILE])] = x[start : start + TILE]
        at = (3 * (n % 32) + n % TILE // 32 * 32 + torch.arange(ROUNDS)) % TILE

        assert truth[n].item() == pytest.approx(tile[at].sum().item(), rel=1e-12)


@pytest.mark.parametrize("S", range(1, 34))
def test_lanes_want_different_words_and_share_banks_as_said(S):
    """What the page says of conflicts, by counting: the words of one round, and the banks they lie in."""
    for warp in (0, 5, 31):
        words = [(S * lane + 32 * warp) % TILE for lane in range(32)]
        banks = [word % 32 for word in words]

        assert len(set(words)) == 32
        assert max(banks.count(b) for b in banks) == gcd(S, 32)


def test_the_loop_reads_one_word_a_round():
    pytest.importorskip("cuda.core")
    code = sass(compile_cubin(k01_stride.SOURCE, "sm_90a"))

    assert len(re.findall(r"\bLDS R\d+", code)) == 64
    assert not re.search(r"\bLDS\.(64|128)", code)


def test_refusals():
    with pytest.raises(TypeError, match="x: expected float32, got float64"):
        k01_stride.bank_conflicts(torch.zeros(8, dtype=torch.float64), stride=2)
    with pytest.raises(ValueError, match="stride: expected 1 to 33 words, got 34"):
        k01_stride.bank_conflicts(torch.zeros(8), stride=34)
