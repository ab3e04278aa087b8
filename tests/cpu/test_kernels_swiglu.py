"""SwiGLU in the interpreter: two matrices or the halves of one, rows of every length; faults; refusals; the library."""

import re

import pytest
import torch
from planted import planted, seen

from course_judge.worker.interpreter import watched_memory
from course_kernels.measure.check import checked_error
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Workload, worst_error
from course_kernels.swiglu import k01_fused, library
from course_kernels.swiglu.problem import PROBLEM

pytestmark = pytest.mark.kept

# Neither the longest nor the most rows: the interpreter takes its time. bf16 is wrong there by design.
CHECKED = [w for w in PROBLEM.check_on if w.dtype != "bfloat16" and w.M * w.F < 30_000]
SMALL = Workload.of("float32", M=3, F=70)
MERGED = Workload.of("float32", M=3, F=70, merged=True)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator().manual_seed(seed), "cpu")


# --- the answer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("w", CHECKED, ids=lambda w: w.label)
def test_every_size_is_right(w):
    inputs = inputs_of(w)
    out = k01_fused.swiglu(*inputs)

    assert out.dtype is w.torch_dtype
    assert out.is_contiguous()
    assert worst_error(out, PROBLEM.reference(*inputs)) <= PROBLEM.max_error(w) / 2


@pytest.mark.parametrize("block", [16, 64, 128])
@pytest.mark.parametrize("w", [SMALL, MERGED], ids=lambda w: w.label)
def test_any_run_of_columns_gives_the_same_bits(w, block):
    inputs = inputs_of(w)

    assert torch.equal(k01_fused.swiglu(*inputs, block=block), k01_fused.swiglu(*inputs))


def test_merged_it_is_the_same_bits():
    gate, up = inputs_of(SMALL)

    assert torch.equal(k01_fused.swiglu(torch.cat((gate, up), dim=1)), k01_fused.swiglu(gate, up))


def test_a_gate_that_is_wide_open_or_shut_overflows_nowhere():
    gate = torch.tensor([[-1e4, -100.0, -20.0, -0.0, 0.0, 20.0, 100.0, 1e30, -1e30]])
    y = k01_fused.swiglu(gate, torch.ones_like(gate))

    assert y.isfinite().all()
    torch.testing.assert_close(
        y.double(), PROBLEM.reference(gate, torch.ones_like(gate)), rtol=1e-6, atol=1e-30
    )


@pytest.mark.parametrize("w", [SMALL, MERGED], ids=lambda w: w.label)
def test_nothing_past_an_end_is_touched(w):
    inputs = inputs_of(w)
    with watched_memory(shuffle=1) as memory:
        out = k01_fused.swiglu(*inputs, block=32)

    assert memory.findings == []
    assert torch.equal(out, k01_fused.swiglu(*inputs))


# --- what half precision would have done, and faults ------------------------------------------------------


def in_half(gate, up):
    """exp, the sum and the quotient in the type of gate: exp(12) is past the end of float16, and what is left is 0."""
    return gate / (1 + torch.exp(-gate)) * up


def test_in_float16_exp_of_12_is_infinite_and_the_gate_shuts():
    gate = torch.full((1, 8), -12.0).half()
    up = torch.full((1, 8), 1000.0).half()

    assert torch.equal(in_half(gate, up), torch.full_like(gate, -0.0))
    torch.testing.assert_close(
        k01_fused.swiglu(gate, up).double(), PROBLEM.reference(gate, up), rtol=1e-3, atol=0
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_inside_is_off_by_twice_as_much(dtype):
    inputs = inputs_of(Workload.of(dtype, M=8, F=4096))
    truth = PROBLEM.reference(*inputs)
    once = worst_error(truth.to(inputs[0].dtype), truth)

    assert worst_error(in_half(*inputs), truth) > 2 * once


FAULTS = {
    "up opens the gate": ("tl.exp(-a)) * b", "tl.exp(-b)) * b", SMALL),
    "exp without its sign": ("tl.exp(-a)", "tl.exp(a)", SMALL),
    "a gate that never shuts": ("a / (1.0 + tl.exp(-a)) * b", "tl.maximum(a, 0.0) * b", SMALL),
    "GELU's gate": ("1.0 + tl.exp(-a)", "1.0 + tl.exp(-1.702 * a)", SMALL),
    "the product with exp, not the quotient": (
        "a / (1.0 + tl.exp(-a)) * b", "a * tl.exp(a) / (1.0 + tl.exp(a)) * b", SMALL,
    ),
    "up of another row": ("tl.load(up_ptr + m * apart", "tl.load(up_ptr + m * F", MERGED),
    "gate and up the other way round": ("gate[:, F:] if up is None", "gate if up is None", MERGED),
    "the last columns are left": ("there = f < F", "there = f < F - 1", SMALL),
    "silu rounded first": ("tl.exp(-a)) * b", "tl.exp(-a)).to(tl.float16).to(tl.float32) * b", SMALL),
}  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "w"), FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_is_seen(tmp_path, right, wrong, w):
    assert seen(PROBLEM, planted(tmp_path, k01_fused, right, wrong).swiglu, w)


def test_the_copy_without_a_fault_passes(tmp_path):
    copy = planted(tmp_path, k01_fused, "# --- on the host", "# --- on the host")
    for w in (SMALL, MERGED):
        checked_error(Competitor("no fault", PROBLEM, copy.swiglu), w, device="cpu")


