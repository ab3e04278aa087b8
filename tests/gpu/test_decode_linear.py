"""A linear layer of a step on the card: the model's shapes, keys into the cache, begun early, the library."""

import pytest
import torch

from course_kernels.decode_linear import k01_stream, k02_even, library
from course_kernels.decode_linear.arguments import ADD, GATE, ROPE, Turned
from course_kernels.decode_linear.problem import PROBLEM, flags_of
from course_kernels.measure.check import checked_error
from course_kernels.problem import Workload, worst_error
from course_kernels.qkv_rope.problem import PROBLEM as QKV

GROUPS = ("decode_linear",)


def inputs_of(w, problem=PROBLEM, seed=0):
    return problem.make_inputs(w, torch.Generator("cuda").manual_seed(seed), "cuda")


@pytest.mark.parametrize("function", [library.eager, library.compiled])
@pytest.mark.parametrize("kind", [{}, {"add": True}, {"norm": True, "gated": True}], ids=str)
def test_the_library_is_right(function, kind):
    w = Workload.of("bfloat16", M=5, N=1024, K=2048, **kind)

    assert checked_error(function, w, torch.Generator("cuda").manual_seed(0)) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("w", PROBLEM.time_on, ids=lambda w: w.label)
def test_the_shapes_of_the_model(w):
    inputs = inputs_of(w)
    due = PROBLEM.reference(*inputs, **flags_of(w))
    tickets = torch.zeros(k01_stream.tickets_for(len(inputs[1])), dtype=torch.int32, device="cuda")
    for how in ({}, {"tickets": tickets}, {"tickets": tickets, "early": True}):
        out = k01_stream.decode_linear(*inputs, **flags_of(w), **how)
        assert worst_error(out, due) <= PROBLEM.max_error(w), how
        assert torch.equal(out, k01_stream.decode_linear(*inputs, **flags_of(w), **how))
    assert not tickets.any()


@pytest.mark.parametrize("w", PROBLEM.time_on, ids=lambda w: w.label)
def test_the_shapes_of_the_model_in_boxes(w):
    inputs = inputs_of(w)
    due = PROBLEM.reference(*inputs, **flags_of(w))
    for early in (False, True):
        out = k02_even.decode_linear(*inputs, **flags_of(w), early=early)
        assert worst_error(out, due) <= PROBLEM.max_error(w), early
        assert torch.equal(out, k02_even.decode_linear(*inputs, **flags_of(w), early=early))


KERNELS = {"k01": k01_stream, "k02": k02_even}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("D", [64, 128])
@pytest.mark.parametrize("B", [1, 8, 13, 32])
def test_queries_keys_and_values_find_their_places(B, D, dtype, kernel):
    w = Workload.of(dtype, B=B, H=8, KV=2, D=D, W=4096, P=1000)
    x, g, weights, positions, cos, sin = inputs_of(w, QKV)
    due = QKV.reference(x, g, weights, positions, cos, sin, kv_heads=2)
    caches = [torch.full((B, 2, 900, D), 7.0, dtype=x.dtype, device="cuda") for _ in range(2)]
    at = positions.long()
    parts, turned = weights.split([8 * D, 2 * D, 2 * D]), Turned(cos[at], sin[at], at, *caches)
    q = kernel.start(x, parts, ROPE, g=g, turned=turned)

    assert worst_error(q, due[0], rows_apart=True) <= QKV.max_error(w)
    for cache, right in zip(caches, due[1:], strict=True):
        for b, place in enumerate(at.tolist()):
            if place < 900:
                assert worst_error(cache[b, :, place], right[b]) <= QKV.max_error(w)
                cache[b, :, place] = 7.0
        assert (cache == 7).all(), "somebody wrote elsewhere"


@pytest.mark.parametrize(("one", "other"), [("k01", "k01"), ("k02", "k02"), ("k01", "k02")])
@pytest.mark.parametrize("M", [1, 32])
def test_layers_that_begin_early_give_what_they_give_one_after_the_other(M, one, other):
    """A chain in a graph, each kernel reading what the one before it wrote: who does not wait is wrong at once."""
    w = Workload.of("bfloat16", M=M, N=4096, K=4096, norm=True)
    x, weights, g = inputs_of(w)
    more = inputs_of(w, seed=1)[1]
    tickets = torch.zeros(k01_stream.tickets_for(4096 * 2), dtype=torch.int32, device="cuda")
    first, second = KERNELS[one], KERNELS[other]

    def chain(early):
        y = x.clone()
        for _ in range(8):
            h = first.start(y, (weights, more), GATE, g=g, early=early, tickets=tickets)
            y = second.start(h, (weights,), ADD, r=y, y=y, early=early, tickets=tickets)
        return y

    due = chain(False)
    assert due.isfinite().all()
    chain(True)  # compiled before anything is captured
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = chain(True)
    for _ in range(20):
        out.fill_(float("nan"))
        graph.replay()
        assert torch.equal(out, due)
