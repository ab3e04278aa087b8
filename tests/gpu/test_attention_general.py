"""General attention on the card: arguments at random, in a CUDA graph, with every tile; torch's packed attention."""

import pytest
import torch

from course_kernels.attention_general import k01_teaching, library
from course_kernels.attention_general.problem import PROBLEM, reference_with_lse
from course_kernels.measure.check import checked_error
from course_kernels.problem import Workload, worst_error

GROUPS = ("attention_general",)


def workload(dtype="bfloat16", B=6, H=8, KV=2, N=1000, D=128, **more):
    return Workload.of(dtype, B=B, H=H, KV=KV, N=N, D=D, **more)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator("cuda").manual_seed(seed), "cuda")


@pytest.mark.parametrize("seed", range(60))
def test_arguments_at_random(seed):
    draw = torch.Generator().manual_seed(seed)

    def number(least, most):
        return int(torch.randint(least, most + 1, (), generator=draw))

    most = (20, 300, 2500)[number(0, 2)]
    lengths = [(number(0, most), number(0, most)) for _ in range(number(1, 7))] + [
        (number(1, 9), number(1, 9))
    ]
    share, KV, D = number(1, 9), number(1, 3), (64, 96, 128, 256)[number(0, 3)]
    dtype = (torch.bfloat16, torch.float16, torch.float32)[number(0, 2)]
    masks = {"causal": bool(number(0, 1)), "window": (None, number(0, most))[number(0, 1)]}
    starts = torch.nn.functional.pad(torch.tensor(lengths).cumsum(0), (0, 0, 1, 0)).int()
    T, S = starts[-1].tolist()
    generator = torch.Generator("cuda").manual_seed(seed)
    q, k, v = (
        torch.randn(*shape, generator=generator, device="cuda").to(dtype)
        for shape in ((T, share * KV, D), (S, KV, D), (S, KV, D))
    )
    inputs = q, k, v, *(starts[:, side].contiguous().cuda() for side in (0, 1))
    longest = max(queries for queries, _ in lengths) + number(0, 1) * 500
    out, lse = k01_teaching.attention_general_with_lse(*inputs, longest=longest, **masks)
    truth, true_lse = reference_with_lse(*inputs, **masks)

    allowed = PROBLEM.max_error(workload(str(dtype).removeprefix("torch.")))
    assert worst_error(out, truth, rows_apart=True) <= allowed
    assert torch.equal(lse.isinf(), true_lse.isinf())
    torch.testing.assert_close(lse.double(), true_lse, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("tile", k01_teaching.TILES.values(), ids=str)
def test_every_tile_is_right_where_another_would_do(tile, dtype):
    """Their shared memory is that of D = 64 here."""
    w = workload(dtype, D=64, causal=True, W=200)
    inputs = inputs_of(w)
    out, _ = k01_teaching.attention_general_with_lse(*inputs, longest=w.N, causal=True, window=200, tile=tile)
    truth = PROBLEM.reference(*inputs, **PROBLEM.options(w))

    assert worst_error(out, truth, rows_apart=True) <= PROBLEM.max_error(w)


def test_a_graph_serves_other_lengths():
    w = workload(causal=True)
    inputs, options = inputs_of(w), PROBLEM.options(w)
    k01_teaching.attention_general(*inputs, **options)  # compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = k01_teaching.attention_general(*inputs, **options)
    for seed in range(1, 5):
        for tensor, values in zip(inputs, inputs_of(w, seed), strict=True):
            tensor.copy_(values)
        out.fill_(torch.nan)
        graph.replay()

        truth = PROBLEM.reference(*inputs, **options)
        assert worst_error(out, truth, rows_apart=True) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("masks", [{}, {"causal": True}, {"causal": True, "W": 100}], ids=str)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("D", [64, 128])
def test_the_library_is_right(D, dtype, masks):
    w = workload(dtype, B=4, D=D, **masks)

    assert checked_error(
        library.varlen_flash, w, torch.Generator("cuda").manual_seed(0)
    ) <= PROBLEM.max_error(w)


def test_as_long_as_it_is_timed():
    for w in PROBLEM.time_on:
        smaller = Workload.of(w.dtype, **{**w.dims, "H": 4, "KV": 1})

        assert checked_error(k01_teaching, smaller) <= PROBLEM.max_error(w)
