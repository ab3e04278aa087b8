"""A few rows times NVFP4 weights on the card: every code and scale, the layers of a model, any cut, a graph."""

import pytest
import torch

from course_kernels.measure.check import checked_error
from course_kernels.problem import Workload, worst_error
from course_kernels.skinny_gemm_fp4 import k01_one_program, k02_fragments, k03_cluster, library
from course_kernels.skinny_gemm_fp4.k02_fragments import Cut
from course_kernels.skinny_gemm_fp4.layout import packed, values_of
from course_kernels.skinny_gemm_fp4.problem import PROBLEM

GROUPS = ("skinny_gemm_fp4",)
ROUNDED = 2.0**-8 + 2.0**-12  # y once, and what float32 loses on the way
KERNELS = [k01_one_program, k02_fragments, k03_cluster]


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator("cuda").manual_seed(seed), "cuda")


def error(out, inputs):
    return worst_error(out, PROBLEM.reference(*inputs))


def test_the_library_is_right():
    w = Workload.of("bfloat16", M=16, N=1040, K=4096)

    assert checked_error(
        library.unpacked_first, w, torch.Generator("cuda").manual_seed(0)
    ) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_code_times_every_scale_comes_out_to_the_last_bit(kernel):
    """Rows of x with a single 1: 0.5, which is a subnormal bfloat16 on its way, and the subnormal scales among them."""
    codes = torch.arange(16, dtype=torch.uint8, device="cuda").repeat(32, 8)
    scales = torch.arange(256, dtype=torch.uint8, device="cuda").view(32, 8)
    scales[(scales & 0x7F) == 0x7F] = 1  # NaN would be in the whole row
    words, of_lanes = packed(codes, scales)
    second = torch.ones(1, device="cuda")
    rows = torch.eye(128, dtype=torch.bfloat16, device="cuda")
    found = torch.cat(
        [kernel.skinny_gemm_fp4(x.contiguous(), words, of_lanes, second) for x in rows.split(16)]
    )

    assert torch.equal(found.double(), values_of(words, of_lanes).t())


@pytest.mark.parametrize("w", [w for w in PROBLEM.time_on if w.N < 100_000], ids=lambda w: w.label)
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_layers_of_a_model(kernel, w):
    inputs = inputs_of(w)

    assert error(kernel.skinny_gemm_fp4(*inputs), inputs) <= ROUNDED


# Together the warps along K hold 4096 columns or more: 256 each, with up to 16 rows of x.
CUTS = [
    Cut(132, 1, 16, 4),
    Cut(33, 4, 4, 6),
    Cut(1, 1, 16, 1),
    Cut(40, 2, 8, 6),
    Cut(16, 16, 1, 16),
    Cut(7, 3, 6, 2),
]


@pytest.mark.parametrize(("M", "cut"), [(M, cut) for M in (1, 7, 9, 16) for cut in CUTS], ids=str)
def test_any_cut_is_right(M, cut):
    w = Workload.of("bfloat16", M=M, N=2080, K=4096)
    inputs = inputs_of(w)
    tickets = torch.zeros(130, dtype=torch.int32, device="cuda")
    first = k02_fragments.skinny_gemm_fp4(*inputs, cut=cut, tickets=tickets)

    assert error(first, inputs) <= ROUNDED
    for _ in range(50):
        assert torch.equal(k02_fragments.skinny_gemm_fp4(*inputs, cut=cut, tickets=tickets), first)
    assert not tickets.any()


# Two, four and eight blocks of a cluster; one warp of a team, two, four and eight; a part of K that some have not; one
# meeting and many.
CLUSTERS = [
    k03_cluster.Cut(16, 8, 4, 4, 8, 2, 3),
    k03_cluster.Cut(15, 8, 4, 4, 8, 3, 1),
    k03_cluster.Cut(30, 4, 8, 4, 4, 2, 2),
    k03_cluster.Cut(66, 2, 16, 2, 1, 3, 4),
    k03_cluster.Cut(1, 8, 5, 4, 4, 2, 7),
    k03_cluster.Cut(16, 8, 4, 2, 4, 4, 2),
]


@pytest.mark.parametrize(("M", "cut"), [(M, cut) for M in (1, 7, 9, 16) for cut in CLUSTERS], ids=str)
def test_any_cut_of_clusters_is_right(M, cut):
    inputs = inputs_of(Workload.of("bfloat16", M=M, N=2080, K=4096))
    first = k03_cluster.skinny_gemm_fp4(*inputs, cut=cut)

    assert error(first, inputs) <= ROUNDED
    for _ in range(50):
        assert torch.equal(k03_cluster.skinny_gemm_fp4(*inputs, cut=cut), first)


@pytest.mark.parametrize("blocks", [2, 4, 8])
def test_the_card_says_how_many_clusters_it_holds(blocks):
    multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count
    places = k03_cluster.clusters_at_once(torch.cuda.current_device(), blocks)

    assert multiprocessors / 2 <= places * blocks <= multiprocessors


@pytest.mark.parametrize("kernel", [k02_fragments, k03_cluster])
@pytest.mark.parametrize("early", [False, True])
def test_a_graph_of_layers_finds_new_values(kernel, early):
    """Each layer reads what the one before it wrote; with `early` it begins before that one has ended."""
    w = Workload.of("bfloat16", M=3, N=4096, K=4096)
    layers = [inputs_of(w, seed)[1:] for seed in range(3)]
    x = inputs_of(w)[0]

    def chain(x):
        for weights in layers:
            x = kernel.skinny_gemm_fp4(x, *weights, early=early)
        return x

    chain(x)  # compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = chain(x)
    for seed in range(4, 10):
        x.copy_(inputs_of(w, seed)[0])
        out.fill_(torch.nan)
        graph.replay()
        expected = x
        for weights in layers:
            expected = kernel.skinny_gemm_fp4(expected, *weights)
            torch.cuda.synchronize()

        assert torch.equal(out, expected)
