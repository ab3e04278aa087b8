"""Convolution in the interpreter: strides, padding, filters of any form; fp32 against TF32; the peers; refusals."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from planted import planted, seen

from course_judge.worker.interpreter import watched_memory
from course_kernels.conv2d import k01_implicit_gemm, library
from course_kernels.conv2d.problem import PROBLEM, PUBLISHED, answer_size, is_rough, strided
from course_kernels.measure.check import WrongResult, checked_error
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept

conv2d = k01_implicit_gemm.conv2d
TORCH = [library.torch_eager, library.cudnn, library.cudnn_channels_last]
SMALL = Workload.of("float32", B=2, C=3, H=8, W=11, K=5, R=2, S=3, STRIDE=2, PAD=1)

# The published layer on a small image.
TINY = Workload.of("float32", B=1, C=3, H=24, W=23, K=9, R=11, S=11, STRIDE=4, PAD=2)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator().manual_seed(seed), "cpu")


def error(out, w, inputs):
    return worst_error(out, PROBLEM.reference(*inputs, **PROBLEM.options(w)))


# --- the answer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("w", [SMALL, TINY, *PROBLEM.check_on], ids=lambda w: w.label)
def test_every_size_is_right_and_nothing_outside_is_read(w):
    inputs = inputs_of(w)
    with watched_memory(shuffle=1) as memory:
        out = conv2d(*inputs, **PROBLEM.options(w))

    assert memory.findings == []
    assert out.shape == (w.B, w.K, *answer_size(w))
    assert error(out, w, inputs) <= PROBLEM.max_error(w) / 2


def test_the_truth_is_torch_s_in_float64():
    for w in (SMALL, *PROBLEM.check_on):
        x, f, bias = inputs_of(w)
        expected = torch.nn.functional.conv2d(x.double(), f.double(), bias.double(), *strided(w))

        torch.testing.assert_close(PROBLEM.reference(x, f, bias, **PROBLEM.options(w)), expected)


def test_by_hand():
    x, f = torch.arange(1.0, 10.0).view(1, 1, 3, 3), torch.tensor([[[[1.0, 0.0], [0.0, -1.0]]]])
    y = conv2d(x, f, torch.tensor([10.0]), padding=1, stride=2)

    # Corners of the padded image: 0 - 1, 0 - 3, 0 - 7, 5 - 9.
    assert y.flatten().tolist() == [9.0, 7.0, 3.0, 6.0]


def test_the_published_size():
    w = PUBLISHED[False]

    assert answer_size(w) == (55, 55)
    assert PROBLEM.flops(w) == 2 * 100 * 96 * 55 * 55 * 363
    assert {is_rough(w): PROBLEM.math(w) for w in PUBLISHED.values()} == {False: "fp32", True: "tf32"}


# --- two kinds of work ------------------------------------------------------------------------------------


def rounded(x, cut):
    """To 11 bits, to the nearest or cut off."""
    return ((x.view(torch.int32) + (0 if cut else 0x1000)) & ~0x1FFF).view(torch.float32)


ROUNDINGS = {
    "TF32": lambda x: rounded(x, cut=False),
    "TF32, cut off": lambda x: rounded(x, cut=True),
    "float16": lambda x: x.half().float(),
    "bfloat16": lambda x: x.bfloat16().float(),
}
LAYERS = [
    {"B": 1, "C": 3, "H": 63, "W": 63, "K": 96, "R": 11, "S": 11, "STRIDE": 4, "PAD": 2},
    {"B": 1, "C": 64, "H": 14, "W": 14, "K": 64, "R": 3, "S": 3, "PAD": 1},
]


@pytest.mark.parametrize("size", LAYERS)
@pytest.mark.parametrize("name", ROUNDINGS)
def test_eleven_bits_are_the_rough_work_and_not_the_exact_one(name, size):
    x, f, bias = inputs_of(exact := Workload.of("float32", **size))
    rough = Workload.of("float32", **size, tf32=True)
    options = PROBLEM.options(exact)
    off = worst_error(
        PROBLEM.reference(ROUNDINGS[name](x), ROUNDINGS[name](f), bias, **options),
        PROBLEM.reference(x, f, bias, **options),
    )

    assert off > 10 * PROBLEM.max_error(exact)
    assert (off <= PROBLEM.max_error(rough) / 2) == (name != "bfloat16")
    assert off <= PROBLEM.max_error(rough) or off > 1.5 * PROBLEM.max_error(rough)


def in_half(x, f, bias, *, stride=1, padding=0, tf32=False):
    return torch.nn.functional.conv2d(x.half().float(), f.half().float(), bias, stride, padding)


def test_a_kernel_in_float16_is_refused_where_float32_is_asked_for():
    competitor = Competitor("half", PROBLEM, in_half)
    rough = Workload.of("float32", **SMALL.dims, tf32=True)

    checked_error(competitor, rough, device="cpu")
    with pytest.raises(WrongResult):
        checked_error(competitor, SMALL, device="cpu")


def test_the_published_tolerance_would_have_taken_bfloat16():
    """One in a hundred of each number, and one in a hundred beside it, with weights as torch draws them."""
    w = Workload.of("float32", **LAYERS[0])
    x, f, bias = inputs_of(w)
    f.uniform_(-1, 1, generator=torch.Generator().manual_seed(1)).div_(363**0.5)
    rough = ROUNDINGS["bfloat16"]
    options = PROBLEM.options(w)
    out = PROBLEM.reference(rough(x), rough(f), bias, **options)

    assert torch.allclose(out, PROBLEM.reference(x, f, bias, **options), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_what_is_not_finite_comes_out_where_a_filter_covers_it(value):
    x, f, bias = inputs_of(SMALL)
    x[1, 2, 3, 4] = value
    options = PROBLEM.options(SMALL)
    out, truth = conv2d(x, f, bias, **options), PROBLEM.reference(x, f, bias, **options)

    assert 0 < truth.isfinite().logical_not().sum() < 20
    assert torch.equal(out.isfinite(), truth.isfinite())


# --- faults -----------------------------------------------------------------------------------------------

FAULTS = {
    "the padding is forgotten": ("p * stride - padding, q", "p * stride, q"),
    "one stride for two": ("q * stride - padding", "q - padding"),
    "rows and columns of a filter change places": ("n % (R * S) // S, n % S", "n % (R * S) % R, n % S // R"),
    "a column more": ("(column < W)", "(column <= W)"),
    "what lies left of a row is the end of the one before": ("(column >= 0) & ", ""),
    "the first image for all": (
        "corner = image.to(tl.int64) * (C * H * W)",
        "corner = 0 * image.to(tl.int64)",
    ),
    "a step is left out": ("tl.range(0, C * R * S, STEP)", "tl.range(0, C * R * S - STEP, STEP)"),
    "the bias is forgotten": ("sums += tl.load(bias_ptr", "tl.load(bias_ptr"),
    "channels of the answer change places": ("* K + k[:, None]", "* K + (K - 1 - k)[:, None]"),
}


@pytest.mark.parametrize(("right", "wrong"), FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_is_seen(tmp_path, right, wrong):
    faulty = planted(tmp_path, k01_implicit_gemm, right, wrong)

    assert seen(PROBLEM, faulty.conv2d, SMALL)


def test_the_check_s_whole_round_passes():
    for w in (SMALL, Workload.of("float32", **SMALL.dims, tf32=True)):
        checked_error(k01_implicit_gemm, w, device="cpu")


def test_the_kernel_is_told_which_work_it_is(monkeypatch):
    started = []

    class Recorder:
        def __getitem__(self, grid):
            return lambda *args, **constants: started.append(
                (grid, constants["PRECISION"], constants["FILTERS"])
            )

    monkeypatch.setattr(k01_implicit_gemm, "implicit_gemm_kernel", Recorder())
    x, f, bias = inputs_of(Workload.of("float32", B=2, C=1, H=30, W=30, K=300, R=1, S=1))
    conv2d(x, f, bias)
    conv2d(x, f[:5], bias[:5], tf32=True)

    assert started == [((15, 3), "ieee", 128), ((15, 1), "tf32", 16)]


# --- refusals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "options", "error", "says"),
    [
        (lambda x, f, b: (x.half(), f, b), {}, TypeError, "x: expected float32, got float16"),
        (lambda x, f, b: (x, f[:, :2].contiguous(), b), {}, ValueError, "f: expected (K, C, R, S) with C=3"),
        (lambda x, f, b: (x, f, b[:3]), {}, ValueError, "bias: expected (K,) with K=5, got (3,)"),
        (lambda x, f, b: (x.to(memory_format=torch.channels_last), f, b), {}, ValueError, "x: expected contiguous"),
        (lambda x, f, b: (x, f, b), {"stride": 0}, ValueError, "stride: expected at least 1, got 0"),
        (lambda x, f, b: (x, f, b), {"padding": -1}, ValueError, "padding: expected at least 0, got -1"),
        (
            lambda x, f, b: (x[:, :, :1].contiguous(), f, b), {}, ValueError,
            "f: expected R <= H + 2 * padding = 1, got R=2",
        ),
        (
            lambda x, f, b: (x, f, b), {"padding": 2**14}, ValueError,
            "x: expected H + 2 * padding <= 32768, got H + 2 * padding=32776",
        ),
    ],
)  # fmt: skip
def test_what_no_kernel_takes_is_refused(change, options, error, says):
    with pytest.raises(error, match=f"^{re.escape(says)}"):
        conv2d(*change(*inputs_of(SMALL)), **options)


# --- the peers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", TORCH)
@pytest.mark.parametrize("tf32", [False, True])
def test_torch_is_asked_for_the_work_that_is_meant(monkeypatch, function, tf32):
    settings = torch.backends.cudnn
    before = settings.allow_tf32, settings.benchmark, settings.enabled
    asked = []
    plain = torch.nn.functional.conv2d

    def noted(*args):
        asked.append((settings.enabled, settings.benchmark, settings.allow_tf32))
        return plain(*args)

    monkeypatch.setattr(torch.nn.functional, "conv2d", noted)
    w = Workload.of("float32", **SMALL.dims, **({"tf32": True} if tf32 else {}))
    inputs = inputs_of(w)
    out = function(*inputs, **PROBLEM.options(w))

    assert asked == [(True, function is not library.torch_eager, tf32)]
    assert (settings.allow_tf32, settings.benchmark, settings.enabled) == before
    assert error(out, w, inputs) <= PROBLEM.max_error(w)
    if function is library.cudnn_channels_last:
        assert out.is_contiguous(memory_format=torch.channels_last)


def test_the_published_kernel_is_launched_as_published(monkeypatch):
    calls = []
    monkeypatch.setattr(library, "CRFM", SimpleNamespace(source=lambda: Path("theirs.cu")))
    monkeypatch.setattr(library, "load_kernel", lambda path, name: name)
    monkeypatch.setattr(
        library, "launch", lambda kernel, grid, block, *args: calls.append((kernel, grid, block, args))
    )
    w = Workload.of("float32", B=2, C=3, H=40, W=36, K=130, R=11, S=9, STRIDE=4, PAD=2, tf32=True)
    x, f, bias = inputs_of(w)
    y = library.crfm(x, f, bias, **PROBLEM.options(w))

    ((kernel, grid, block, args),) = calls
    assert (kernel, grid, block) == ("conv2d_implicit_gemm_wmma_kernel", (2, 2), 256)
    assert args[:4] == (x, f, bias, y)
    assert [int(n) for n in args[4:]] == [
        2,
        3,
        40,
        36,
        130,
        11,
        9,
        4,
        4,
        2,
        2,
        9,
        8,
        130,
        2 * 9 * 8,
        3 * 11 * 9,
    ]
    assert {type(n) for n in args[4:]} == {np.int32}
    with pytest.raises(
        ValueError, match=r"^tf32: expected True, since the published kernel multiplies in float16"
    ):
        library.crfm(x, f, bias, stride=4, padding=2)
    assert [library.supports(PUBLISHED[rough]) for rough in (False, True)] == [False, True]
