"""Norm, projection and RoPE on the card: parts, pairs, the cache, a graph, begun early; the library."""

import pytest
import torch

from course_kernels.measure.check import checked_error
from course_kernels.problem import Workload, worst_error
from course_kernels.qkv_rope import k01_three_kernels, k02_fused, library
from course_kernels.qkv_rope.problem import PROBLEM

GROUPS = ("qkv_rope",)
KERNELS = [k01_three_kernels, k02_fused]


def workload(B, dtype="bfloat16", H=32, KV=8, D=128, W=4096, P=8192):
    return Workload.of(dtype, B=B, H=H, KV=KV, D=D, W=W, P=P)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator("cuda").manual_seed(seed), "cuda")


def error(out, inputs, w):
    return worst_error(out, PROBLEM.reference(*inputs, kv_heads=w.KV))


@pytest.mark.parametrize("function", [library.eager, library.compiled])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_the_library_is_right(function, dtype):
    w = workload(5, dtype, H=8, KV=2, W=1024)

    assert checked_error(function, w, torch.Generator("cuda").manual_seed(0)) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("B", [1, 7, 16, 17, 32])
def test_the_layer_of_an_8b_model(kernel, B):
    w = workload(B)
    inputs = inputs_of(w)

    assert error(kernel.qkv_rope(*inputs, kv_heads=w.KV), inputs, w) <= PROBLEM.max_error(w)


CUTS = [  # sequences, type; pairs, parts, turned
    *((1, "bfloat16", *cut) for cut in ((16, 1, False), (16, 7, False), (32, 2, False), (64, 4, False))),
    *((1, "bfloat16", *cut) for cut in ((32, 1, True), (64, 3, True))),
    *((32, "bfloat16", *cut) for cut in ((16, 1, False), (32, 3, False), (64, 2, False))),
    *((32, "bfloat16", *cut) for cut in ((32, 1, True), (32, 2, True), (64, 2, True))),
    *((20, "float16", *cut) for cut in ((32, 2, False), (32, 1, True))),
    *((3, "float32", *cut) for cut in ((16, 1, False), (32, 2, True))),
]


@pytest.mark.parametrize(("B", "dtype", "pairs", "splits", "turned"), CUTS)
def test_any_number_of_parts_and_pairs_is_right(B, dtype, pairs, splits, turned):
    w = workload(B, dtype, H=8, KV=2, W=4000)
    inputs = inputs_of(w)
    out = k02_fused.qkv_rope(*inputs, kv_heads=w.KV, splits=splits, pairs=pairs, turned=turned)

    assert error(out, inputs, w) <= PROBLEM.max_error(w)


def test_the_same_call_gives_the_same_bits():
    w = workload(32)
    inputs = inputs_of(w)
    tickets = torch.zeros(k02_fused.tickets_for(48, 128), dtype=torch.int32, device="cuda")
    for splits in (1, 2, 4):
        first = k02_fused.qkv_rope(*inputs, kv_heads=w.KV, splits=splits)
        for _ in range(200):
            again = k02_fused.qkv_rope(*inputs, kv_heads=w.KV, splits=splits, tickets=tickets)
            assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
        assert not tickets.any()


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_cache_gets_its_row_and_nothing_else_is_touched(kernel):
    w = workload(17)
    x, g, weights, positions, cos, sin = inputs_of(w)
    positions = positions % 500
    positions[3], positions[5] = -1, 500  # of no table; of no room
    q, k, v = kernel.qkv_rope(x, g, weights, positions, cos, sin, kv_heads=w.KV)
    caches = [torch.full((17, 8, 500, 128), torch.nan, dtype=torch.bfloat16, device="cuda") for _ in range(2)]
    found = kernel.qkv_rope_into_cache(x, g, weights, positions, cos, sin, *caches)
    there = torch.tensor([b for b in range(17) if b not in (3, 5)], device="cuda")

    assert torch.equal(found[there], q[there])
    assert found[3].isnan().all()
    for cache, rows in zip(caches, (k, v), strict=True):
        expected = torch.full_like(cache, torch.nan)
        expected[there, :, positions[there].long()] = rows[there]
        assert torch.equal(cache.nan_to_num(-7.0), expected.nan_to_num(-7.0))


@pytest.mark.parametrize("pdl", [False, True])
@pytest.mark.parametrize(("B", "splits"), [(1, 1), (1, 2), (32, 2)])
def test_a_graph_serves_positions_that_move_on(B, splits, pdl):
    """Several calls in a row share their tickets; each has the x that a kernel right before it wrote."""
    w = workload(B, W=2048)
    x, g, weights, positions, cos, sin = inputs_of(w)
    caches = [torch.zeros((B, 8, 600, 128), dtype=torch.bfloat16, device="cuda") for _ in range(2)]
    tickets = torch.zeros(k02_fused.tickets_for(48, 128), dtype=torch.int32, device="cuda")
    how = {"splits": splits, "tickets": tickets, "pdl": pdl}
    start = x.clone()

    def step():
        found = []
        for _ in range(4):
            x.mul_(-1.25)
            found.append(k02_fused.qkv_rope_into_cache(x, g, weights, positions, cos, sin, *caches, **how))
            positions.add_(1)
        return found

    positions.fill_(0)
    step()  # compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        queries = step()
    for first in (10, 200):
        x.copy_(start), positions.fill_(first)
        for t in (*caches, *queries):
            t.fill_(torch.nan)
        graph.replay()
        now = start.clone()
        for number, q in enumerate(queries):
            now.mul_(-1.25)
            at = torch.full_like(positions, first + number)
            truth = PROBLEM.reference(now, g, weights, at, cos, sin, kv_heads=w.KV)
            rows = tuple(cache[:, :, first + number] for cache in caches)
            assert worst_error((q, *rows), truth) <= PROBLEM.max_error(w)
        assert sum(int((~c[0, 0, :, 0].isnan()).sum()) for c in caches) == 2 * len(queries)
        assert not tickets.any()
