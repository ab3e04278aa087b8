"""SiLU in the interpreter: vectors of every length, gates wide open and shut; planted faults; refusals; the peers."""

import re

import pytest
import torch
from planted import planted, seen

from course_judge.worker.interpreter import watched_memory
from course_kernels.measure.check import checked_error
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Workload, worst_error
from course_kernels.silu import k01_fused, library
from course_kernels.silu.problem import PROBLEM

pytestmark = pytest.mark.kept

# Not the longest: the interpreter takes its time. bf16 is wrong there by design.
CHECKED = [w for w in PROBLEM.check_on if w.dtype != "bfloat16" and w.N < 30_000]
SMALL = Workload.of("float32", N=3001)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator().manual_seed(seed), "cpu")


@pytest.mark.parametrize("w", CHECKED, ids=lambda w: w.label)
def test_every_size_is_right_and_nothing_past_an_end_is_touched(w):
    (x,) = inputs_of(w)
    with watched_memory(shuffle=1) as memory:
        out = k01_fused.silu(x)

    assert memory.findings == []
    assert out.dtype is w.torch_dtype
    assert worst_error(out, PROBLEM.reference(x)) <= PROBLEM.max_error(w) / 2


def test_a_gate_that_is_wide_open_or_shut_overflows_nowhere():
    x = torch.tensor([-1e4, -100.0, -20.0, -0.0, 0.0, 20.0, 100.0, 1e30, -1e30])
    y = k01_fused.silu(x)

    assert y.isfinite().all()
    torch.testing.assert_close(y.double(), PROBLEM.reference(x), rtol=1e-6, atol=1e-30)


FAULTS = {
    "exp without its sign": ("tl.exp(-x)", "tl.exp(x)"),
    "a gate that never shuts": ("x / (1.0 + tl.exp(-x))", "tl.maximum(x, 0.0)"),
    "GELU's gate": ("1.0 + tl.exp(-x)", "1.0 + tl.exp(-1.702 * x)"),
    "the product with exp, not the quotient": ("x / (1.0 + tl.exp(-x))", "x * tl.exp(x) / (1.0 + tl.exp(x))"),
    "the last number is left": ("there = n < N", "there = n < N - 1"),
    "the sigmoid rounded first": ("x / (1.0 + tl.exp(-x))", "x * (1.0 / (1.0 + tl.exp(-x))).to(tl.float16)"),
}


@pytest.mark.parametrize(("right", "wrong"), FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_is_seen(tmp_path, right, wrong):
    assert seen(PROBLEM, planted(tmp_path, k01_fused, right, wrong).silu, SMALL)


REFUSED = {
    "x: expected bfloat16 or float16 or float32, got float64": (TypeError, torch.zeros(4).double()),
    "x: expected (N,) with no empty dimension, got (2, 4)": (ValueError, torch.zeros(2, 4)),
    "x: expected (N,) with no empty dimension, got (0,)": (ValueError, torch.zeros(0)),
    "x: expected contiguous (N,), got strides (2,)": (ValueError, torch.zeros(8)[::2]),
    f"x: expected N <= {(2**31 - 1) * 2048}, got N={2**42}": (ValueError, torch.empty(2**42, device="meta")),
}


@pytest.mark.parametrize("says", REFUSED)
def test_what_the_launcher_refuses(says):
    refusal, x = REFUSED[says]

    with pytest.raises(refusal, match=f"^{re.escape(says)}$"):
        k01_fused.silu(x)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("function", [library.two_operators, library.one_operator])
def test_torch_s_operators_are_right(dtype, function):
    w = Workload.of(dtype, N=3001)

    assert (
        checked_error(Competitor("eager", PROBLEM, function), w, device="cpu") <= PROBLEM.max_error(w) / 1.1
    )


def test_the_compiler_is_given_the_two_operators(monkeypatch):
    given = []
    monkeypatch.setattr(torch, "compile", lambda function, **how: given.append(function) or function)
    library._compiled.cache_clear()
    (x,) = inputs_of(SMALL)

    assert torch.equal(library.compiled(x), library.two_operators(x))
    assert given == [library.two_operators]
    library._compiled.cache_clear()


def test_bytes_are_two_passes_and_the_truth_is_torch_s_in_float64():
    w = Workload.of("bfloat16", N=1000)
    (x,) = inputs_of(SMALL)

    assert PROBLEM.reads_bytes(w) == PROBLEM.writes_bytes(w) == 2000
    torch.testing.assert_close(PROBLEM.reference(x), torch.nn.functional.silu(x.double()))
