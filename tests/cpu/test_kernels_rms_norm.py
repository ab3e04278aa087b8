"""RMSNorm in the interpreter: rows of every length, in place, ahead; what half precision would do; faults; refusals."""

import re

import pytest
import torch
from planted import planted, seen

from course_judge.worker.interpreter import watched_memory
from course_kernels.dependent_launch import check_early
from course_kernels.measure.check import WrongResult, checked_error
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Workload, worst_error
from course_kernels.rms_norm import arguments, k01_two_passes, k02_one_read, k03_ahead, library
from course_kernels.rms_norm.problem import EPSILON, PROBLEM

pytestmark = pytest.mark.kept

KERNELS = [k01_two_passes, k02_one_read, k03_ahead]
# Neither the longest nor the most rows: the interpreter takes its time. bf16 is wrong there by design.
MOST = {"bfloat16": 0, "float16": 2000, "float32": 40_000}
CHECKED = [w for w in PROBLEM.check_on if MOST[w.dtype] > w.M * w.N]


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator().manual_seed(seed), "cpu")


def error(out, inputs):
    return worst_error(out, PROBLEM.reference(*inputs), rows_apart=True)


# --- the answer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("w", CHECKED, ids=lambda w: w.label)
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_size_is_right(kernel, w):
    inputs = inputs_of(w)
    out = kernel.rms_norm(*inputs)

    assert error(out, inputs) <= PROBLEM.max_error(w) / 2
    assert {o.dtype for o in (out if isinstance(out, tuple) else (out,))} == {w.torch_dtype}


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_longest_row_is_right(kernel):
    w = Workload.of("float16", M=2, N=16384)
    inputs = inputs_of(w)

    assert error(kernel.rms_norm(*inputs), inputs) <= PROBLEM.max_error(w) / 2


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("plain", [False, True])
def test_the_residual_is_rounded_once_and_a_row_of_zeros_stays_one(kernel, plain):
    x, g, *rest = inputs_of(Workload.of("float16", M=3, N=50, plain=plain))
    for t in (x, *rest):
        t[1] = 0
    out = kernel.rms_norm(x, g, *rest)
    y = out if plain else out[0]

    assert torch.equal(y[1], torch.zeros(50, dtype=torch.float16))
    if not plain:
        assert torch.equal(out[1], (x.float() + rest[0].float()).half())


