"""A few rows times a large matrix of 16-bit numbers, or 8-bit floats, interpreted: shares, tickets, refusals."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from course_judge.worker.interpreter import ORDER, watched_memory
from course_kernels import skinny_gemm_fp8
from course_kernels.problem import Workload, worst_error
from course_kernels.skinny_gemm import k01_one_program, k02_shares, k03_dot_products, library
from course_kernels.skinny_gemm import problem as contract
from course_kernels.skinny_gemm_fp8 import k01_one_program as fp8_one
from course_kernels.skinny_gemm_fp8 import k02_shares as fp8_shares
from course_kernels.skinny_gemm_fp8 import library as fp8_library
from course_kernels.skinny_gemm_fp8 import problem as fp8
from course_kernels.skinny_gemm_fp8.round_rows import round_rows

pytestmark = pytest.mark.kept

PROBLEMS = {"skinny_gemm": contract, "skinny_gemm_fp8": fp8}
SHARES = {"skinny_gemm": k02_shares, "skinny_gemm_fp8": fp8_shares}
KERNELS = {
    "k01": ("skinny_gemm", k01_one_program.skinny_gemm),
    "k02": ("skinny_gemm", k02_shares.skinny_gemm),
    "k02, 7 programs": ("skinny_gemm", lambda *inputs: k02_shares.skinny_gemm(*inputs, programs=7)),
    "fp8 k01": ("skinny_gemm_fp8", fp8_one.skinny_gemm_fp8),
    "fp8 k02": ("skinny_gemm_fp8", fp8_shares.skinny_gemm_fp8),
    "fp8 k02, 7 programs": (
        "skinny_gemm_fp8",
        lambda *inputs: fp8_shares.skinny_gemm_fp8(*inputs, programs=7),
    ),
}
SMALL = {
    "skinny_gemm": k01_one_program.Tile(32, 32, 4, 3, 2),
    "skinny_gemm_fp8": fp8_one.Tile(32, 64, 4, 3, 2),
}


def inputs_of(folder, M, N, K, seed=0):
    """float16 where 16 bits are asked for: the interpreter multiplies no bfloat16."""
    w = Workload.of("float16" if folder == "skinny_gemm" else "bfloat16", M=M, N=N, K=K)
    return PROBLEMS[folder].PROBLEM.make_inputs(w, torch.Generator().manual_seed(seed), "cpu")


def error(folder, out, inputs):
    return worst_error(out, PROBLEMS[folder].reference(*inputs))


def allowed(folder):
    """One rounding of y; the interpreter cuts float32 to bfloat16 where a card rounds."""
    return 2.0**-11 if folder == "skinny_gemm" else 2.0**-7


# --- the answer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("M", "N", "K"), [(1, 1, 1), (3, 65, 17), (1, 200, 520), (17, 130, 300), (100, 72, 136)]
)
@pytest.mark.parametrize("kernel", KERNELS)
def test_any_size_is_right(kernel, M, N, K):
    folder, function = KERNELS[kernel]
    inputs = inputs_of(folder, M, N, K)
    out = function(*inputs)

    assert out.dtype is (torch.float16 if folder == "skinny_gemm" else torch.bfloat16)
    assert error(folder, out, inputs) <= allowed(folder)


@pytest.mark.parametrize(
    ("M", "N", "K"), [(1, 1, 1), (1, 9, 2050), (2, 65, 17), (3, 30, 600), (4, 5, 1100), (7, 6, 40)]
)
def test_dot_products_are_right(M, N, K):
    inputs = inputs_of("skinny_gemm", M, N, K)

    assert error("skinny_gemm", k03_dot_products.skinny_gemm(*inputs), inputs) <= 2.0**-11


def test_nothing_is_read_or_written_outside():
    for folder, function in (*KERNELS.values(), ("skinny_gemm", k03_dot_products.skinny_gemm)):
        inputs = inputs_of(folder, 3, 70, 75)
        with watched_memory(dict(zip("xwst", inputs, strict=False))) as memory:
            function(*inputs)

        assert memory.findings == []


# --- shares and tickets -----------------------------------------------------------------------------------


def split(steps, programs):
    """How the kernel shares out steps, in plain Python: begin of each program, and of a last one past the end."""
    each, more = divmod(steps, programs)
    return [program * each + min(program, more) for program in range(programs + 1)]


@pytest.mark.parametrize("programs", [1, 3, 5, 12, 100])
@pytest.mark.parametrize("folder", SHARES)
def test_any_number_of_programs_is_right_and_leaves_the_tickets_at_zero(folder, programs):
    """Shares within a tile, over several tiles, and of one step each."""
    inputs = inputs_of(folder, 2, 130, 250)  # five tiles of 32 rows, the last nearly empty; 8 or 4 steps
    tickets = torch.zeros(5, dtype=torch.int32)
    multiply = getattr(SHARES[folder], folder)
    for _ in range(2):
        out = multiply(*inputs, tile=SMALL[folder], programs=programs, tickets=tickets)

        assert error(folder, out, inputs) <= allowed(folder)
        assert not tickets.any()


def test_the_order_of_programs_changes_no_bit():
    for folder in SHARES:
        inputs = inputs_of(folder, 2, 130, 250)
        options = {"tile": SMALL[folder], "programs": 7}
        expected = getattr(SHARES[folder], folder)(*inputs, **options)
        for seed in range(2):
            with watched_memory(shuffle=seed) as memory:
                out = getattr(SHARES[folder], folder)(*inputs, **options)

            # Who went on to other rows after its ticket has handed over, too; only who ends with it is known here.
            assert {(finding.kind, "elements of parts" in finding.text) for finding in memory.findings} <= {
                (ORDER, True)
            }
            assert torch.equal(out, expected)


@pytest.mark.parametrize("folder", SHARES)
def test_shares_are_even_and_every_step_has_one_owner(folder):
    module = SHARES[folder]
    for steps, programs in ((40, 7), (5, 5), (14336, 264), (65, 64)):
        begins = split(steps, programs)
        lengths = {end - begin for begin, end in pairwise(begins)}
        owners = [sum(begin <= step for begin in begins[1:]) for step in range(steps)]
        each, more = divmod(steps, programs)

        assert max(lengths) - min(lengths) <= 1
        assert begins[-1] == steps
        early = more * (each + 1)
        assert owners == [
            step // (each + 1) if step < early else more + (step - early) // max(each, 1)
            for step in range(steps)
        ]
    text = Path(module.__file__).read_text(encoding="utf-8")
    assert "early = more * (each + 1)" in text  # what the lines above do once more
    assert "more + (step - early) // tl.maximum(each, 1)" in text
    assert "return program * each + tl.minimum(program, more)" in text


FAULTS = {
    "parts of one tile on those of another": ("(tile != begin // STEPS).to(tl.int32)", "0"),
    "the last part is left out": ("range(low, high + 1)", "range(low, high)"),
    "the last to come is the second": ("ticket == high - low", "ticket == 1"),
    "tickets stay": ("tl.store(tickets + tile, 0)", "pass"),
    "a share ends a step late": (
        "last = tl.minimum(end - tile * STEPS, STEPS)",
        "last = tl.minimum(end + 1 - tile * STEPS, STEPS)",
    ),
    "whole is what begins at the beginning": ("last - first == STEPS", "first == 0"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(fault, tmp_path):
    right, wrong = FAULTS[fault]
    text = Path(k02_shares.__file__).read_text(encoding="utf-8")
    assert text.count(right) == 1
    module = planted(tmp_path, text.replace(right, wrong))
    inputs = inputs_of("skinny_gemm", 2, 130, 250)
    tickets = torch.zeros(5, dtype=torch.int32)
    worst = 0.0
    for programs in (7, 12, 7):
        out = module.skinny_gemm(*inputs, tile=SMALL["skinny_gemm"], programs=programs, tickets=tickets)
        worst = max(worst, torch.nan_to_num(torch.tensor(error("skinny_gemm", out, inputs)), nan=9.0).item())

    assert worst > contract.MAX_ERROR["float16"] or tickets.any()


def planted(folder, text):
    """A kernel's module from a changed text; Triton reads the source from a file."""
    path = folder / "k02_planted.py"
    path.write_text(text, encoding="utf-8")
    spec = spec_from_file_location("k02_planted", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("folder", SHARES)
def test_how_many_programs_an_h200_gets(folder, monkeypatch):
    module = SHARES[folder]
    module.programs_for.cache_clear()
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda device: SimpleNamespace(multi_processor_count=132)
    )
    device = torch.device("cuda", 0)

    assert module.programs_for(device, 2, 14336) == 264
    assert module.programs_for(device, 1, 14336) == 132
    assert module.programs_for(device, 2, 30) == 30
    module.programs_for.cache_clear()