# --- the launcher -----------------------------------------------------------------------------------------


class Recorder:
    """Takes the place of a kernel, and keeps what it was started with."""

    def __init__(self):
        self.calls = []

    def __getitem__(self, grid):
        return lambda *args, **constants: self.calls.append((grid, constants))


def test_one_token_is_shared_out_among_many_programs(monkeypatch):
    with pytest.raises(ValueError, match=r"^pdl: expected a GPU of .*, got cpu$"):
        k01_fused.swiglu(*inputs_of(SMALL), pdl=True)
    monkeypatch.setattr(k01_fused, "swiglu_kernel", recorder := Recorder())
    monkeypatch.setattr(k01_fused, "check_early", lambda pdl, device: None)
    k01_fused.swiglu(*inputs_of(Workload.of("bfloat16", M=1, F=14336)))
    k01_fused.swiglu(torch.zeros(64, 2 * 14336).bfloat16(), pdl=True)

    (grid, few), (large, many) = recorder.calls
    assert (grid, few["BLOCK"], few["ONCE"], few["launch_pdl"]) == ((28,), 512, "", False)
    assert (large, many["BLOCK"], many["PDL"], many["launch_pdl"]) == ((64 * 7,), 2048, True, True)


@pytest.mark.parametrize(("columns", "once"), [(2**25 // 6, ""), (2**25 // 6 + 1, "evict_first")])
def test_what_fills_the_card_passes_the_caches_by(monkeypatch, columns, once):
    monkeypatch.setattr(k01_fused, "swiglu_kernel", recorder := Recorder())
    k01_fused.swiglu(*torch.zeros(2, 1, columns, dtype=torch.bfloat16))

    assert recorder.calls[0][1]["ONCE"] == once


def zeros(*shape, dtype=torch.float32):
    return torch.zeros(shape, dtype=dtype)


REFUSED = {
    "gate: expected bfloat16 or float16 or float32, got float64": (TypeError, zeros(4, 8).double(), zeros(4, 8)),
    "up: expected float32, got float16": (TypeError, zeros(4, 8), zeros(4, 8).half()),
    "gate: expected (M, F) with no empty dimension, got (4,)": (ValueError, zeros(4), zeros(4, 8)),
    "up: expected (M, F) with F=8, got (4, 9)": (ValueError, zeros(4, 8), zeros(4, 9)),
    "up: expected contiguous (M, F), got strides (16, 1)": (ValueError, zeros(4, 8), zeros(4, 16)[:, :8]),
    "up: expected a tensor on cpu, got meta": (ValueError, zeros(4, 8), zeros(4, 8).to("meta")),
    "gate: expected (M, 2 F) where there is no up, got (4, 7)": (ValueError, zeros(4, 7), None),
    f"gate: expected F <= {2**30}, got F={2**30 + 1}": (
        ValueError, torch.empty(1, 2**31 + 2, device="meta"), None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("says", REFUSED)
def test_what_the_launcher_refuses(says):
    refusal, gate, up = REFUSED[says]

    with pytest.raises(refusal, match=f"^{re.escape(says)}$"):
        k01_fused.swiglu(gate, up)


# --- the library, the problem -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("merged", [False, True])
def test_two_operators_are_right_and_round_twice(dtype, merged):
    w = Workload.of(dtype, M=9, F=300, merged=merged)

    assert (
        checked_error(Competitor("eager", PROBLEM, library.eager), w, device="cpu")
        <= PROBLEM.max_error(w) / 1.1
    )


def test_peers_that_are_not_here_say_so_in_one_line():
    gate, up = inputs_of(SMALL)
    for call, says in (
        (lambda: library.liger(gate, up), "liger_kernel: not installed here: pip install liger-kernel"),
        (lambda: library.flashinfer(gate), "flashinfer: not installed here: pip install flashinfer-python"),
        (lambda: library.vllm(gate), "vllm: not installed here: pip install vllm"),
    ):
        with pytest.raises(RuntimeError, match=f"^{re.escape(says)}$"):
            call()
    for call, says in (
        (lambda: library.liger(gate), "up: expected a tensor, since Liger takes gate and up apart, got None"),
        (
            lambda: library.vllm(gate, up),
            "up: expected None, since vLLM takes gate and up merged, got (3, 70)",
        ),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
            call()


class StandIn:
    """Peers' functions in their own order of arguments, by torch."""

    liger_swiglu = staticmethod(library.eager)
    silu_and_mul = staticmethod(library.eager)


def test_peers_are_asked_in_their_own_order(monkeypatch):
    monkeypatch.setattr(library, "_imported", lambda module, how: StandIn)
    checked_error(Competitor("peer", PROBLEM, library.liger), SMALL, device="cpu")
    checked_error(Competitor("peer", PROBLEM, library.flashinfer), MERGED, device="cpu")


def test_bytes_are_three_passes():
    for merged in (False, True):
        w = Workload.of("bfloat16", M=32, F=14336, merged=merged)
        assert PROBLEM.reads_bytes(w) == 2 * PROBLEM.writes_bytes(w) == 2 * 2 * 32 * 14336


def test_the_truth_is_torch_s_in_float64():
    gate, up = (t.double() for t in inputs_of(SMALL))
    expected = torch.nn.functional.silu(gate) * up

    torch.testing.assert_close(PROBLEM.reference(gate, up), expected)
    torch.testing.assert_close(PROBLEM.reference(torch.cat((gate, up), dim=1)), expected)