@pytest.mark.parametrize("kernel", KERNELS)
def test_epsilon_is_the_caller_s(kernel):
    x, g = inputs_of(Workload.of("float32", M=3, N=100, plain=True))
    wide = x.double()
    expected = g * wide / (wide.square().mean(-1, keepdim=True) + 3.0).sqrt()

    torch.testing.assert_close(kernel.rms_norm(x, g, eps=3.0).double(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("programs", [1, 2, 5, 7, 9])
def test_any_number_of_programs_walks_over_all_rows(programs):
    inputs = inputs_of(Workload.of("float32", M=7, N=70))
    expected = k02_one_read.rms_norm(*inputs)

    for got, wanted in zip(k03_ahead.rms_norm(*inputs, programs=programs), expected, strict=True):
        assert torch.equal(got, wanted)


def test_in_place_it_is_the_same_bits():
    x, g, r = inputs_of(Workload.of("float16", M=5, N=300))
    y, s = k02_one_read.rms_norm(x, g, r)

    assert k02_one_read.rms_norm_in_place(x, g, r) is None
    assert torch.equal(x, y)
    assert torch.equal(r, s)
    with pytest.raises(ValueError, match=r"^r: expected another tensor than x, got the same memory$"):
        k02_one_read.rms_norm_in_place(x, g, x)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("plain", [False, True])
def test_nothing_past_an_end_is_touched_and_no_order_of_rows_matters(kernel, plain):
    inputs = inputs_of(Workload.of("float32", M=6, N=77, plain=plain))
    expected = kernel.rms_norm(*inputs)
    options = {"programs": 3} if kernel is k03_ahead else {}
    with watched_memory(shuffle=1) as memory:
        out = kernel.rms_norm(*inputs, **options)

    assert memory.findings == []
    assert error(out, inputs) == error(expected, inputs)


# --- what half precision would have done ------------------------------------------------------------------


def in_half(x, g, r=None):
    """As the kernels, but squares and their mean in the type of x."""
    s = x if r is None else x + r
    y = s * torch.rsqrt(s.square().mean(-1, keepdim=True) + EPSILON) * g
    return y if r is None else (y, s)


def test_a_square_in_float16_is_past_the_end_and_the_row_is_gone():
    """300 squared is 90000, and float16 ends at 65504: the mean is infinite, and all of the row becomes nought."""
    x, g = torch.full((1, 64), 300.0).half(), torch.ones(64).half()

    assert torch.equal(in_half(x, g), torch.zeros_like(x))
    for kernel in KERNELS:
        assert torch.equal(kernel.rms_norm(x, g), torch.ones_like(x))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_squares_and_sums_in_half_precision_are_refused(dtype):
    with pytest.raises(WrongResult):
        checked_error(Competitor("half", PROBLEM, in_half), Workload.of(dtype, M=8, N=4096), device="cpu")


def test_a_running_sum_in_bfloat16_stops_growing():
    """Past 256 a one is less than half a unit: the mean of 4096 ones comes to 1/16."""
    total = torch.zeros((), dtype=torch.bfloat16)
    for _ in range(4096):
        total += 1

    assert total == 256


# --- faults -----------------------------------------------------------------------------------------------

SMALL = Workload.of("float32", M=5, N=40)
PLAIN = Workload.of("float32", M=5, N=40, plain=True)
LONG = Workload.of("float32", M=2, N=1100)
FAULTS = {
    "k01: epsilon is forgotten": (k01_two_passes, "/ N + epsilon", "/ N", SMALL),
    "k01: the mean is over the block": (k01_two_passes, "tl.sum(squares) / N", "tl.sum(squares) / BLOCK", SMALL),
    "k01: only the last step counts": (k01_two_passes, "squares += s * s", "squares = s * s", LONG),
    "k01: squares in half precision": (
        k01_two_passes, "squares += s * s", "squares += (s.to(tl.float16) * s.to(tl.float16)).to(tl.float32)", SMALL,
    ),
    "k01: the second pass forgets the residual": (
        k01_two_passes, "        if ADD:\n            # Added", "        if False:\n            # Added", SMALL,
    ),
    "k02: g of another column": (k02_one_read, "tl.load(g_ptr + n,", "tl.load(g_ptr + n // 2,", SMALL),
    "k02: what lies past the end is added": (
        k02_one_read, "tl.load(x_ptr + row + n, mask=there, other=0.0,",
        "tl.load(x_ptr + row + n, mask=there, other=1.0,", SMALL,
    ),
    "k02: the residual is left as it was": (
        k02_one_read, "tl.store(s_ptr + row + n, s.to(", "tl.store(s_ptr + row + n, x.to(", SMALL,
    ),
    "k02: root and no reciprocal": (k02_one_read, "tl.rsqrt(", "tl.sqrt(", SMALL),
    "k02: weighed by nothing": (k02_one_read, " * g.to(tl.float32)", "", SMALL),
    "k03: the next residual is this one": (k03_ahead, "tl.load(r_ptr + following", "tl.load(r_ptr + at", SMALL),
    "k03: the next row is not masked off, but this one": (
        k03_ahead, "ahead = there & (row < M - step)", "ahead = there & (row < M - 2 * step)", SMALL,
    ),
    "k03: a row too near": (k03_ahead, "following = at + step.to(tl.int64) * N", "following = at + N", PLAIN),
}  # fmt: skip


@pytest.mark.parametrize(("module", "right", "wrong", "w"), FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_is_seen(tmp_path, module, right, wrong, w):
    faulty = planted(tmp_path, module, right, wrong)
    options = {"programs": 2} if module is k03_ahead else {}

    assert seen(PROBLEM, lambda *inputs: faulty.rms_norm(*inputs, **options), w)


def test_the_copy_without_a_fault_passes(tmp_path):
    for module in KERNELS:
        copy = planted(tmp_path, module, "# --- on the host", "# --- on the host")
        checked_error(Competitor("no fault", PROBLEM, copy.rms_norm), SMALL, device="cpu")


# --- the launchers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("M", "N", "warps"),
    [
        (16384, 4096, 4),  # 32 numbers a thread
        (32, 4096, 16),  # one vector a thread
        (1, 4096, 16),
        (16384, 16384, 16),
        (16384, 1024, 1),
        (16384, 5120, 8),
        (1, 1, 1),
    ],
)
def test_how_many_warps_share_a_row(M, N, warps):
    assert k02_one_read.warps_for(M, N) == warps


def test_what_fills_the_card_passes_the_caches_by():
    assert k02_one_read.once_for(16384, 4096, 2) == "evict_first"
    assert k02_one_read.once_for(32, 4096, 2) == ""
    assert [k02_one_read.once_for(M, 2048, 2) for M in (2048, 2049)] == ["", "evict_first"]  # 32 MB


def test_as_many_programs_as_fit_and_no_more_than_rows():
    cpu = torch.device("cpu")
    assert [k03_ahead.warps_for(N) for N in (1, 1024, 4096, 16384)] == [1, 2, 8, 16]
    assert k03_ahead.programs_for(cpu, 1000, 8) == 3
    assert k03_ahead.programs_for(cpu, 2, 8) == 2


class Recorder:
    """Takes the place of a kernel, and keeps what it was started with."""

    def __init__(self):
        self.calls = []

    def __getitem__(self, grid):
        return lambda *args, **constants: self.calls.append((grid, constants))


def test_a_call_is_one_kernel_that_may_begin_early(monkeypatch):
    monkeypatch.setattr(k02_one_read, "one_read_kernel", recorder := Recorder())
    monkeypatch.setattr(k02_one_read, "check_early", lambda pdl, device: None)
    inputs = inputs_of(SMALL)
    k02_one_read.rms_norm(*inputs)
    k02_one_read.rms_norm(*inputs, pdl=True)

    first, second = (constants for _, constants in recorder.calls)
    assert (first["PDL"], first["launch_pdl"]) == (False, False)
    assert second == {**first, "PDL": True, "launch_pdl": True}


@pytest.mark.parametrize(
    ("device", "capability", "got"),
    [("cpu", None, "cpu"), ("cuda:0", (8, 9), "one of 8.9"), ("cuda:0", (9, 0), "")],
)
def test_a_card_before_hopper_begins_nothing_early(monkeypatch, device, capability, got):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    device = torch.device(device)
    check_early(False, device)
    if not got:
        check_early(True, device)
        return
    says = f"pdl: expected a GPU of compute capability 9.0 or later, got {got}"
    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
        check_early(True, device)


def test_where_no_kernel_can_begin_early_that_is_refused():
    x, g, r = inputs_of(SMALL)
    for function in (k02_one_read.rms_norm, k02_one_read.rms_norm_in_place):
        with pytest.raises(ValueError, match=r"^pdl: expected a GPU of .*, got cpu$"):
            function(x, g, r, pdl=True)


def zeros(*shape, dtype=torch.float32):
    return torch.zeros(shape, dtype=dtype)


REFUSED = {
    "x: expected bfloat16 or float16 or float32, got float64": (TypeError, {"x": zeros(4, 8).double()}),
    "g: expected float32, got float16": (TypeError, {"g": zeros(8).half()}),
    "r: expected float32, got bfloat16": (TypeError, {"r": zeros(4, 8).bfloat16()}),
    "x: expected (M, N) with no empty dimension, got (4,)": (ValueError, {"x": zeros(4)}),
    "g: expected (N,) with N=8, got (9,)": (ValueError, {"g": zeros(9)}),
    "r: expected (M, N) with M=4, got (5, 8)": (ValueError, {"r": zeros(5, 8)}),
    "r: expected contiguous (M, N), got strides (1, 4)": (ValueError, {"r": zeros(8, 4).T}),
    "r: expected a tensor on cpu, got meta": (ValueError, {"r": zeros(4, 8).to("meta")}),
}


@pytest.mark.parametrize("says", REFUSED)
@pytest.mark.parametrize("kernel", KERNELS)
def test_what_a_launcher_refuses(kernel, says):
    refusal, other = REFUSED[says]
    given = {"x": zeros(4, 8), "g": zeros(8), "r": zeros(4, 8)}

    with pytest.raises(refusal, match=f"^{re.escape(says)}$"):
        kernel.rms_norm(**given | other)


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ((1, 16385), "x: expected N <= 16384, got N=16385"),
        ((2**30 + 1, 1), f"x: expected M <= {2**30}, got M={2**30 + 1}"),
    ],
)
def test_what_a_row_and_32_bits_do_not_hold(shape, says):
    """No memory behind these: a tensor on the device `meta` has a shape only."""
    x, g = torch.empty(shape, device="meta"), torch.empty(shape[1], device="meta")

    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
        arguments.sizes_of(x, g, None)


