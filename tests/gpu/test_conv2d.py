"""Convolution on the card: the published size and layers of a residual network, in both kinds of work; the peers."""

import pytest
import torch

from course_kernels.conv2d import k01_implicit_gemm, library
from course_kernels.conv2d.problem import PROBLEM, is_rough
from course_kernels.measure.check import WrongResult, checked_error
from course_kernels.problem import Workload, worst_error

GROUPS = ("conv2d",)
TORCH = (library.torch_eager, library.cudnn, library.cudnn_channels_last, library.torch_compile)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator("cuda").manual_seed(seed), "cuda")


def error(out, w, inputs):
    return worst_error(out, PROBLEM.reference(*inputs, **PROBLEM.options(w)))


@pytest.mark.parametrize("competitor", [k01_implicit_gemm, *TORCH])
@pytest.mark.parametrize("w", PROBLEM.time_on, ids=lambda w: w.label)
def test_the_sizes_that_are_timed_are_right(competitor, w):
    assert checked_error(competitor, w, torch.Generator("cuda").manual_seed(0)) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("tf32", [False, True])
@pytest.mark.parametrize(
    "size",
    [
        {"B": 1, "C": 3, "H": 225, "W": 223, "K": 64, "R": 7, "S": 7, "STRIDE": 2, "PAD": 3},
        {"B": 2, "C": 130, "H": 29, "W": 31, "K": 513, "R": 1, "S": 1, "STRIDE": 2},
        {"B": 1, "C": 1, "H": 3000, "W": 2999, "K": 1, "R": 5, "S": 3, "PAD": 1},
        {"B": 9, "C": 17, "H": 12, "W": 12, "K": 33, "R": 3, "S": 3, "STRIDE": 3, "PAD": 2},
    ],
)
def test_other_layers(size, tf32):
    w = Workload.of("float32", **size, **({"tf32": True} if tf32 else {}))
    inputs = inputs_of(w)

    assert error(k01_implicit_gemm.conv2d(*inputs, **PROBLEM.options(w)), w, inputs) <= PROBLEM.max_error(w)


def test_an_answer_of_more_than_2_to_the_31_numbers():
    """The last image's answer begins behind 2**31 numbers, and is what it is alone."""
    w = Workload.of("float32", B=70, C=1, H=512, W=512, K=128, R=1, S=1, tf32=True)
    x, f, bias = inputs_of(w)
    out = k01_implicit_gemm.conv2d(x, f, bias, tf32=True)[-1:]

    assert error(out, w, (x[-1:].clone(), f, bias)) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("function", [k01_implicit_gemm.conv2d, *TORCH[:3]])
def test_the_two_kinds_of_work_are_two(function):
    """Asked for TF32 each of them rounds, and what comes out would be refused as float32."""
    w = Workload.of("float32", B=8, C=64, H=56, W=56, K=64, R=3, S=3, PAD=1)
    inputs = inputs_of(w)
    exact = error(function(*inputs, padding=1), w, inputs)
    rough = error(function(*inputs, padding=1, tf32=True), w, inputs)

    assert exact <= PROBLEM.max_error(w)
    if function is k01_implicit_gemm.conv2d:
        assert rough > PROBLEM.max_error(w)  # cuDNN may round, and need not


@pytest.mark.parametrize("tf32", [False, True])
def test_what_is_not_finite_comes_out_where_a_filter_covers_it(tf32):
    x, f, bias = inputs_of(Workload.of("float32", B=2, C=5, H=40, W=40, K=70, R=3, S=3, PAD=1))
    x[1, 2, 3, 4] = torch.nan
    out = k01_implicit_gemm.conv2d(x, f, bias, padding=1, tf32=tf32)

    assert torch.equal(out.isnan(), PROBLEM.reference(x, f, bias, padding=1).isnan())


def test_a_graph_serves_other_values():
    w = next(w for w in PROBLEM.check_on if is_rough(w))
    inputs = inputs_of(w)
    options = PROBLEM.options(w)
    k01_implicit_gemm.conv2d(*inputs, **options)  # compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = k01_implicit_gemm.conv2d(*inputs, **options)
    for seed in range(1, 4):
        for tensor, values in zip(inputs, inputs_of(w, seed), strict=True):
            tensor.copy_(values)
        out.fill_(torch.nan)
        graph.replay()

        assert error(out, w, inputs) <= PROBLEM.max_error(w)


def test_the_published_kernel_where_it_is_at_hand():
    """Right within 11 bits, for layers that it was not made for too; its numbers are no float32's."""
    if not library.CRFM.at_hand():
        w = next(w for w in PROBLEM.check_on if is_rough(w))
        with pytest.raises(RuntimeError, match=r"^Conv2D/src\.py: not at hand: clone "):
            library.crfm(*inputs_of(w), **PROBLEM.options(w))
        return
    for w in (*PROBLEM.check_on, *PROBLEM.time_on):
        if is_rough(w):
            checked_error(library.crfm, w, torch.Generator("cuda").manual_seed(0))
            with pytest.raises(WrongResult):
                _as_exact(w)


def _as_exact(w):
    exact = Workload.of(w.dtype, **{name: size for name, size in w.dims.items() if name != "tf32"})
    inputs = inputs_of(exact)
    off = error(library.crfm(*inputs, **PROBLEM.options(w)), exact, inputs)
    if not off <= PROBLEM.max_error(exact):
        raise WrongResult(f"{off} is more than {PROBLEM.max_error(exact)}")
