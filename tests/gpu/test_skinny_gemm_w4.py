"""A few rows times 4-bit weights on the card: the layers of a model, any cut, a graph, an early start."""

import pytest
import torch

from course_kernels.measure.check import checked_error
from course_kernels.problem import Workload, worst_error
from course_kernels.skinny_gemm_w4 import k01_triton, k02_fragments, library
from course_kernels.skinny_gemm_w4.k02_fragments import Cut
from course_kernels.skinny_gemm_w4.problem import PROBLEM

GROUPS = ("skinny_gemm_w4",)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator("cuda").manual_seed(seed), "cuda")


def error(out, inputs):
    return worst_error(out, PROBLEM.reference(*inputs))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_library_is_right(dtype):
    w = Workload.of(dtype, M=16, N=1040, K=4096)

    assert checked_error(
        library.unpacked_first, w, torch.Generator("cuda").manual_seed(0)
    ) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("w", [w for w in PROBLEM.time_on if w.N < 100_000], ids=lambda w: w.label)
@pytest.mark.parametrize("kernel", [k01_triton, k02_fragments])
def test_the_layers_of_a_model(kernel, w):
    if kernel is k02_fragments and not kernel.supports(w):
        return  # more rows than stay in registers
    inputs = inputs_of(w)

    # One rounding of y, and what float32 loses on the way.
    assert error(kernel.skinny_gemm_w4(*inputs), inputs) <= 2.0**-8 + 2.0**-12


CUTS = [
    Cut(132, 1, 16, 3),
    Cut(33, 4, 4, 6),
    Cut(1, 1, 16, 1),
    Cut(40, 2, 8, 6),
    Cut(16, 16, 1, 16),
    Cut(7, 3, 6, 2),
]


@pytest.mark.parametrize("cut", CUTS, ids=str)
@pytest.mark.parametrize(("M", "dtype"), [(1, "bfloat16"), (7, "float16"), (9, "bfloat16"), (16, "float16")])
def test_any_cut_is_right(cut, M, dtype):
    w = Workload.of(dtype, M=M, N=2080, K=4096)
    inputs = inputs_of(w)
    tickets = torch.zeros(130, dtype=torch.int32, device="cuda")
    first = k02_fragments.skinny_gemm_w4(*inputs, cut=cut, tickets=tickets)

    assert error(first, inputs) <= {"bfloat16": 2.0**-8, "float16": 2.0**-11}[dtype] + 2.0**-12
    for _ in range(50):
        assert torch.equal(k02_fragments.skinny_gemm_w4(*inputs, cut=cut, tickets=tickets), first)
    assert not tickets.any()


@pytest.mark.parametrize("early", [False, True])
def test_a_graph_of_layers_finds_new_values(early):
    """Each layer reads what the one before it wrote; with `early` it begins before that one has ended."""
    w = Workload.of("bfloat16", M=3, N=4096, K=4096)
    layers = [inputs_of(w, seed)[1:] for seed in range(3)]
    x = inputs_of(w)[0]

    def chain(x):
        for words, scales in layers:
            x = k02_fragments.skinny_gemm_w4(x, words, scales, early=early)
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
        for words, scales in layers:
            expected = k02_fragments.skinny_gemm_w4(expected, words, scales)
            torch.cuda.synchronize()

        assert torch.equal(out, expected)
