"""A mixture of experts on the card: the blocks of two models, any load, one graph for all of them, equals, the peer."""

import pytest
import torch

from course_kernels.measure.check import checked_error
from course_kernels.moe import k01_expert_by_expert, k02_sorted, k03_fused, library, route, tiles
from course_kernels.moe.problem import PROBLEM, block, routed
from course_kernels.problem import NAN, Workload, worst_error

GROUPS = ("moe",)
KERNELS = (k01_expert_by_expert, k02_sorted, k03_fused)
OURS = (k02_sorted, k03_fused)
LOADS = ({}, {"SKEW": 100}, {"SKEW": 165}, {"SKEW": 1600}, {"one": True})
# How often an answer is rounded to bfloat16 while it is large: that of one expert, which may be nearly all of the sum,
# and the sum.
ROUNDED = {k02_sorted: 2, k03_fused: 1}


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator("cuda").manual_seed(seed), "cuda")


def error(out, w, inputs):
    return worst_error(out, PROBLEM.reference(*inputs, **PROBLEM.options(w)))


@pytest.mark.parametrize("more", LOADS, ids=str)
@pytest.mark.parametrize("T", [1, 16, 256, 4096])
@pytest.mark.parametrize("kernel", OURS)
def test_every_load_of_a_model_s_block(kernel, T, more):
    w = block("30B", T, **more)
    inputs = inputs_of(w)

    # Of eight million numbers one is near six times their mean square's root; two units more for all that is small.
    assert error(kernel.moe(*inputs, top_k=8), w, inputs) <= (6 * ROUNDED[kernel] + 2) * 2.0**-9


@pytest.mark.parametrize("T", [16, 4096])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_block_of_a_larger_model(kernel, T):
    w = block("235B", T)
    inputs = inputs_of(w)

    assert error(kernel.moe(*inputs, top_k=8), w, inputs) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("function", [library.grouped_mm, library.grouped_mm_compiled])
@pytest.mark.parametrize("T", [1, 16, 300])
def test_torch_s_grouped_multiply_is_right(function, T):
    for more in ({}, {"one": True}):
        w = Workload.of("bfloat16", T=T, D=512, F=256, E=16, TOP_K=4, **more)

        assert checked_error(function, w, torch.Generator("cuda").manual_seed(0)) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("rows", tiles.HOPPER)
@pytest.mark.parametrize("kernel", OURS)
def test_every_tile_is_right_by_the_copy_engine(kernel, rows):
    """D and F are multiples of 8 and of no tile: tiles reach into the next expert, and from gate into up."""
    if torch.cuda.get_device_capability() != (9, 0):
        return  # tiles of another size than this card's shared memory, which no launch here takes
    w = Workload.of("bfloat16", T=200, D=264, F=136, E=12, TOP_K=3)
    inputs = inputs_of(w)

    assert error(kernel.moe(*inputs, top_k=3, tile=tiles.HOPPER[rows]), w, inputs) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("kernel", OURS)
def test_one_graph_serves_every_load(kernel):
    """Captured with one load; each replay finds other tokens at other experts, and experts without any."""
    kinds = [block("30B", 64, **more) for more in LOADS]
    inputs = inputs_of(kinds[0])
    kernel.moe(*inputs, top_k=8)  # compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = kernel.moe(*inputs, top_k=8)
    for seed, w in enumerate(kinds):
        for tensor, values in zip(inputs, inputs_of(w, seed), strict=True):
            tensor.copy_(values)
        out.fill_(NAN)
        graph.replay()

        assert error(out, w, inputs) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("kernel", OURS)
def test_the_host_waits_for_nothing(kernel):
    inputs = inputs_of(block("30B", 16))
    kernel.moe(*inputs, top_k=8)
    torch.cuda.set_sync_debug_mode("error")
    try:
        kernel.moe(*inputs, top_k=8)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("kernel", OURS)
def test_the_same_call_gives_the_same_bits(kernel):
    inputs = inputs_of(block("30B", 256))
    first = kernel.moe(*inputs, top_k=8)
    for _ in range(100):
        assert torch.equal(kernel.moe(*inputs, top_k=8), first)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_of_equal_scores_the_lower_expert_wins(kernel, dtype):
    w = Workload.of(dtype, T=100, D=256, F=64, E=70, TOP_K=6)
    x, router, gate_up, down = inputs_of(w)
    router = router.abs()
    router[1::2] = router[::2].clone()  # every expert has its equal
    router[10:40] = router[50].clone()
    x[:50] = -x[:50].abs()  # all scores of these are negative

    assert error(
        kernel.moe(x, router, gate_up, down, top_k=6), w, (x, router, gate_up, down)
    ) <= PROBLEM.max_error(w)


@pytest.mark.parametrize(("T", "E", "TOP_K"), [(1, 128, 8), (777, 60, 5), (4096, 512, 32), (20_000, 8, 2)])
def test_choices_are_sorted_by_expert_and_stay_in_their_order(T, E, TOP_K):
    """Many steps of the sort; as many experts, and as many of a token, as there may be."""
    x, router, *_ = inputs_of(Workload.of("bfloat16", T=T, D=1024, F=1, E=E, TOP_K=TOP_K))
    to = route.route(x, router, TOP_K)
    who, weights = routed(x, router, TOP_K)
    mine = torch.empty_like(
        who
    ).flatten()  # by the kernel's own order: near equals may come one way or the other
    ends = to.starts[1:].long()
    mine[to.order.long()] = torch.searchsorted(ends, torch.arange(T * TOP_K, device="cuda"), right=True)

    assert torch.equal(mine.view_as(who).sort().values, who.sort().values)
    assert torch.equal(to.order.long(), mine.sort(stable=True).indices)
    assert torch.equal(to.order[to.place.long()].long(), torch.arange(T * TOP_K, device="cuda"))
    torch.testing.assert_close(to.weights.double().sort().values, weights.sort().values, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kernel", OURS)
def test_more_than_2_to_the_31_numbers_of_weights(kernel):
    """The last expert begins past 2**31 numbers of gate_up: 4.6 GiB of it."""
    w = Workload.of("bfloat16", T=40, D=4096, F=2304, E=128, TOP_K=8, SKEW=1600)
    assert w.E * 2 * w.F * w.D > 2**31
    inputs = inputs_of(w)

    assert error(kernel.moe(*inputs, top_k=8), w, inputs) <= PROBLEM.max_error(w)
