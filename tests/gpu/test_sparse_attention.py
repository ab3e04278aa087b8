"""Sparse attention on the card: DeepSeek-V3.2's sizes, any parts, in a graph, past 2**31 numbers; bytes, counted."""

import pytest
import torch

from course_kernels.measure import count_many
from course_kernels.measure.check import checked_error
from course_kernels.problem import Workload, worst_error
from course_kernels.sparse_attention import k01_dense, k02_in_pieces, k03_gathered, k04_chosen, parts
from course_kernels.sparse_attention.problem import (
    PROBLEM,
    best_first,
    chosen_bytes,
    dense_bytes,
    index_bytes,
    query_bytes,
    scores_of,
)

GROUPS = ("sparse_attention",)
KERNELS = (k01_dense, k02_in_pieces, k03_gathered, k04_chosen)
CHOOSING = KERNELS[1:]


def workload(dtype="bfloat16", B=2, H=128, H_I=64, N=5000, TOP=2048, **flags):
    return Workload.of(dtype, B=B, H=H, H_I=H_I, N=N, TOP=TOP, **flags)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator("cuda").manual_seed(seed), "cuda")


def error(out, w, inputs):
    return worst_error(out, PROBLEM.reference(*inputs, top=w.TOP), rows_apart=True)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("B", "N"), [(1, 4096), (1, 131072), (8, 16384), (32, 8192)])
def test_the_sizes_that_are_timed_are_right(kernel, B, N):
    w = workload(B=B, N=N, peaked=True)

    assert checked_error(kernel, w, torch.Generator("cuda").manual_seed(N)) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("kernel", CHOOSING)
@pytest.mark.parametrize(("B", "N", "TOP"), [(1, 131072, 2048), (5, 30001, 777), (3, 9000, 8999)])
def test_nan_that_nobody_chose_shows_nowhere(kernel, B, N, TOP):
    w = workload(B=B, N=N, TOP=TOP)
    inputs = inputs_of(w)

    assert error(kernel.sparse_attention(*inputs, top=TOP), w, inputs) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("loop", [parts.WIDE, parts.NARROW])
@pytest.mark.parametrize("splits", [1, 2, 7, 16, 66])
@pytest.mark.parametrize(("dtype", "H"), [("bfloat16", 128), ("float16", 80), ("bfloat16", 5)])
def test_any_loop_and_any_number_of_parts_is_right(dtype, H, splits, loop):
    if loop is parts.WIDE and torch.cuda.get_device_capability() not in parts.WIDE_CARDS:
        loop = parts.NARROW  # elsewhere nobody takes it
    w = workload(dtype, H=H, N=3000, TOP=2000, peaked=True)
    inputs = inputs_of(w)
    for kernel in (k01_dense, k03_gathered):
        out = kernel.sparse_attention(*inputs, top=w.TOP, loop=loop, splits=splits)

        assert error(out, w, inputs) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("N", [5, 2048])
def test_dense_and_sparse_agree_where_everything_is_chosen(N):
    w = workload(N=N)
    inputs = inputs_of(w)
    dense = k01_dense.sparse_attention(*inputs, top=w.TOP)

    assert error(dense, w, inputs) <= PROBLEM.max_error(w)
    for kernel in CHOOSING:
        out = kernel.sparse_attention(*inputs, top=w.TOP)
        assert worst_error(out, dense.double(), rows_apart=True) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("kind", ["usual", "ties", "zeros of both signs"])
@pytest.mark.parametrize(("N", "K"), [(131072, 2048), (1 << 20, 2048), (70001, 70000), (1, 1)])
def test_the_largest_are_chosen_and_of_equals_the_lower(kind, N, K):
    scores = torch.randn(3, N, generator=torch.Generator("cuda").manual_seed(N), device="cuda")
    if kind == "ties":
        scores = (2 * scores).round()
    if kind == "zeros of both signs":
        scores = torch.where(scores < 0, -0.0, 0.0)
    expected = [best_first(row.double())[:K].sort().values for row in scores]
    for _ in range(20):
        assert torch.equal(k04_chosen.choose(scores, K).long(), torch.stack(expected))


@pytest.mark.parametrize("kernel", [k01_dense, k04_chosen])
def test_the_same_call_gives_the_same_bits(kernel):
    inputs = inputs_of(workload(B=3, N=20000, peaked=True))
    first = kernel.sparse_attention(*inputs, top=2048)
    for _ in range(100):
        assert torch.equal(kernel.sparse_attention(*inputs, top=2048), first)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_graph_serves_other_values(kernel):
    w = workload(N=20000, peaked=True)
    inputs = inputs_of(w)
    kernel.sparse_attention(*inputs, top=w.TOP)  # compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = kernel.sparse_attention(*inputs, top=w.TOP)
    for seed in range(1, 4):
        for tensor, values in zip(inputs, inputs_of(w, seed), strict=True):
            tensor.copy_(values)
        out.fill_(torch.nan)
        graph.replay()

        assert error(out, w, inputs) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_cache_of_more_than_2_to_the_31_numbers(kernel):
    """The last of 32 sequences begins behind 2**31 numbers of the cache, and answers as it does alone."""
    w = workload(B=32, N=131072, peaked=True)
    inputs = inputs_of(w)
    assert 31 * w.N * 576 > 2**31
    last = tuple(x[-1:].clone() for x in inputs)
    out = kernel.sparse_attention(*inputs, top=w.TOP)[-1:]

    assert error(out, workload(B=1, N=w.N, peaked=True), last) <= PROBLEM.max_error(w)


def test_scores_are_those_of_float64():
    inputs = inputs_of(workload(N=30001))
    scores = k02_in_pieces.index_scores(*inputs[:3])
    expected = torch.stack([scores_of(*one) for one in zip(*inputs[:3], strict=True)])

    torch.testing.assert_close(scores.double(), expected, rtol=1e-5, atol=2e-3)


def test_counted_bytes_are_those_of_the_formula():
    """Each kernel against its own part of it: narrow rows, chosen wide rows, all wide rows."""
    w = workload(B=32, N=65536, peaked=True)
    dense, chosen = count_many([(k01_dense, w), (k04_chosen, w)])
    read = {k["name"]: k["read_bytes"] for k in (*dense.kernels, *chosen.kernels)}

    assert read["dense_kernel"] == pytest.approx(dense_bytes(w), rel=0.1)
    assert read["scores_kernel"] == pytest.approx(index_bytes(w), rel=0.1)
    assert read["gathered_kernel"] == pytest.approx(chosen_bytes(w) + query_bytes(w), rel=0.1)
    of_scores = 4 * w.B * w.N * k04_chosen.SCORE_TRIPS
    by_hand = index_bytes(w) + chosen_bytes(w) + query_bytes(w) + of_scores
    assert chosen.read_bytes + chosen.write_bytes == pytest.approx(by_hand, rel=0.1)