# --- the library, the problem -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("plain", [False, True])
def test_two_operators_are_right(dtype, plain):
    w = Workload.of(dtype, M=9, N=1000, plain=plain)

    assert checked_error(library.eager, w, device="cpu") <= PROBLEM.max_error(w) / 1.1


def test_peers_that_are_not_here_say_so_in_one_line():
    x, g, r = inputs_of(SMALL)
    for call, says in (
        (lambda: library.liger(x, g, r), "liger_kernel: not installed here: pip install liger-kernel"),
        (lambda: library.flashinfer(x, g), "flashinfer: not installed here: pip install flashinfer-python"),
        (lambda: library.vllm(x, g), "vllm: not installed here: pip install vllm"),
    ):
        with pytest.raises(RuntimeError, match=f"^{re.escape(says)}$"):
            call()
    for peer, name in ((library.flashinfer, "FlashInfer"), (library.vllm, "vLLM")):
        says = f"r: expected None, since {name} adds a residual in place only, got (5, 40)"
        with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
            peer(x, g, r)


class StandIn:
    """Peers' functions in their own order of arguments, by torch."""

    @staticmethod
    def liger_rms_norm(X, W, eps):
        return torch.nn.functional.rms_norm(X, W.shape, W, eps)

    rmsnorm = liger_rms_norm

    @classmethod
    def liger_fused_add_rms_norm(cls, X, R, W, eps):
        return cls.liger_rms_norm(X + R, W, eps), X + R

    @classmethod
    def rms_norm(cls, out, input, weight, epsilon):
        out.copy_(cls.liger_rms_norm(input, weight, epsilon))


