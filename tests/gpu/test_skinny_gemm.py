"""A few rows times a large matrix on the card: the layers of a model, any shares, a graph, the library."""

import pytest
import torch

from course_kernels.measure.check import checked_error
from course_kernels.problem import Workload, worst_error
from course_kernels.skinny_gemm import k01_one_program, k02_shares, k03_dot_products, library
from course_kernels.skinny_gemm.problem import PROBLEM

GROUPS = ("skinny_gemm",)
KERNELS = (k01_one_program, k02_shares, k03_dot_products)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator("cuda").manual_seed(seed), "cuda")


def error(out, inputs):
    return worst_error(out, PROBLEM.reference(*inputs))


@pytest.mark.parametrize("function", [library.cublas, library.cublaslt])
@pytest.mark.parametrize("M", [1, 16, 128])
def test_the_library_is_right(function, M):
    w = Workload.of("bfloat16", M=M, N=1032, K=4096)

    assert checked_error(function, w, torch.Generator("cuda").manual_seed(0)) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("w", [w for w in PROBLEM.time_on if w.N < 100_000], ids=lambda w: w.label)
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_layers_of_a_model(kernel, w):
    inputs = inputs_of(w)

    # One rounding of y, and what float32 loses on the way.
    assert error(kernel.skinny_gemm(*inputs), inputs) <= 2.0**-8 + 2.0**-12


@pytest.mark.parametrize("programs", [1, 7, 131, 132, 264, 1000])
@pytest.mark.parametrize(
    ("M", "dtype"), [(1, "bfloat16"), (20, "float16"), (64, "bfloat16"), (128, "float16")]
)
def test_any_number_of_programs_is_right(programs, M, dtype):
    w = Workload.of(dtype, M=M, N=3000, K=2056)
    inputs = inputs_of(w)

    assert error(k02_shares.skinny_gemm(*inputs, programs=programs), inputs) <= PROBLEM.max_error(w)


def test_the_same_call_gives_the_same_bits_and_leaves_the_tickets_at_zero():
    inputs = inputs_of(Workload.of("bfloat16", M=4, N=6144, K=4096))
    tickets = torch.zeros(96, dtype=torch.int32, device="cuda")
    first = k02_shares.skinny_gemm(*inputs)
    for _ in range(200):
        assert torch.equal(k02_shares.skinny_gemm(*inputs, tickets=tickets), first)
    assert not tickets.any()


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_graph_finds_new_values(kernel):
    w = Workload.of("bfloat16", M=3, N=4104, K=4096)
    inputs = inputs_of(w)
    tickets = torch.zeros(65, dtype=torch.int32, device="cuda")
    options = {"tickets": tickets} if kernel is k02_shares else {}
    kernel.skinny_gemm(*inputs, **options)  # compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = kernel.skinny_gemm(*inputs, **options)
    for seed in range(1, 4):
        for tensor, values in zip(inputs, inputs_of(w, seed), strict=True):
            tensor.copy_(values)
        out.fill_(torch.nan)
        graph.replay()

        assert error(out, inputs) <= PROBLEM.max_error(w)