class Recorder:
    """Takes the place of a kernel, and keeps what it was started with."""

    def __init__(self):
        self.calls = []

    def __getitem__(self, grid):
        return lambda *args, **constants: self.calls.append((grid, constants))


def test_a_launch_asks_the_device_for_nothing(monkeypatch):
    for module, kernel in ((k01_one_program, "one_program_kernel"), (k02_shares, "shares_kernel")):
        monkeypatch.setattr(module, kernel, Recorder())
    inputs = inputs_of("skinny_gemm", 3, 70, 75)
    for reads in ("item", "tolist", "__int__", "__bool__", "cpu", "numpy"):
        monkeypatch.setattr(
            torch.Tensor, reads, lambda *how: pytest.fail("looked at what lies on the device")
        )

    k01_one_program.skinny_gemm(*inputs)
    k02_shares.skinny_gemm(*inputs)


# --- 8-bit numbers, and what they cost --------------------------------------------------------------------


def test_the_kernel_rounds_rows_as_the_contract_says():
    generator = torch.Generator().manual_seed(0)
    for K in (1, 4500):
        x = torch.randn(4, K, generator=generator).half()
        x[1] = 0
        x[2] *= 1000
        q, scale = round_rows(x)
        expected, expected_scale = fp8.rounded_rows(x)

        torch.testing.assert_close(scale, expected_scale, rtol=1e-6, atol=0)
        assert scale[1] == 1
        assert q.dtype is torch.float8_e4m3fn
        # The interpreter loses the carry of what rounds up to a power of two, and halves it: tests/gpu looks once more.
        off = q.float() != expected.float()
        assert (q.float()[off] * 2 == expected.float()[off]).all()
        assert off.float().mean() < 0.1
        assert (q.float().abs().amax(1)[[0, 2]] == 448).all()


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_a_row_with_nan_or_an_infinity_is_seen_in_its_scale(value):
    x = torch.ones(3, 50)
    x[1, 17] = value
    _, scale = round_rows(x)

    assert not torch.isfinite(scale[1])
    assert torch.isfinite(scale[[0, 2]]).all()


