"""The GEMM ladder on Hopper's own instructions, on the card: ugly sizes, every plan, the same bits again, no hang."""

from dataclasses import replace

import pytest
import torch

from course_kernels import tune_gemm
from course_kernels.gemm import (
    heuristics,
    k09_registers,
    k12_stored,
    k13_by_size,
    k14_tuned,
    one_wave,
    stamped,
)
from course_kernels.gemm.plans import ALONE, SHAPES, Plan, plan_of
from course_kernels.gemm.problem import PROBLEM as GEMM
from course_kernels.measure.check import checked_error
from course_kernels.problem import Workload, worst_error
from course_kernels.tune_gemm import RUNGS

GROUPS = ("gemm",)
BY_PLAN = [k13_by_size, k14_tuned]
# Rounding once to nearest is off by half a step; some additions in float32 come on top.
ROUNDED_ONCE = {"bfloat16": 2.0**-8 + 2.0**-14, "float16": 2.0**-11 + 2.0**-14}

# One step, one tile, an edge in each direction, one number past a tile and one before it, long and thin each way.
UGLY = [
    *((M, N, K) for M in (1, 63, 65, 129, 257) for N in (8, 72, 264) for K in (8, 200)),
    *((M, 520, K) for M in (127, 128, 255, 256, 385) for K in (64, 72, 1032)),
    *((1000, N, 1000) for N in (120, 128, 136, 1000)),
    *((64, N, K) for N in (8, 4104) for K in (8, 4104, 16384)),
    (4100, 8, 72),
    (20000, 8, 8),
    (8, 20000, 8),
    (2048, 2048, 64),
    (5000, 4104, 200),
]


def name_of(x):
    return x.__name__.rpartition(".")[2] if hasattr(x, "__name__") else None


def generator():
    return torch.Generator("cuda").manual_seed(0)


def inputs(M, N, K, dtype="bfloat16"):
    return GEMM.make_inputs(Workload.of(dtype, M=M, N=N, K=K), generator(), "cuda")


def as_n_k(b):
    """The same matrix, and it lies as [N, K]."""
    return b.t().contiguous().t()


def test_there_are_sixty_sizes():
    assert len(set(UGLY)) == len(UGLY) == 60


@pytest.mark.parametrize("kernel", RUNGS, ids=name_of)
@pytest.mark.parametrize("dtype", ROUNDED_ONCE)
def test_every_size_is_right_and_rounded_once(kernel, dtype):
    wrong = {}
    for M, N, K in UGLY:
        error = checked_error(kernel, Workload.of(dtype, M=M, N=N, K=K), generator())
        if not error <= ROUNDED_ONCE[dtype]:
            wrong[M, N, K] = error

    assert wrong == {}


@pytest.mark.parametrize("kernel", BY_PLAN, ids=name_of)
def test_every_size_is_right_where_b_lies_as_n_k(kernel):
    wrong = {}
    for M, N, K in UGLY:
        a, b = inputs(M, N, K)
        error = worst_error(kernel.gemm(a, as_n_k(b)), GEMM.reference(a, b))
        if not error <= ROUNDED_ONCE["bfloat16"]:
            wrong[M, N, K] = error

    assert wrong == {}


