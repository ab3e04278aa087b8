"""SiLU on the card: the timed size by everyone who is timed, past 2**31 numbers, in a graph."""

import pytest
import torch

from course_kernels.measure.check import checked_error
from course_kernels.problem import Workload, worst_error
from course_kernels.silu import k01_fused, library
from course_kernels.silu.problem import PROBLEM

GROUPS = ("silu",)


@pytest.mark.parametrize(
    "competitor", [k01_fused, library.two_operators, library.one_operator, library.compiled]
)
@pytest.mark.parametrize("w", PROBLEM.time_on, ids=lambda w: w.label)
def test_whoever_is_timed_is_right(competitor, w):
    assert checked_error(competitor, w, torch.Generator("cuda").manual_seed(0)) <= PROBLEM.max_error(w)


def test_numbers_past_two_to_the_31():
    """The last numbers lie where 32 bits do not reach."""
    x = torch.zeros(2**31 + 5, dtype=torch.bfloat16, device="cuda")
    x[-3:] = 20.0
    y = k01_fused.silu(x)

    assert (y[-3:] == 20).all()
    assert not y[:-3].any()


def test_a_graph_serves_new_values():
    w = Workload.of("bfloat16", N=100_000)
    draw = torch.Generator("cuda").manual_seed(0)
    (x,) = PROBLEM.make_inputs(w, draw, "cuda")
    k01_fused.silu(x)  # compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = k01_fused.silu(x)
    for _ in range(3):
        x.copy_(PROBLEM.make_inputs(w, draw, "cuda")[0])
        y.fill_(torch.nan)
        graph.replay()

        assert worst_error(y, PROBLEM.reference(x)) <= PROBLEM.max_error(w)