def test_what_eight_bits_cost():
    generator = torch.Generator().manual_seed(0)
    x, weights = torch.randn(16, 1024, generator=generator), torch.randn(512, 1024, generator=generator)
    costs = fp8.quantisation_error(x, weights)

    assert 0.02 < costs["weights"] < 0.03
    assert costs["product"] == pytest.approx(2**0.5 * costs["weights"], rel=0.1)  # x is rounded, too
    assert costs["weights_alone"] == pytest.approx(costs["weights"], rel=0.1)


def test_a_scale_of_another_row_is_refused():
    x, w, scale_x, scale_w = inputs_of("skinny_gemm_fp8", 4, 64, 256)
    truth, limit = (
        fp8.reference(x, w, scale_x, scale_w),
        fp8.PROBLEM.max_error(Workload.of("bfloat16", M=4, N=64, K=256)),
    )

    assert not worst_error(fp8.reference(x, w, scale_x.flip(0), scale_w), truth) <= limit
    assert not worst_error(fp8.reference(x, w, scale_x, scale_w.flip(0)), truth) <= limit
    coarser = x.to(torch.float8_e5m2).float().to(torch.float8_e4m3fn)  # one bit of fraction less
    assert not worst_error(fp8.reference(coarser, w, scale_x, scale_w), truth) <= limit


def test_the_truth_goes_in_strips(monkeypatch):
    for folder, problem in PROBLEMS.items():
        monkeypatch.setattr(problem, "ROWS_AT_ONCE", 50)
        inputs = inputs_of(folder, 2, 103, 8)
        x, w = (t.double() for t in inputs[:2])
        scales = inputs[2].double()[:, None] * inputs[3].double() if len(inputs) == 4 else 1.0

        torch.testing.assert_close(problem.reference(*inputs), x @ w.t() * scales)


