"""FP4 matrix times vector on the card: the announced sizes, every code, any cut, a graph."""

from importlib import import_module
from pathlib import Path

import pytest
import torch

from course_kernels.gemv_fp4 import bare_read, by_rows
from course_kernels.gemv_fp4.by_shares import Cut
from course_kernels.gemv_fp4.problem import HACKATHON, PROBLEM
from course_kernels.problem import Workload, worst_error

GROUPS = ("gemv_fp4",)

KERNELS = {
    path.stem: import_module(f"course_kernels.gemv_fp4.{path.stem}")
    for path in sorted(Path(by_rows.__file__).parent.glob("k*.py"))
}
BY_SHARES = ("k11_resident", "k12_ring")
ONE = 0x38  # E4M3: 1.0


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator("cuda").manual_seed(seed), "cuda")


def error(out, inputs):
    return worst_error(out, PROBLEM.reference(*inputs))


@pytest.mark.parametrize("w", HACKATHON, ids=lambda w: w.label)
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_hackathon_s_sizes(kernel, w):
    inputs = inputs_of(w)

    # One rounding of c, and what sums of float32 lose on the way.
    assert error(KERNELS[kernel].gemv_fp4(*inputs), inputs) <= 2.0**-11 + 2.0**-14


@pytest.mark.parametrize("kernel", KERNELS)
def test_sums_are_exact_where_float32_holds_them(kernel):
    """Scales of 1, so that the sums of blocks are exact in float32 as well: rounded once, to the last bit."""
    a, scales_a, b, scales_b = inputs_of(Workload.of("float16", L=3, M=5000, K=256))
    scales_a.view(torch.uint8).fill_(ONE)
    scales_b.view(torch.uint8).fill_(ONE)
    truth = PROBLEM.reference(a, scales_a, b, scales_b)

    assert torch.equal(KERNELS[kernel].gemv_fp4(a, scales_a, b, scales_b), truth.half())


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_scale_is_decoded(kernel):
    """All codes of E4M3, with signs and NaN, times 1 and 2: float16 holds each."""
    a, scales_a, b, scales_b = inputs_of(Workload.of("float16", L=1, M=256, K=256))
    a.fill_(0), b.fill_(0)
    a[..., 0], a[..., 8] = 0x02, 0x04
    b[..., 0], b[..., 8] = 0x02, 0x02
    codes = torch.arange(256, dtype=torch.uint8, device="cuda")
    two = torch.stack([codes, codes & 0x80], dim=1)  # of the two blocks that are not zero
    two[::2] = two[::2].flip(1)
    scales_a.view(torch.uint8).fill_(0)
    scales_a.view(torch.uint8)[0, :, :2] = two
    scales_b.view(torch.uint8).fill_(ONE)
    truth = PROBLEM.reference(a, scales_a, b, scales_b).half()

    assert int(truth.isnan().sum()) == 2
    found = KERNELS[kernel].gemv_fp4(a, scales_a, b, scales_b)
    assert torch.equal(found.nan_to_num(9999), truth.nan_to_num(9999))


CUTS = [Cut(1, 2, 8), Cut(7, 3, 5), Cut(33, 16, 1), Cut(200, 1, 16), Cut(11, 7, 2), Cut(1000, 4, 4)]


@pytest.mark.parametrize("cut", CUTS, ids=str)
@pytest.mark.parametrize("kernel", BY_SHARES)
def test_any_cut_is_right_and_the_same_every_time(kernel, cut):
    inputs = inputs_of(Workload.of("float16", L=3, M=255, K=7424))
    gemv_fp4 = KERNELS[kernel].gemv_fp4
    first = gemv_fp4(*inputs, cut=cut)

    assert error(first, inputs) <= 2.0**-11 + 2.0**-14
    for _ in range(50):
        assert torch.equal(gemv_fp4(*inputs, cut=cut), first)


@pytest.mark.parametrize("kernel", BY_SHARES)
def test_a_graph_finds_new_values(kernel):
    w = HACKATHON[2]
    inputs = inputs_of(w)
    gemv_fp4 = KERNELS[kernel].gemv_fp4
    gemv_fp4(*inputs)  # compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = gemv_fp4(*inputs)
    for seed in range(1, 4):
        for x, new in zip(inputs, inputs_of(w, seed), strict=True):
            x.copy_(new)
        out.fill_(torch.nan)
        graph.replay()

        assert torch.equal(out, gemv_fp4(*inputs))
        assert error(out, inputs) <= 2.0**-11 + 2.0**-14


@pytest.mark.parametrize("way", bare_read.WAYS, ids=str)
@pytest.mark.parametrize("w", HACKATHON, ids=lambda w: w.label)
def test_the_bare_read_adds_up_every_word(w, way):
    inputs = inputs_of(w)
    sums = bare_read.bare_read(*inputs, way=way)

    assert int(sums.sum(dtype=torch.int64)) % 2**32 == bare_read.words_of(*inputs)