def test_peers_are_asked_in_their_own_order(monkeypatch):
    monkeypatch.setattr(library, "_imported", lambda module, how: StandIn)
    for peer in (library.liger, library.flashinfer, library.vllm):
        checked_error(Competitor("peer", PROBLEM, peer), PLAIN, device="cpu")
    checked_error(Competitor("peer", PROBLEM, library.liger), SMALL, device="cpu")


def test_bytes_count_both_answers():
    w = Workload.of("bfloat16", M=16384, N=4096)
    plain = Workload.of("bfloat16", M=16384, N=4096, plain=True)

    assert PROBLEM.reads_bytes(w) == 2 * (2 * 16384 * 4096 + 4096)
    assert PROBLEM.writes_bytes(w) == 2 * PROBLEM.writes_bytes(plain) == 2 * 2 * 16384 * 4096
    assert PROBLEM.reads_bytes(plain) == 2 * (16384 * 4096 + 4096)


def test_the_truth_is_torch_s_in_float64():
    x, g, r = (t.double() for t in inputs_of(SMALL))
    y, s = PROBLEM.reference(x, g, r)

    assert torch.equal(s, x + r)
    torch.testing.assert_close(y, torch.nn.functional.rms_norm(x + r, (40,), g, EPSILON))
    assert torch.equal(PROBLEM.reference(x + r, g), y)


def test_a_residual_that_is_left_out_is_refused():
    assert seen(PROBLEM, lambda x, g, r: (k02_one_read.rms_norm(x, g), x + r), SMALL)
