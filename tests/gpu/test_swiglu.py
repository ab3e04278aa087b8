"""SwiGLU on the card: large and merged, in a graph, begun early; the library and whoever is installed."""

from importlib.util import find_spec

import pytest
import torch

from course_kernels.measure.check import checked_error
from course_kernels.problem import Workload, worst_error
from course_kernels.swiglu import k01_fused, library
from course_kernels.swiglu.problem import PROBLEM

GROUPS = ("swiglu",)
PEERS = {"liger": ("liger_kernel", False), "flashinfer": ("flashinfer", True), "vllm": ("vllm", True)}


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator("cuda").manual_seed(seed), "cuda")


@pytest.mark.parametrize("function", [library.eager, library.compiled])
@pytest.mark.parametrize("merged", [False, True])
def test_the_library_is_right(function, merged):
    w = Workload.of("bfloat16", M=100, F=14336, merged=merged)

    assert checked_error(function, w, torch.Generator("cuda").manual_seed(0)) <= PROBLEM.max_error(w)


def test_whoever_is_installed_is_right():
    """Nobody may be: a page that races them says who was there."""
    for name, (package, merged) in PEERS.items():
        if find_spec(package):
            w = Workload.of("bfloat16", M=100, F=14336, merged=merged)
            checked_error(getattr(library, name), w, torch.Generator("cuda").manual_seed(0))


@pytest.mark.parametrize("block", [128, 512, 2048, 4096])
@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("M", [1, 32, 4001])
def test_large_matrices_in_runs_of_any_length(M, merged, block):
    w = Workload.of("bfloat16", M=M, F=14336, merged=merged)
    inputs = inputs_of(w)

    assert worst_error(
        k01_fused.swiglu(*inputs, block=block), PROBLEM.reference(*inputs)
    ) <= PROBLEM.max_error(w)


def test_rows_past_two_to_the_31():
    """The last rows lie where 32 bits do not reach."""
    gate = torch.zeros(2**31 // 28672 + 3, 28672, dtype=torch.bfloat16, device="cuda")
    gate[-2:] = 20.0
    y = k01_fused.swiglu(gate)

    assert (y[-2:] == 400).all()
    assert not y[:-2].any()


@pytest.mark.parametrize("pdl", [False, True])
def test_a_graph_serves_new_values(pdl):
    w = Workload.of("bfloat16", M=32, F=14336, merged=True)
    (gate,) = inputs_of(w)
    k01_fused.swiglu(gate, pdl=pdl)  # compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gate.mul_(0.5)  # the kernel before it
        y = k01_fused.swiglu(gate, pdl=pdl)
    for seed in range(1, 4):
        gate.copy_(inputs_of(w, seed)[0])
        y.fill_(torch.nan)
        graph.replay()

        assert worst_error(y, PROBLEM.reference(gate)) <= PROBLEM.max_error(w)
