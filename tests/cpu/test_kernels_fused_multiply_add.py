"""Fused multiply-adds on the CPU: right, wrong where a fault is planted, and nothing but FFMA in the loop."""

import re
from math import nan

import pytest
import torch
from cuda_on_cpu import build
from machine_code import sass

from course_kernels.cuda.compile import compile_cubin
from course_kernels.fused_multiply_add import k01_chains
from course_kernels.fused_multiply_add.problem import PROBLEM
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept

TINY = [w for w in PROBLEM.check_on if w.N * w.C * w.K < 12_000_000]


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
            patch.setattr(k01_chains, "load_kernel", load_kernel)
            patch.setattr(k01_chains, "launch", lambda kernel, grid, block, *args: kernel(grid, block, *args))
            patch.setattr(torch, "empty_like", lambda x: torch.full_like(x, nan))
            inputs = PROBLEM.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
            options = PROBLEM.options(w)
            out = k01_chains.fused_multiply_add(*inputs, **options)
            return worst_error(out, PROBLEM.reference(*inputs, **options))

    return run


@pytest.mark.parametrize("w", TINY, ids=lambda w: w.label)
def test_kernel_is_right(run, w):
    assert run(w) <= PROBLEM.max_error(w)


FAULTS = {
    "the rest of the steps is left out": ("for (; k < K; k++)", "for (; k < K - 1; k++)"),
    "one turn too few": ("k + STEPS <= K", "k + STEPS < K - STEPS"),
    "chains share a start": ("held[c] = x[c * N + n]", "held[c] = x[n]"),
    "every thread takes the first factor": ("a_n = a[n]", "a_n = a[0]"),
}


@pytest.mark.parametrize(("right", "wrong"), FAULTS.values(), ids=FAULTS)
def test_planted_fault_is_seen(run, right, wrong):
    text = k01_chains.SOURCE.read_text()
    assert text.count(right) == 1
    if "STEPS" in wrong:  # the loop behind it would mend it
        text = text.replace("for (; k < K; k++)", "for (; false;)")
    w = Workload.of("float32", N=129, C=4, K=1000)

    assert not run(w, text.replace(right, wrong)) <= PROBLEM.max_error(w)


def chained(x, a, steps):
    """x after so many steps, each rounded once as fmaf does, and after one and two fewer."""
    y = [x, x, x]
    for _ in range(steps):
        # Exact in float64 before the one rounding: the product has 48 bits.
        y = [(a.double() * y[0] + 1).float(), *y[:2]]
    return y


@pytest.mark.parametrize("K", [2, 37, 256, 1000, 4096, 8191, 8192])
def test_roundings_stay_well_inside_the_tolerance_and_a_missing_step_does_not(K):
    w = Workload.of("float32", N=4096, C=2, K=K)
    x, a = PROBLEM.make_inputs(w, torch.Generator().manual_seed(1), "cpu")
    y, one_short, two_short = chained(x, a, K)
    truth = PROBLEM.reference(x, a, chains=2, steps=K)

    assert worst_error(y, truth) <= PROBLEM.max_error(w) / 2
    assert not worst_error(one_short, truth) <= PROBLEM.max_error(w) * 100
    assert not worst_error(two_short, truth) <= PROBLEM.max_error(w) * 2


def test_no_factor_is_one():
    """At K = 1 too the goal is a number: 1 / (1 - a)."""
    w = Workload.of("float32", N=100_000, C=1, K=1)
    _, a = PROBLEM.make_inputs(w, torch.Generator().manual_seed(0), "cpu")

    assert 0 <= float(a.min()) <= float(a.max()) <= 0.5


def test_the_truth_is_the_loop():
    w = Workload.of("float32", N=5, C=3, K=50)
    x, a = PROBLEM.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
    y = x.double()
    for _ in range(50):
        y = a.double() * y + 1

    torch.testing.assert_close(PROBLEM.reference(x, a, chains=3, steps=50), y)


@pytest.mark.parametrize("C", k01_chains.CHAINS)
def test_the_loop_is_ffma_and_hardly_anything_else(C):
    pytest.importorskip("cuda.core")
    code = sass(compile_cubin(k01_chains.SOURCE, "sm_90a"))
    body = code.partition(f".text.chains_{C}:")[2].partition("//----")[0]
    loops = loops_of(body)
    names = [re.sub(r"\.\S+", "", name) for name in max(loops, key=len)]

    assert names.count("FFMA") >= 256
    assert len(names) - names.count("FFMA") <= 0.02 * len(names)
    assert not re.search(r"\b(LDL|STL)\b", body)


@pytest.mark.parametrize("C", k01_chains.CHAINS)
def test_no_step_asks_one_bank_of_registers_for_two_operands(C):
    """Registers lie in an even and an odd bank. The assembler kept the factor and the chains apart."""
    pytest.importorskip("cuda.core")
    code = (
        sass(compile_cubin(k01_chains.SOURCE, "sm_90a"))
        .partition(f".text.chains_{C}:")[2]
        .partition("//----")[0]
    )
    read = re.findall(r"FFMA R\d+, R(\d+)(?:\.reuse)?, R(\d+)(?:\.reuse)?, 1 ;", code)

    assert len(read) == len(re.findall("FFMA", code)) >= 256
    # Those at either end of the loop, and the rest behind it, may do as they like.
    assert sum((int(p) + int(q)) % 2 for p, q in read) >= 0.98 * len(read)


@pytest.mark.parametrize("C", k01_chains.CHAINS)
def test_a_multiprocessor_holds_all_the_threads_it_can(C):
    """2048 threads share 65536 registers: 32 for each."""
    pytest.importorskip("cuda.core")
    code = (
        sass(compile_cubin(k01_chains.SOURCE, "sm_90a"))
        .partition(f".text.chains_{C}:")[2]
        .partition("//----")[0]
    )

    assert max(int(r) for r in re.findall(r"\bR(\d+)\b", code)) < 32


def loops_of(body):
    """The instructions of every loop: from a label to the jump back to it."""
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    found = []
    for at, line in enumerate(lines):
        target = re.search(r"BRA `\((\.L_x_\d+)\)", line)
        labels = [i for i in range(at) if target and lines[i] == f"{target[1]}:"]
        for start in labels:
            found.append(
                [
                    m[1]
                    for i in lines[start : at + 1]
                    if (m := re.match(r"/\*\w+\*/\s+(?:@!?U?P\d )?\s*(\S+)", i))
                ]
            )
    return found


def test_refusals():
    x, a = torch.zeros(2, 8), torch.zeros(8)
    with pytest.raises(TypeError, match="x: expected float32, got float64"):
        k01_chains.fused_multiply_add(x.double(), a, chains=2, steps=1)
    with pytest.raises(ValueError, match=r"a: expected \(N,\) with N=8, got \(4,\)"):
        k01_chains.fused_multiply_add(x, a[:4].clone(), chains=2, steps=1)
    with pytest.raises(ValueError, match="chains: expected 1, 2, 4 or 8, and as many rows of x, got 4 for 2"):
        k01_chains.fused_multiply_add(x, a, chains=4, steps=1)
    with pytest.raises(ValueError, match="steps: expected 1 to"):
        k01_chains.fused_multiply_add(x, a, chains=2, steps=0)
