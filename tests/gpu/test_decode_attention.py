"""A step of decoding on the card: in a CUDA graph, with lengths of every kind, in any number of parts; the library."""

import pytest
import torch

from course_kernels.decode_attention import k01_one_program, k02_split, k04_cluster, library
from course_kernels.decode_attention.problem import PROBLEM
from course_kernels.measure.check import checked_error
from course_kernels.problem import Workload, worst_error

GROUPS = ("decode_attention",)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator("cuda").manual_seed(seed), "cuda")


def error(out, inputs):
    return worst_error(out, PROBLEM.reference(*inputs), rows_apart=True)


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (library.sdpa_flash, "bfloat16"),
        (library.sdpa_flash, "float16"),
        (library.sdpa_math, "float32"),
        (library.sdpa_math, "bfloat16"),
    ],
)
def test_the_library_is_right_where_the_cache_is_full(function, dtype):
    w = Workload.of(dtype, B=3, H=32, KV=8, N=1000, D=128, full=True)

    assert checked_error(function, w, torch.Generator("cuda").manual_seed(0)) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("kernel", [k01_one_program, k02_split])
@pytest.mark.parametrize(("B", "N"), [(1, 65536), (7, 4096), (60, 1030)])
def test_many_tokens_and_many_sequences(kernel, B, N):
    w = Workload.of("bfloat16", B=B, H=32, KV=8, N=N, D=128)
    inputs = inputs_of(w)

    assert error(kernel.decode_attention(*inputs), inputs) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("blocks", [None, 1, 2, 4, 8])
@pytest.mark.parametrize(("H", "KV", "D"), [(8, 2, 128), (3, 1, 64), (16, 1, 128)])
def test_any_cluster_is_right(H, KV, D, blocks, early):
    w = Workload.of("bfloat16", B=5, H=H, KV=KV, N=3000, D=D)
    inputs = inputs_of(w)
    out = k04_cluster.decode_attention(*inputs, blocks=blocks, early=early)

    assert error(out, inputs) <= PROBLEM.max_error(w)
    assert torch.equal(k04_cluster.decode_attention(*inputs, blocks=blocks, early=early), out)


@pytest.mark.parametrize("splits", [1, 2, 5, 16, 17, 49, 200])
@pytest.mark.parametrize(
    ("dtype", "H", "KV"),
    [("bfloat16", 8, 2), ("float16", 3, 1), ("float32", 8, 2), ("bfloat16", 64, 1), ("float32", 64, 1)],
)
def test_any_number_of_parts_is_right(dtype, H, KV, splits):
    w = Workload.of(dtype, B=5, H=H, KV=KV, N=8000, D=128)
    inputs = inputs_of(w)

    assert error(k02_split.decode_attention(*inputs, splits=splits), inputs) <= PROBLEM.max_error(w)


def test_the_same_call_gives_the_same_bits():
    inputs = inputs_of(Workload.of("bfloat16", B=4, H=32, KV=8, N=8000, D=128))
    tickets = torch.zeros(4 * 8, dtype=torch.int32, device="cuda")
    first = k02_split.decode_attention(*inputs)
    for _ in range(300):
        assert torch.equal(k02_split.decode_attention(*inputs, tickets=tickets), first)
    assert not tickets.any()


@pytest.mark.parametrize("own_tickets", [False, True])
@pytest.mark.parametrize("kernel", [k01_one_program, k02_split])
def test_a_graph_serves_a_cache_that_grows(kernel, own_tickets):
    """Captured while every length is 1; each replay finds other lengths, and other values."""
    w = Workload.of("bfloat16", B=6, H=32, KV=8, N=3000, D=128)
    inputs = inputs_of(w)
    tickets = torch.zeros(6 * 8, dtype=torch.int32, device="cuda")
    options = {"tickets": tickets} if own_tickets and kernel is k02_split else {}
    kernel.decode_attention(*inputs, **options)  # compiles
    inputs[3].fill_(1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = kernel.decode_attention(*inputs, **options)
    for seed in range(1, 5):
        for tensor, values in zip(inputs, inputs_of(w, seed), strict=True):
            tensor.copy_(values)
        out.fill_(torch.nan)
        graph.replay()

        assert error(out, inputs) <= PROBLEM.max_error(w)


def test_a_length_outside_of_the_room_reads_nothing_outside():
    w = Workload.of("float32", B=2, H=8, KV=2, N=100, D=64, full=True)
    q, k, v, lengths = inputs_of(w)
    for kernel in (k01_one_program, k02_split):
        out = kernel.decode_attention(q, k, v, torch.tensor([10**6, -5], dtype=torch.int32, device="cuda"))

        assert torch.equal(out[0], kernel.decode_attention(q, k, v, lengths)[0])
        assert not out[1].any()