@pytest.mark.parametrize("kernel", BY_PLAN, ids=name_of)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.BM}x{shape.BN}")
@pytest.mark.parametrize("splits", [1, 3])
def test_every_plan_is_right(kernel, shape, splits):
    M, N, K = 1000, 2056, 1160
    a, b = inputs(M, N, K)
    truth = GEMM.reference(a, b)
    for blocks in (1, 7, 132 // shape.cluster):
        plan = replace(plan_of(M, N, K, 132), shape=shape, splits=splits, grid=blocks * shape.cluster)
        for layout in (b, as_n_k(b)):
            assert worst_error(kernel.gemm(a, layout, plan=plan), truth) <= ROUNDED_ONCE["bfloat16"]


@pytest.mark.parametrize(
    "shape",
    [*SHAPES, *tune_gemm.MORE_SHAPES],
    ids=lambda s: f"{s.BM}x{s.BN}-{s.STAGES}-{s.CLUSTER_M}x{s.CLUSTER_N}",
)
def test_every_switch_is_right(shape):
    """Less steps than stages, as many as the ring twice, and a long way; one tile a block, and many."""
    wrong = []
    for M, N, K in ((1000, 2056, 1160), (300, 520, 136), (2048, 1024, 512)):
        a, b = inputs(M, N, K)
        truth = GEMM.reference(a, b)
        for grid in (2 * shape.cluster, 132 // shape.cluster * shape.cluster):
            for plan in tune_gemm.switched(Plan(shape, 2, 1, grid), M, N, K):
                for layout in (b, as_n_k(b)):
                    first = k14_tuned.gemm(a, layout, plan=plan)
                    if not worst_error(first, truth) <= ROUNDED_ONCE["bfloat16"]:
                        wrong.append((M, N, K, grid, tune_gemm.name_of(plan)))
                    elif not all(torch.equal(k14_tuned.gemm(a, layout, plan=plan), first) for _ in range(5)):
                        wrong.append(("not the same again", M, N, K, grid, tune_gemm.name_of(plan)))

    assert wrong == []


@pytest.mark.parametrize("switches", [(("LATE", 1),), (("LAG", 2),), (("LATE", 1), ("LAG", 1))], ids=str)
def test_ten_thousand_launches_end_with_every_switch(switches):
    a, b = inputs(1030, 1032, 1032)
    plan = Plan(SHAPES[0], 2, 1, 4, switches=switches)
    first = k14_tuned.gemm(a, b, plan=plan)
    for _ in range(10_000):
        last = k14_tuned.gemm(a, b, plan=plan)
    torch.cuda.synchronize()

    assert torch.equal(last, first)


@pytest.mark.parametrize("kernel", [k12_stored, k14_tuned], ids=name_of)
def test_a_launch_that_comes_again_reads_what_lies_there_now(kernel):
    a, b = inputs(1000, 520, 328)
    held = []
    for n in range(6):
        a.normal_(generator=generator().manual_seed(n))
        truth = GEMM.reference(a, b)
        c = kernel.gemm(a, b)
        assert worst_error(c, truth) <= ROUNDED_ONCE["bfloat16"]
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
            other = kernel.gemm(a, b)
            torch.cuda.current_stream().synchronize()
        assert torch.equal(other, c)
        held += [c] if n % 2 else []  # so that C lies where it lay, and elsewhere


@pytest.mark.parametrize("dtype", ROUNDED_ONCE)
def test_every_way_of_cublaslt_multiplies(dtype):
    a, b = inputs(264, 520, 328, dtype)
    truth = GEMM.reference(a, b)
    for layout in (b, as_n_k(b)):
        ways = heuristics.ways(a, layout)

        assert len(ways) > 1
        for way in ways:
            # It may add parts up in 16 bits, as the problem allows the library.
            assert worst_error(way(), truth) <= GEMM.max_error(Workload.of(dtype, M=1, N=1, K=1))


@pytest.mark.parametrize("function", [k09_registers.wide, k09_registers.one_consumer], ids=name_of)
def test_the_other_ways_of_kernel_9_are_right(function):
    a, b = inputs(1000, 1000, 1000)

    assert worst_error(function(a, b), GEMM.reference(a, b)) <= ROUNDED_ONCE["bfloat16"]


FOUR = replace(SHAPES[0], CLUSTER_M=2, CLUSTER_N=2)


@pytest.mark.parametrize(
    "shape", [ALONE, SHAPES[0], SHAPES[1], FOUR], ids=lambda s: f"{s.BM}x{s.BN}, {s.cluster}"
)
@pytest.mark.parametrize("early", [0, 1])
def test_a_tile_for_each_block_is_right_and_the_same_in_every_call(shape, early):
    plan, wrong = Plan(shape, group=1, splits=1, grid=1, switches=(("EARLY", early),)), {}
    for M, N, K in UGLY:
        a, b = inputs(M, N, K)
        truth = GEMM.reference(a, b)
        for layout in (b, as_n_k(b)):
            c = one_wave.gemm(a, layout, plan=plan)
            error = worst_error(c, truth)
            if not error <= ROUNDED_ONCE["bfloat16"]:
                wrong[M, N, K] = error
            elif not all(torch.equal(one_wave.gemm(a, layout, plan=plan), c) for _ in range(5)):
                wrong[M, N, K] = "other bits"

    assert wrong == {}


@pytest.mark.parametrize("group", [1, 4])
def test_a_cluster_of_four_is_right(group):
    wrong, plan = {}, Plan(FOUR, group=group, splits=1, grid=128)
    for M, N, K in UGLY:
        a, b = inputs(M, N, K)
        error = worst_error(k14_tuned.gemm(a, b, plan=plan), GEMM.reference(a, b))
        if not error <= ROUNDED_ONCE["bfloat16"]:
            wrong[M, N, K] = error

    assert wrong == {}


@pytest.mark.parametrize("which", [stamped.WIDE, stamped.ROLES], ids=lambda which: which.kernel)
@pytest.mark.parametrize(("M", "N", "K"), [(2048, 4096, 1024), (1000, 1000, 1000)])
def test_with_stamps_it_has_the_same_bits_and_its_stamps_come_in_order(which, M, N, K):
    a, b = inputs(M, N, K)
    c, ticks = stamped.multiply(which, a, b)
    ticks = ticks.cpu()
    at_work, places = ((0, 1), 4) if which is stamped.WIDE else ((1, 2), 3)

    assert torch.equal(c, which.plain.gemm(a, b))
    for group in at_work:
        own = ticks[:, group, :-1, :places].flatten(1)
        assert own.diff(dim=1).ge(0).all()
        assert own[:, 0].ge(ticks[:, group, -1, 2]).all()
        assert ticks[:, group, -1, 0].ge(own[:, -1]).all()
        assert ticks[:, group, -1, 1].gt(ticks[:, group, -1, 0]).all()
        assert ticks[:, group, -1, 3].gt(0).all()
    assert all(gap > 0 for gap in stamped.gaps(ticks, which))
    assert sum(stamped.shares(ticks, which, skip=4).values()) == pytest.approx(1)


@pytest.mark.parametrize(("M", "N", "K"), [(2048, 4096, 1024), (1000, 1000, 1000)])
def test_nobody_is_stamped_past_a_barrier_that_somebody_has_not_reached(M, N, K):
    """Both warpgroups of k07 meet in every step: neither left before the other had come."""
    ticks = stamped.multiply(stamped.WIDE, *inputs(M, N, K))[1].cpu()

    assert stamped.early(ticks) == 0


@pytest.mark.parametrize("kernel", RUNGS, ids=name_of)
@pytest.mark.parametrize(("M", "N", "K"), [(4096, 4096, 512), (1000, 1000, 1000), (64, 512, 16384)])
def test_the_same_bits_in_every_call(kernel, M, N, K):
    a, b = inputs(M, N, K)
    first = kernel.gemm(a, b)

    assert all(torch.equal(kernel.gemm(a, b), first) for _ in range(50))


@pytest.mark.parametrize("kernel", RUNGS, ids=name_of)
def test_ten_thousand_launches_end(kernel):
    a, b = inputs(260, 520, 328)
    first = kernel.gemm(a, b)
    for _ in range(10_000):
        last = kernel.gemm(a, b)
    torch.cuda.synchronize()

    assert torch.equal(last, first)


def test_a_grid_that_begins_early_waits_for_what_it_reads():
    """Each product reads what the one before wrote, and the room of the one before that is written again."""
    step = torch.linalg.qr(torch.randn(512, 512, device="cuda", generator=generator()))[0].bfloat16()
    start = inputs(1024, 512, 512)[0]

    def walk(wait):
        x = start
        for n in range(200):
            x = k14_tuned.gemm(x, step if n % 2 else as_n_k(step))
            if wait:
                torch.cuda.synchronize()
        return x

    assert torch.equal(walk(False), walk(True))
    assert walk(False).float().std() > 0.1


def test_parts_wait_for_parts_and_streams_do_not_meet():
    a, b = inputs(64, 512, 16384)
    truth = k14_tuned.gemm(a, b)
    streams = [torch.cuda.Stream() for _ in range(4)]
    torch.cuda.synchronize()
    found = []
    for n in range(400):
        with torch.cuda.stream(streams[n % 4]):
            found.append(
                torch.equal(k14_tuned.gemm(a, b), truth) if n % 16 == 0 else k14_tuned.gemm(a, b) is not None
            )
    torch.cuda.synchronize()

    assert all(found)


def test_a_captured_launch_is_right_on_new_numbers():
    a, b = inputs(1000, 1000, 1000)
    k14_tuned.gemm(a, b)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = k14_tuned.gemm(a, b)
    a.copy_(torch.randn(a.shape, device="cuda"))
    graph.replay()
    torch.cuda.synchronize()

    assert worst_error(c, GEMM.reference(a, b)) <= ROUNDED_ONCE["bfloat16"]
