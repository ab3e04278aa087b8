"""A few rows times a matrix of 8-bit floats on the card: rows rounded there, any shares, a graph, the library."""

import pytest
import torch

from course_kernels.measure.check import checked_error
from course_kernels.problem import Workload, worst_error
from course_kernels.skinny_gemm_fp8 import k01_one_program, k02_shares, library
from course_kernels.skinny_gemm_fp8.problem import PROBLEM, rounded_rows
from course_kernels.skinny_gemm_fp8.round_rows import round_rows

GROUPS = ("skinny_gemm_fp8",)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator("cuda").manual_seed(seed), "cuda")


def error(out, inputs):
    return worst_error(out, PROBLEM.reference(*inputs))


@pytest.mark.parametrize("M", [1, 16, 128])
def test_the_library_is_right(M):
    w = Workload.of("bfloat16", M=M, N=1040, K=4096)

    assert library.supports(w)
    assert checked_error(library.scaled_mm, w, torch.Generator("cuda").manual_seed(0)) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("w", [w for w in PROBLEM.time_on if w.N < 100_000], ids=lambda w: w.label)
@pytest.mark.parametrize("kernel", [k01_one_program, k02_shares])
def test_the_layers_of_a_model(kernel, w):
    inputs = inputs_of(w)

    assert error(kernel.skinny_gemm_fp8(*inputs), inputs) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("programs", [1, 7, 131, 132, 264, 1000])
@pytest.mark.parametrize("M", [1, 20, 64, 128])
def test_any_number_of_programs_is_right(programs, M):
    w = Workload.of("bfloat16", M=M, N=3000, K=2064)
    inputs = inputs_of(w)

    assert error(k02_shares.skinny_gemm_fp8(*inputs, programs=programs), inputs) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize(("M", "K"), [(1, 1), (3, 300), (128, 4096), (16, 14336)])
def test_rows_are_rounded_as_the_contract_says(dtype, M, K):
    x = torch.randn(M, K, generator=torch.Generator("cuda").manual_seed(M + K), device="cuda").to(dtype)
    x[0] = 0
    q, scale = round_rows(x)
    expected, expected_scale = rounded_rows(x)

    torch.testing.assert_close(scale, expected_scale, rtol=1e-6, atol=0)
    # A quotient whose last bit differs may lie on the other side of the middle between two numbers: not often.
    off = q.float() != expected.float()
    assert ((q.float() - expected.float()).abs() <= expected.float().abs() / 8 + 2.0**-9).all()
    assert off.float().mean() < 1e-3


def test_the_same_call_gives_the_same_bits_in_a_graph_too():
    w = Workload.of("bfloat16", M=4, N=6144, K=4096)
    inputs = inputs_of(w)
    tickets = torch.zeros(96, dtype=torch.int32, device="cuda")
    first = k02_shares.skinny_gemm_fp8(*inputs, tickets=tickets)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = k02_shares.skinny_gemm_fp8(*inputs, tickets=tickets)
    for _ in range(100):
        graph.replay()
    assert torch.equal(out, first)
    assert not tickets.any()
