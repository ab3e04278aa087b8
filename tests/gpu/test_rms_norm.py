"""RMSNorm on the card: long and many rows, in place, in a graph, begun early; the library and whoever is installed."""

from importlib.util import find_spec

import pytest
import torch

from course_kernels.measure.check import checked_error
from course_kernels.problem import Workload, worst_error
from course_kernels.rms_norm import k01_two_passes, k02_one_read, k03_ahead, library
from course_kernels.rms_norm.problem import PROBLEM

GROUPS = ("rms_norm",)
KERNELS = [k01_two_passes, k02_one_read, k03_ahead]
PEERS = {"liger": "liger_kernel", "flashinfer": "flashinfer", "vllm": "vllm"}


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator("cuda").manual_seed(seed), "cuda")


def error(out, inputs):
    return worst_error(out, PROBLEM.reference(*inputs), rows_apart=True)


@pytest.mark.parametrize("function", [library.eager, library.compiled])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_the_library_is_right(function, dtype):
    w = Workload.of(dtype, M=100, N=4096)

    assert checked_error(function, w, torch.Generator("cuda").manual_seed(0)) <= PROBLEM.max_error(w)


def test_whoever_is_installed_is_right():
    """Nobody may be: a page that races them says who was there."""
    for name, package in PEERS.items():
        if find_spec(package):
            for plain in (True, False) if name == "liger" else (True,):
                w = Workload.of("bfloat16", M=100, N=4096, plain=plain)
                checked_error(getattr(library, name), w, torch.Generator("cuda").manual_seed(0))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("M", "N"), [(16384, 4096), (4001, 8192), (32768, 1024), (999, 16384), (1, 4096)])
def test_large_matrices(kernel, M, N):
    w = Workload.of("bfloat16", M=M, N=N)
    inputs = inputs_of(w)

    assert error(kernel.rms_norm(*inputs), inputs) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("warps", [1, 2, 4, 8, 16])
def test_any_number_of_warps_is_right(warps):
    w = Workload.of("bfloat16", M=300, N=4096)
    inputs = inputs_of(w)

    for kernel in (k02_one_read, k03_ahead):
        assert error(kernel.rms_norm(*inputs, warps=warps), inputs) <= PROBLEM.max_error(w)


def test_rows_past_two_to_the_31():
    """The last rows lie where 32 bits do not reach."""
    w = Workload.of("bfloat16", M=2**31 // 16384 + 3, N=16384, plain=True)
    x = torch.zeros(w.M, w.N, dtype=torch.bfloat16, device="cuda")
    g = torch.ones(w.N, dtype=torch.bfloat16, device="cuda")
    x[-2:] = 3.0
    for kernel in KERNELS:
        y = kernel.rms_norm(x, g)
        assert (y[-2:] == 1).all()
        assert not y[:-2].any()
        del y


@pytest.mark.parametrize("pdl", [False, True])
@pytest.mark.parametrize("M", [1, 32, 5000])
def test_a_graph_of_many_norms_in_place(M, pdl):
    """Each reads what the one before wrote: who begins early and does not wait reads what was there before."""
    w = Workload.of("bfloat16", M=M, N=4096)
    x, g, r = inputs_of(w)
    expected_x, expected_r = x.clone(), r.clone()
    for _ in range(20):
        expected_x, expected_r = k02_one_read.rms_norm(expected_x, g, expected_r)
    k02_one_read.rms_norm_in_place(x.clone(), g, r.clone(), pdl=pdl)  # compiles
    before = x.clone(), r.clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(20):
            k02_one_read.rms_norm_in_place(x, g, r, pdl=pdl)
    for _ in range(3):
        x.copy_(before[0]), r.copy_(before[1])
        graph.replay()

        assert torch.equal(x, expected_x)
        assert torch.equal(r, expected_r)
