"""Fused multiply-adds on the CPU: right, wrong where a fault is planted, and nothing but FFMA in the loop."""

import re
from math import nan

import numpy as np
import pytest
import torch
from cuda_on_cpu import build

from course_kernels.cuda.compile import compile_cubin
from course_kernels.cuda.disassemble import sass
from course_kernels.fused_multiply_add import k01_chains
from course_kernels.fused_multiply_add.problem import PROBLEM
from course_kernels.problem import Workload, worst_error

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


def test_roundings_stay_well_inside_the_tolerance_and_a_missing_step_does_not():
    for K in (256, 4096, 8192):
        w = Workload.of("float32", N=400, C=2, K=K)
        x, a, b = (t.numpy() for t in PROBLEM.make_inputs(w, torch.Generator().manual_seed(1), "cpu"))
        truth = PROBLEM.reference(*map(torch.from_numpy, (x, a, b)), chains=2, steps=K)
        y = x.copy()
        for k in range(K):
            before = y
            # Exact in float64 before the one rounding: the product has 48 bits.
            y = (a.astype(np.float64) * y + b).astype(np.float32)
            assert k < K - 1 or worst_error(torch.from_numpy(y), truth) <= PROBLEM.max_error(w) / 2

        assert not worst_error(torch.from_numpy(before), truth) <= PROBLEM.max_error(w)


def test_the_truth_is_the_loop():
    w = Workload.of("float32", N=5, C=3, K=50)
    x, a, b = PROBLEM.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
    y = x.double()
    for _ in range(50):
        y = a.double() * y + b.double()

    torch.testing.assert_close(PROBLEM.reference(x, a, b, chains=3, steps=50), y)


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
        k01_chains.fused_multiply_add(x.double(), a, a, chains=2, steps=1)
    with pytest.raises(ValueError, match=r"a: expected \(N,\) with N=8, got \(4,\)"):
        k01_chains.fused_multiply_add(x, a[:4].clone(), a, chains=2, steps=1)
    with pytest.raises(ValueError, match="chains: expected 1, 2, 4 or 8, and as many rows of x, got 4 for 2"):
        k01_chains.fused_multiply_add(x, a, a, chains=4, steps=1)
    with pytest.raises(ValueError, match="steps: expected 1 to"):
        k01_chains.fused_multiply_add(x, a, a, chains=2, steps=0)