def test_the_libraries_say_what_they_take():
    inputs = inputs_of("skinny_gemm", 3, 32, 64)
    assert error("skinny_gemm", library.cublas(*inputs), inputs) <= contract.MAX_ERROR["float16"]
    taken = [
        fp8_library.supports(Workload.of("bfloat16", M=1, N=n, K=k)) for n, k in ((16, 32), (8, 16), (16, 17))
    ]

    assert taken == [True, False, False]


# --- what launchers refuse --------------------------------------------------------------------------------


def zeros(*shape, dtype=torch.float16):
    return torch.zeros(shape).to(dtype)


F8 = torch.float8_e4m3fn
REFUSED = [
    (TypeError, "x: expected bfloat16 or float16, got float32", (zeros(2, 8).float(), zeros(4, 8))),
    (TypeError, "w: expected float16, got bfloat16", (zeros(2, 8), zeros(4, 8).bfloat16())),
    (ValueError, "w: expected (N, K) with K=8, got (4, 9)", (zeros(2, 8), zeros(4, 9))),
    (ValueError, "w: expected contiguous (N, K), got strides (1, 4)", (zeros(2, 8), zeros(8, 4).t())),
    (ValueError, "w: expected a tensor on cpu, got meta", (zeros(2, 8), zeros(4, 8).to("meta"))),
]
REFUSED_FP8 = [
    (TypeError, "x: expected float8_e4m3fn, got float16", {"x": zeros(2, 8)}),
    (TypeError, "w: expected float8_e4m3fn, got float16", {"w": zeros(4, 8)}),
    (TypeError, "scale_x: expected float32, got float16", {"scale_x": zeros(2)}),
    (ValueError, "scale_x: expected (M,) with M=2, got (1,)", {"scale_x": torch.ones(1)}),
    (ValueError, "scale_w: expected (N,) with N=4, got (2,)", {"scale_w": torch.ones(2)}),
    (
        ValueError,
        "x: expected M <= 128, got M=129",
        {"x": zeros(129, 8, dtype=F8), "scale_x": torch.ones(129)},
    ),
]


@pytest.mark.parametrize(("refusal", "says", "given"), REFUSED, ids=[says for _, says, _ in REFUSED])
def test_what_a_launcher_refuses(refusal, says, given):
    for kernel in (k01_one_program, k02_shares, k03_dot_products):
        with pytest.raises(refusal, match=f"^{re.escape(says)}$"):
            kernel.skinny_gemm(*given)


@pytest.mark.parametrize(
    ("kernel", "most"), [(k01_one_program, 128), (k02_shares, 128), (k03_dot_products, 128)]
)
def test_rows_past_the_most(kernel, most):
    says = f"x: expected M <= {most}, got M={most + 1}"
    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
        kernel.skinny_gemm(zeros(most + 1, 8), zeros(4, 8))
    assert kernel.skinny_gemm(zeros(most, 8), zeros(4, 8)).shape == (most, 4)


@pytest.mark.parametrize(("refusal", "says", "other"), REFUSED_FP8, ids=[says for _, says, _ in REFUSED_FP8])
def test_what_a_launcher_of_8_bit_numbers_refuses(refusal, says, other):
    given = {
        "x": zeros(2, 8, dtype=F8),
        "w": zeros(4, 8, dtype=F8),
        "scale_x": torch.ones(2),
        "scale_w": torch.ones(4),
    }
    for kernel in (fp8_one, fp8_shares):
        with pytest.raises(refusal, match=f"^{re.escape(says)}$"):
            kernel.skinny_gemm_fp8(**given | other)


@pytest.mark.parametrize("folder", SHARES)
def test_other_tickets_are_refused(folder):
    inputs = inputs_of(folder, 2, 130, 20)
    for refusal, says, tickets in (
        (TypeError, "tickets: expected int32, got float32", torch.zeros(3)),
        (ValueError, "tickets: expected (T,) with T=3, got (2,)", torch.zeros(2, dtype=torch.int32)),
    ):
        with pytest.raises(refusal, match=f"^{re.escape(says)}$"):
            getattr(SHARES[folder], folder)(*inputs, tickets=tickets)


def test_a_card_without_8_bit_numbers_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 6))
    says = "x: expected a GPU of compute capability 8.9 or above for 8-bit numbers, got 8.6"

    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
        skinny_gemm_fp8.arguments.refuse_older_cards("x", torch.device("cuda", 0))
