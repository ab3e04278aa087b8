"""A linear layer of a step on the card: the model's shapes, keys into the cache, begun early, the library."""

import pytest
import torch

from course_kernels.cuda.four_bits import quantised, values_of
from course_kernels.decode_linear import k01_stream, k02_even, library, stream_w4
from course_kernels.decode_linear.arguments import ADD, GATE, NOTHING, ROPE, Turned
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


# --- 4-bit weights ----------------------------------------------------------------------------------------


def rounded(w):
    """What the four bits of (N, K) weights stand for, in float64."""
    return values_of(*quantised(w.float(), w.dtype))


def matrices_of(weights, behind):
    return tuple(weights.chunk(2)) if behind == GATE else (weights,)


def of_four_bits(w, seed=0):
    """A workload's call: x, packed weights, what stands behind, and the rest by name; and what it comes to."""
    x, weights, *rest = inputs_of(w, seed=seed)
    flags = flags_of(w)
    due = PROBLEM.reference(x, rounded(weights), *rest, **flags)
    behind = GATE if flags["gated"] else ADD if flags["add"] else NOTHING
    how = {"g": rest[0] if flags["norm"] else None, "r": rest[-1] if flags["add"] else None}
    return (x, stream_w4.packed_for(matrices_of(weights, behind), behind), behind), how, due


OF_THE_MODEL = [
    {"N": 6144, "K": 4096, "norm": True},
    {"N": 4096, "K": 4096, "add": True},
    {"N": 14336, "K": 4096, "norm": True, "gated": True},
    {"N": 4096, "K": 14336, "add": True},
]


@pytest.mark.parametrize("M", [1, 8, 16, 32])
@pytest.mark.parametrize("sizes", OF_THE_MODEL, ids=lambda sizes: "-".join(map(str, sizes.values())))
def test_the_shapes_of_the_model_in_four_bits(sizes, M):
    w = Workload.of("bfloat16", M=M, **sizes)
    call, how, due = of_four_bits(w)
    tickets = torch.zeros(stream_w4.tickets_for(2 * w.N), dtype=torch.int32, device="cuda")
    first = stream_w4.start(*call, **how)

    assert worst_error(first, due) <= PROBLEM.max_error(w)
    for more in ({}, {"tickets": tickets}, {"tickets": tickets, "early": True}):
        for _ in range(20):
            assert torch.equal(stream_w4.start(*call, **how, **more), first), more
    assert not tickets.any()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("w", [{"M": 3, "N": 80, "K": 384}, {"M": 29, "N": 2128, "K": 1152}], ids=str)
@pytest.mark.parametrize("cut", [None, (1, 1, 9, 2), (40, 5, 2, 3), (132, 9, 1, 16), (7, 2, 5, 1)], ids=str)
def test_any_cut_in_four_bits_is_right(w, cut, dtype):
    for kind in ({}, {"add": True}, {"norm": True, "gated": True}):
        workload = Workload.of(dtype, **w, **kind)
        call, how, due = of_four_bits(workload)
        room = stream_w4.ROOM[1 if workload.M <= 8 else 4]
        given = cut and stream_w4.Cut(*cut, room.held, 1)
        first = stream_w4.start(*call, **how, cut=given)
        assert worst_error(first, due) <= PROBLEM.max_error(workload), kind
        for _ in range(20):
            assert torch.equal(stream_w4.start(*call, **how, cut=given), first), kind


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(("H", "KV", "D", "W"), [(8, 2, 64, 2048), (8, 2, 128, 4096), (32, 8, 128, 4096)])
@pytest.mark.parametrize("B", [1, 8, 13, 32])
def test_queries_keys_and_values_of_four_bits_find_their_places(B, H, KV, D, W, dtype):
    w = Workload.of(dtype, B=B, H=H, KV=KV, D=D, W=W, P=1000)
    x, g, weights, positions, cos, sin = inputs_of(w, QKV)
    due = QKV.reference(x, g, rounded(weights), positions, cos, sin, kv_heads=KV)
    caches = [torch.full((B, KV, 900, D), 7.0, dtype=x.dtype, device="cuda") for _ in range(2)]
    at = positions.long()
    packed = stream_w4.packed_for(weights.split([H * D, KV * D, KV * D]), ROPE, D)
    q = stream_w4.start(x, packed, ROPE, g=g, turned=Turned(cos[at], sin[at], at, *caches))

    assert worst_error(q, due[0], rows_apart=True) <= QKV.max_error(w)
    for cache, right in zip(caches, due[1:], strict=True):
        for b, place in enumerate(at.tolist()):
            if place < 900:
                assert worst_error(cache[b, :, place], right[b]) <= QKV.max_error(w)
                cache[b, :, place] = 7.0
        assert (cache == 7).all(), "somebody wrote elsewhere"


@pytest.mark.parametrize("other", ["k01", "k02", "w4"])
@pytest.mark.parametrize("M", [1, 16, 32])
def test_layers_of_four_bits_that_begin_early_give_what_they_give_one_after_the_other(M, other):
    """As above: a chain in a graph, of 4-bit layers alone, and with those of 16 bits between them."""
    w = Workload.of("bfloat16", M=M, N=4096, K=4096, norm=True)
    x, weights, g = inputs_of(w)
    more, down = inputs_of(w, seed=1)[1], inputs_of(w, seed=2)[1]
    gated = stream_w4.packed_for((weights, more), GATE)
    tickets = torch.zeros(stream_w4.tickets_for(4096 * 2), dtype=torch.int32, device="cuda")
    if other == "w4":
        added, second = stream_w4.packed_for((down,), ADD), stream_w4.start
    else:
        added, second = (down,), KERNELS[other].start

    def chain(early):
        y = x.clone()
        for _ in range(8):
            h = stream_w4.start(y, gated, GATE, g=g, early=early, tickets=tickets)
            y = second(h, added, ADD, r=y, y=y, early=early, tickets=tickets)
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
