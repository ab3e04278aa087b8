"""The GEMM ladder on Hopper, on the CPU's stand-in: right at every edge, faults are seen, the SASS is Hopper's."""

import re
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from compiled import seen
from hopper_on_cpu import prepare_in, tensor_map
from machine_code import stacks

from course_kernels.cuda.compile import compile_cubin
from course_kernels.gemm import (
    by_tma,
    k06_tma,
    k07_wide,
    k08_roles,
    k09_registers,
    k10_persistent,
    k11_cluster,
    k12_stored,
    k13_by_size,
    k14_tuned,
    launch_cache,
    one_wave,
    plans,
)
from course_kernels.gemm.plans import ALONE, SHAPES, Plan, plan_of
from course_kernels.gemm.problem import PROBLEM
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept

RUNGS = [k06_tma, k07_wide, k08_roles, k09_registers, k10_persistent, k11_cluster, k12_stored]
BY_PLAN = [k13_by_size, k14_tuned]
# Less than a tile and than a step; ragged tiles each way, and more steps than stages.
SIZES = [(1, 8, 8), (130, 264, 328)]


def full_of_nan(*size, **how):
    return torch.full(size[0] if isinstance(size[0], tuple) else size, float("nan"), **how)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(function, a, b, text=...) -> a @ b, its memory full of NaN before."""
    built = {}

    def run(function, a, b, text=None):
        def prepare(path, name, **how):
            changed = text if path != plans.ADD_PARTS else None
            key = name, changed, str(sorted(how.items(), key=str))
            if key not in built:
                built[key] = prepare_in(tmp_path_factory.mktemp(name))(path, name, text=changed, **how)
            return built[key]

        for kept in (
            by_tma._prepared,
            by_tma.multiprocessors,
            plans._tiles,
            plans._adding,
            one_wave._prepared,
        ):
            kept.cache_clear()
        launch_cache.forget()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TRITON_INTERPRET", "1")  # tensors on the CPU are welcome
            for module in (by_tma, one_wave, plans):
                patch.setattr(module, "prepare", prepare)
                patch.setattr(module, "tensor_map", tensor_map)
            patch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
            patch.setattr(
                torch.cuda, "get_device_properties", lambda device: SimpleNamespace(multi_processor_count=3)
            )
            patch.setattr(torch, "empty", full_of_nan)
            return function(a, b)

    return run


def inputs(M, N, K, dtype="bfloat16"):
    w = Workload.of(dtype, M=M, N=N, K=K)
    return PROBLEM.make_inputs(w, torch.Generator().manual_seed(M + N + K), "cpu")


def error_of(c, a, b):
    return worst_error(c, PROBLEM.reference(a, b))


def name_of(x):
    return x.__name__.rpartition(".")[2] if hasattr(x, "__name__") else None


@pytest.mark.parametrize(("M", "N", "K"), SIZES)
@pytest.mark.parametrize("kernel", RUNGS, ids=name_of)
def test_a_rung_is_right(run, kernel, M, N, K):
    assert kernel.supports(Workload.of("bfloat16", M=M, N=N, K=K))
    a, b = inputs(M, N, K)

    assert error_of(run(kernel.gemm, a, b), a, b) <= 2.0**-8


PLANS = [
    Plan(shape, group=2, splits=splits, grid=blocks * shape.cluster)
    for shape, splits, blocks in zip(SHAPES, (1, 3, 1, 1, 2, 1), (1, 2, 1, 3, 2, 2), strict=True)
]
# Every switch of k14 by itself and all together, with one tile, several, and none for some of the blocks.
SWITCHED = [
    Plan(SHAPES[0], group=1, splits=1, grid=2, switches=(("LATE", 1),)),
    Plan(SHAPES[1], group=2, splits=1, grid=4, switches=(("LATE", 1), ("LAG", 1))),
    Plan(SHAPES[2], group=2, splits=1, grid=64, switches=(("LATE", 1), ("HINTS", 0))),
    Plan(SHAPES[3], group=2, splits=1, grid=2, switches=(("LATE", 1), ("LAG", 2))),
    Plan(SHAPES[0], group=2, splits=2, grid=2, switches=(("LATE", 1), ("LAG", 3))),
    Plan(SHAPES[0], group=1, splits=1, grid=2, switches=(("LAG", 2),)),
]


# Six, eight and fifteen tiles of clusters: one left for four, three for two, three for one, and all switches at once.
BEGUN = [
    (321, 520, Plan(SHAPES[0], group=2, splits=1, grid=10, ahead=3)),
    (321, 1000, Plan(SHAPES[0], group=1, splits=1, grid=10, ahead=9, switches=(("LATE", 1), ("LAG", 1)))),
    (700, 520, Plan(SHAPES[2], group=2, splits=1, grid=8, ahead=1, switches=(("LATE", 1),))),
    (130, 520, Plan(SHAPES[3], group=1, splits=1, grid=4, ahead=5, switches=(("HINTS", 0),))),
    (260, 520, Plan(SHAPES[1], group=2, splits=1, grid=8, ahead=4, switches=(("LAG", 2),))),
]


# Two rows and two columns of blocks, each of which brings to both of its neighbours.
FOUR = replace(SHAPES[0], CLUSTER_M=2, CLUSTER_N=2)
OF_FOUR = [
    Plan(FOUR, group=1, splits=1, grid=4),
    Plan(FOUR, group=2, splits=1, grid=8, switches=(("LAG", 0), ("LATE", 0))),
]
ONE_TILE = [
    Plan(shape, group=1, splits=1, grid=1, switches=switches)
    for shape in (ALONE, SHAPES[0], SHAPES[1], SHAPES[2], FOUR)
    for switches in ((), (("LAG", 0), ("EARLY", 0), ("HINTS", 0)))
]


def name_of_plan(plan):
    if not isinstance(plan, Plan):
        return None
    return "-".join((f"{plan.shape.BM}x{plan.shape.BN}", *(f"{n}{v}" for n, v in plan.switches)))


@pytest.mark.parametrize(("M", "N", "K"), [(1, 8, 136), (321, 520, 328)])
@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan.shape.BM}x{plan.shape.BN}in{plan.splits}")
@pytest.mark.parametrize("kernel", BY_PLAN, ids=name_of)
def test_every_plan_is_right(run, kernel, plan, M, N, K):
    a, b = inputs(M, N, K)
    if (PLANS.index(plan) + BY_PLAN.index(kernel)) % 2:
        b = b.t().contiguous().t()  # as [N, K]

    assert error_of(run(partial(kernel.gemm, plan=plan), a, b), a, b) <= 2.0**-8


@pytest.mark.parametrize(("M", "N", "K"), [(1, 8, 136), (321, 520, 584)])
@pytest.mark.parametrize("plan", SWITCHED, ids=name_of_plan)
def test_every_switch_is_right(run, plan, M, N, K):
    a, b = inputs(M, N, K)
    if SWITCHED.index(plan) % 2:
        b = b.t().contiguous().t()  # as [N, K]

    assert error_of(run(partial(k14_tuned.gemm, plan=plan), a, b), a, b) <= 2.0**-8


@pytest.mark.parametrize(("M", "N", "K"), [(1, 8, 136), (321, 520, 584)])
@pytest.mark.parametrize("plan", OF_FOUR, ids=name_of_plan)
def test_a_cluster_of_four_is_right(run, plan, M, N, K):
    a, b = inputs(M, N, K)
    for laid in (b, b.t().contiguous().t()):
        assert error_of(run(partial(k14_tuned.gemm, plan=plan), a, laid), a, b) <= 2.0**-8


@pytest.mark.parametrize(("M", "N", "K"), [(1, 8, 136), (321, 520, 584)])
@pytest.mark.parametrize("plan", ONE_TILE, ids=lambda p: f"{name_of_plan(p)}, {p.shape.cluster}")
def test_a_tile_for_each_block_is_right(run, plan, M, N, K):
    a, b = inputs(M, N, K)
    if ONE_TILE.index(plan) // 2 % 2:
        b = b.t().contiguous().t()  # as [N, K]

    assert error_of(run(partial(one_wave.gemm, plan=plan), a, b), a, b) <= 2.0**-8


@pytest.mark.parametrize(("M", "N", "plan"), BEGUN, ids=name_of_plan)
def test_a_tile_that_another_has_begun_is_right(run, M, N, plan):
    a, b = inputs(M, N, 584)

    def twice(a, b):
        return [k14_tuned.gemm(a, b, plan=plan) for _ in range(2)]

    first, second = run(twice, a, b)
    (ready,) = launch_cache._READY.values()
    (room,) = ready._rooms.values()
    flags = plans.left_of(plan, M, N) * plan.shape.cluster * plan.shape.CONSUMERS

    assert error_of(first, a, b) <= 2.0**-8
    assert torch.equal(first, second)
    assert room[-flags:].view(torch.int32).eq(0).all()  # as it was found
    assert room[:-flags].ne(0).any()


def test_float16_goes_the_same_way(run):
    a, b = inputs(130, 264, 200, "float16")

    for kernel in (k08_roles, k14_tuned):
        assert error_of(run(kernel.gemm, a, b), a, b) <= 2.0**-11


def test_what_is_not_a_number_stays_where_it_is(run):
    a, b = inputs(130, 264, 72)
    a[129, 71], b[71, 263] = float("nan"), float("inf")  # beside what comes as zeros
    c = run(k14_tuned.gemm, a, b)

    assert c[129].isnan().all()
    assert not c[:129, 263].isfinite().any()
    assert c[:129, :263].isfinite().all()


# Where, what is changed, and what must be said; nothing where the answer is wrong.
FAULTS = {
    "k06: nobody waits for the bytes": (k06_tma, r"wait\(&full\[step % STAGES\], [^;]*;", "", ""),
    "k06: one barrier for all steps": (k06_tma, r"step / STAGES & 1\)", "0)", ""),
    "k06: a tile asked for while it is read": (
        k06_tma,
        r"__syncthreads\(\);          // and",
        "ask(step + STAGES); //",
        "",
    ),
    "k06: fewer bytes announced than come": (k06_tma, r"\(there, STAGE_BYTES\)", "(there, A_BYTES)", ""),
    "k07: both warpgroups on the same rows": (
        k07_wide,
        r"k_major\(a \+ warpgroup \* PANEL_BYTES\)",
        "k_major(a)",
        "",
    ),
    "k07: products read before they are done": (k07_wide, r"wgmma_wait<0>\(d\);", "", ""),
    "k08: a stage given back before it was read": (
        k08_roles,
        r"step > 0 && (threadIdx.x % 128 == 0\) arrive\(&empty\[\()step - 1",
        r"\1step",
        "",
    ),
    "k08: one consumer never gives back": (
        k08_roles,
        r"threadIdx.x % 128 == 0\) arrive",
        "threadIdx.x == 128) arrive",
        "wait",
    ),
    "k08: the producer waits for nobody": (k08_roles, r"wait\(&empty\[s\], [^;]*;", "", ""),
    "k10: every tile begins the ring anew": (
        k10_persistent,
        r"(region_)?for \(int step = 0; step < steps; step\+\+, at\+\+\) \{\n          const int s",
        r"at = 0; for (int step = 0; step < steps; step++, at++) {\n          const int s",
        "",
    ),
    "k11: both blocks ask for the same half": (
        k11_cluster,
        r"p = rank \* MINE; p < \(rank \+ 1\)",
        "p = 0; p < (0 + 1)",
        "",
    ),
    "k11: nobody tells the other block": (
        k11_cluster,
        r"thread < CLUSTER\)(.*?)arrive_remote_after_reading\((&empty[^,]*), thread\)",
        r"thread == 0)\1arrive(\2)",
        "wait",
    ),
    "k12: no fence before the panel leaves": (k12_stored, r"fence_async\(\);", "", ""),
    "k12: a panel written before it has left": (
        k12_stored,
        r"wait_until_read<C_PANELS - 1>",
        "wait_until_read<C_PANELS>",
        "",
    ),
    "k12: no swizzle": (k12_stored, r"swizzled\((row \* ROW_BYTES[^)]*)\)", r"(\1)", ""),
    "k13: parts overlap": (
        k13_by_size,
        r"steps \* \(split \+ 1\) / splits",
        "steps * (split + 1) / splits + 1",
        "",
    ),
    "k13: a tile twice, going back": (k13_by_size, r"tiles_n - 1 - column", "tiles_n - 2 - column", ""),
    "k14: the stage under way is given back": (
        k14_tuned,
        r"(step > part.begin\) give_back\(&empty\[\()at - 1",
        r"\1at",
        "",
    ),
    "k14: the last stage of a tile is kept": (k14_tuned, r"(finish\(d\);)\s+give_back[^;]*;", r"\1", "wait"),
    "k14: late: the sums are rounded before they are done": (
        k14_tuned,
        r"finish\(d\);(.*?)(last = part;)",
        r"\1 finish(d); \2",
        "",
    ),
    "k14: late: a panel written before it has left": (
        k14_tuned,
        r"wait_until_read<C_PANELS - 1>",
        "wait_until_read<C_PANELS>",
        "",
    ),
    "k14: late: the last tile stays": (k14_tuned, r"have \?", "false ?", ""),
    "k14: late: a panel in the other consumer's place": (
        k14_tuned,
        r"\(consumer \* STRIPS \+ p % STRIPS\)",
        "(p % STRIPS)",
        "",
    ),
    "k14: begun: the sums of the first steps are lost": (
        k14_tuned,
        r"if \(BEGUN && part\.begin > 0\)",
        "if (false)",
        "",
    ),
    "k14: begun: who goes on begins anew": (k14_tuned, r"part\.begin = ahead;", "part.begin = 0;", ""),
    "k14: begun: both consumers leave their sums in one place": (
        k14_tuned,
        r"<long long>\(place\)",
        "<long long>(place / 2 * 2)",
        "",
    ),
    "one tile: a place is filled again before it was read": (
        one_wave,
        r"wait\(&empty\[step % STAGES\], [^;]*;",
        "",
        "",
    ),
    "one tile: a place that is wanted again is kept": (
        one_wave,
        r"step - 1 \+ STAGES < steps",
        "step + STAGES < steps",
        "wait",
    ),
    "one tile: C goes out before it is there": (one_wave, r"fence_async\(\);", "", ""),
    "one tile: every warp carries the first one's rows": (
        one_wave,
        r"place \+ warp \* ROWS \* ROW_BYTES",
        "place",
        "",
    ),
    "one tile: both consumers by way of one place": (
        one_wave,
        r"stage \+ \(consumer \* STRIPS \+ p / WIDE\)",
        "stage + (p / WIDE)",
        "",
    ),
    "k14: lag: nobody tells the second": (
        k14_tuned,
        r"named_barrier_arrive\(BEHIND, 256\)",
        "(void)0",
        "wait",
    ),
}


def whole(source):
    """Its text, with the headers that are of kernels 13 and 14 alone in their place."""
    text = source.read_text()
    for header in ("stream_k.cuh", "by_size.cuh"):
        inside = source.with_name(header).read_text().replace("#pragma once", "")
        text = text.replace(f'#include "{header}"', inside)
    return text


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(run, fault):
    kernel, pattern, replacement, says = FAULTS[fault]
    text, count = re.subn(pattern, replacement, whole(kernel.SOURCE), flags=re.DOTALL)
    assert count >= 1
    ahead = 3 if "begun:" in fault else 0
    a, b = inputs(260 if kernel in BY_PLAN else 130, 520, 520)
    switches = tuple((name.upper(), 1) for name in ("late", "lag") if f"{name}:" in fault)
    plan = (
        {
            "plan": Plan(
                SHAPES[0],
                group=1,
                splits=1 + ("parts" in fault),
                grid=8 if ahead else 2,
                ahead=ahead,
                switches=switches,
            )
        }
        if kernel in BY_PLAN
        else {"plan": ONE_TILE[2]}
        if kernel is one_wave
        else {}
    )
    try:
        seen = "" if error_of(run(partial(kernel.gemm, **plan), a, b, text), a, b) <= 0.1 else "wrong"
    except RuntimeError as fault_seen:
        seen = str(fault_seen)

    assert seen
    assert says in seen


# --- the launchers ------------------------------------------------------------------------------------


def refused(run, error, line, function, a, b):
    with pytest.raises(error, match=re.escape(line)):
        run(function, a, b)


@pytest.mark.parametrize("kernel", [*RUNGS, *BY_PLAN], ids=name_of)
def test_what_is_refused(run, kernel):
    a = torch.zeros(8, 16, dtype=torch.bfloat16)
    b = torch.zeros(16, 24, dtype=torch.bfloat16)
    shifted = torch.zeros(8 * 16 + 1, dtype=torch.bfloat16)[1:].view(8, 16)

    assert kernel.supports(Workload.of("float16", M=1, N=8, K=16))
    for w in ({"M": 8, "N": 8, "K": 12}, {"M": 8, "N": 12, "K": 8}):
        assert not kernel.supports(Workload.of("bfloat16", **w))
    assert not kernel.supports(Workload.of("float32", M=8, N=8, K=8))
    for error, line, *wrong in (
        (TypeError, "a: expected bfloat16 or float16, got float32", a.float(), b.float()),
        (TypeError, "b: expected bfloat16, got float16", a, b.half()),
        (ValueError, "b: expected (K, N) with K=16, got (8, 24)", a, b[:8]),
        (ValueError, "a: expected contiguous (M, K), got strides (1, 8)", a.t().contiguous().t(), b),
        (
            ValueError,
            "K: expected a multiple of 8, for the copy engine, got 12",
            a[:, :12].contiguous(),
            b[:12],
        ),
        (ValueError, "N: expected a multiple of 8, for the copy engine, got 20", a, b[:, :20].contiguous()),
        (ValueError, "a: expected an address divisible by 16, got one 2 bytes past it", shifted, b),
        (ValueError, "a: expected (M, K) with no empty dimension, got (0, 16)", a[:0], b),
    ):
        refused(run, error, line, kernel.gemm, *wrong)


def test_a_transposed_b_is_refused_where_nobody_takes_it(run):
    a, b = inputs(8, 16, 24)
    b = b.t().contiguous().t()

    refused(run, ValueError, "b: expected contiguous (K, N), got strides (1, 24)", k12_stored.gemm, a, b)
    refused(
        run,
        ValueError,
        "b: expected contiguous (K, N)",
        k14_tuned.gemm,
        a,
        torch.zeros(24, 32, dtype=b.dtype)[:, ::2],
    )
    refused(
        run,
        ValueError,
        "b.t(): expected (N, K) with K=24, got (16, 16)",
        k14_tuned.gemm,
        a,
        b[:16].t().contiguous().t(),
    )


def test_more_parts_than_steps_are_refused(run):
    plan = Plan(SHAPES[0], group=1, splits=2, grid=2)

    refused(
        run,
        ValueError,
        "plan: expected 1 to 1 parts of K=64, got 2",
        partial(k14_tuned.gemm, plan=plan),
        *inputs(8, 8, 64),
    )


@pytest.mark.parametrize(
    ("kernel", "ahead", "grid", "line"),
    [
        (
            k14_tuned,
            10,
            8,
            "plan: ahead: expected 0, or fewer than the 10 steps where the last of several rounds is",
        ),
        (k14_tuned, -1, 8, "got -1 with 2 tiles left"),
        (k14_tuned, 3, 6, "got 3 with 0 tiles left"),  # two whole rounds
        (k14_tuned, 3, 12, "got 3 with 0 tiles left"),  # one
        (k13_by_size, 3, 8, "got 3 with 2 tiles left"),  # it cannot
    ],
)
def test_steps_ahead_that_cannot_be_are_refused(run, kernel, ahead, grid, line):
    plan = Plan(SHAPES[0], group=1, splits=1, grid=grid, ahead=ahead)

    refused(run, ValueError, line, partial(kernel.gemm, plan=plan), *inputs(321, 520, 584))


@pytest.mark.parametrize("N", [2048, 4096, 8192, 5000])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.BM}x{shape.BN}")
def test_steps_ahead_leave_nobody_much_longer_than_the_others(N, shape):
    clusters, steps = 132 // shape.cluster, -(-N // 64)
    plan = Plan(shape, 8, 1, clusters * shape.cluster)
    ahead, left = plans.ahead_of(plan, N, N, N), plans.left_of(plan, N, N)
    if not ahead:
        return
    begins = -(-left // (clusters - left))
    of_beginners = begins * (ahead * shape.clocks + plans.OF_SUMS)
    of_owners = (steps - ahead) * shape.clocks + plans.OF_SUMS + plans.OF_A_TILE

    assert 0 <= of_owners - of_beginners <= (begins + 1) * shape.clocks
    assert of_owners < steps * shape.clocks + plans.OF_A_TILE


def test_only_hopper_is_served(monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    by_tma.multiprocessors.cache_clear()
    for kernel in (k06_tma, k14_tuned):
        with pytest.raises(ValueError, match=re.escape("capability 9.0 (Hopper, for wgmma), got 8.0")):
            kernel.gemm(*inputs(8, 8, 8))


@pytest.mark.parametrize("M", [1, 64, 130, 1000, 4096, 20000])
@pytest.mark.parametrize("N", [8, 256, 1000, 8192])
@pytest.mark.parametrize("K", [8, 512, 4104, 65536])
def test_a_plan_fits_its_size_and_the_card(M, N, K):
    plan = plan_of(M, N, K, 132)
    shape = plan.shape
    tiles = -(-M // (shape.BM * shape.CLUSTER_M)) * -(-N // (shape.BN * shape.CLUSTER_N))

    assert plan is plan_of(M, N, K, 132)
    assert plan.grid % shape.cluster == 0
    assert 0 < plan.grid <= min(132, tiles * plan.splits * shape.cluster)
    assert 1 <= plan.splits <= -(-K // 64)
    assert plan.group >= 1
    assert shape.shared_bytes <= 227 * 1024


def test_large_sizes_take_large_tiles_and_few_tiles_are_shared():
    assert {plan_of(N, N, N, 132).shape.BM * plan_of(N, N, N, 132).shape.BN for N in (2048, 4096, 8192)} == {
        128 * 256
    }
    assert plan_of(4096, 4096, 4096, 132) == Plan(ALONE, group=16, splits=1, grid=128)
    assert plan_of(8192, 8192, 8192, 132) == Plan(SHAPES[0], group=8, splits=1, grid=128)
    assert plan_of(16384, 16384, 16384, 132).shape == SHAPES[0]
    assert plan_of(64, 512, 65536, 132).splits > 4


@pytest.mark.parametrize(
    ("tiles", "clusters", "taken"),
    [
        (1, 132, 1),
        (128, 132, 128),
        (132, 132, 132),
        (512, 132, 128),
        (2048, 132, 128),
        (448, 132, 132),
        (512, 66, 64),
    ],
)
def test_rounds_are_shared_out_evenly_where_that_takes_nearly_all(tiles, clusters, taken):
    assert plans.evenly(tiles, clusters) == taken
    assert -(-tiles // taken) == -(-tiles // clusters)  # nobody ends later


@pytest.mark.parametrize(("M", "splits", "alone"), [(256, 1, True), (300, 1, False), (256, 2, False)])
def test_who_multiplies_with_a_multiprocessor_for_every_tile(run, monkeypatch, M, splits, alone):
    """On a card of four; with a tile more, or where tiles are made in parts, it is the other body."""
    seen = []

    def told(module, name):
        function = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *how: (seen.append(name), function(*how))[1])

    for module in (k14_tuned, plans):
        monkeypatch.setattr(module, "plan_of", lambda *_: Plan(ALONE, group=1, splits=splits, grid=4))
    told(one_wave, "ready")
    told(k14_tuned, "ready_by_plan")
    a, b = inputs(M, 512, 200)

    assert error_of(run(k14_tuned.gemm, a, b), a, b) <= 2.0**-8
    assert seen == ["ready" if alone else "ready_by_plan"]


# --- machine code -------------------------------------------------------------------------------------

# Of a thread that multiplies: products of a step, and columns of each.
PRODUCTS = {"k06_tma": (8, 128), "k09_registers": (4, 256)}


def found(code, patterns):
    return [len(re.findall(rf"\b(?:{pattern})\b", code.text)) for pattern in patterns]


def counts(kernel, *patterns, **defines):
    """How often each pattern is among a kernel's instructions."""
    pytest.importorskip("cuda.core")
    return seen(found, kernel.SOURCE, "sm_90a", defines, patterns)


@pytest.mark.parametrize("kernel", [*RUNGS, *BY_PLAN], ids=name_of)
def test_a_rung_has_the_instructions_that_it_claims(kernel):
    name = name_of(kernel)
    products, columns = PRODUCTS.get(name, (4, 256))
    multiplied, loaded, spilled, sent_to_all, moved, stored, laid_out, fences, waits = counts(
        kernel,
        rf"HGMMA\.64x{columns}x16\.F32\.BF16 \S+, gdesc\[\S+\]\.tnspB",
        r"UTMALDG\.2D",
        r"LDL|STL",
        r"UTMALDG\.2D\.MULTICAST",
        "USETMAXREG",
        r"UTMASTG\.2D",
        "STSM",
        r"MEMBAR\.ALL\.GPU",
        r"WARPGROUP\.DEPBAR\.LE",
        # LATE unrolls the first steps of a tile: without it there is one loop to count in.
        **({"LATE": 0, "LAG": 0} if name == "k14_tuned" else {}),
    )

    assert multiplied == products
    assert loaded > 0
    assert spilled == 0
    assert (sent_to_all > 0) == (name >= "k11")
    assert (moved > 0) == (name >= "k09")
    assert (stored > 0) == (name >= "k12")
    assert (laid_out > 0) == (name >= "k12")
    # A cluster waits for its memory when it meets and when it parts, and not in every step.
    assert fences == (2 if name >= "k11" else 0)
    # Products go on from step to step: one wait in the loop, one behind it; else the compiler put some in.
    assert waits == 2


@pytest.mark.parametrize(
    "shape", [*SHAPES, ALONE], ids=lambda s: f"{s.BM}x{s.BN}, {s.CLUSTER_M}x{s.CLUSTER_N}"
)
@pytest.mark.parametrize(
    ("late", "lag", "begun", "transposed"),
    [(0, 0, 0, 1), (0, 0, 1, 0), (1, 0, 0, 0), (1, 0, 1, 0), (1, 1, 0, 1), (1, 1, 1, 1)],
)
def test_no_shape_spills(shape, late, lag, begun, transposed):
    spilled, multiplied, waits, told, turned = counts(
        k14_tuned,
        r"LDL|STL",
        "HGMMA",
        r"WARPGROUP\.DEPBAR\.LE",
        r"BAR\.ARV",
        "tnspB",
        **shape.defines,
        TRANSPOSED=transposed,
        LATE=late,
        LAG=lag,
        BEGUN=begun,
    )
    strips = shape.BM // 64 // shape.CONSUMERS
    panels = strips * shape.BN // 64

    assert spilled == 0
    # The first steps of a tile stand by themselves, a panel behind each; then the loop.
    assert multiplied == 4 * strips * (1 + late * panels)
    assert waits == 1 + strips + late * panels
    assert told == lag * (shape.CONSUMERS - 1) * (1 + late * panels)
    assert (turned > 0) != bool(transposed)


def test_wide_tiles_need_the_registers_and_one_consumer_spills():
    assert counts(k09_registers, r"LDL|STL", WIDE=1) == [0]
    assert counts(k09_registers, r"LDL|STL", CONSUMERS=1)[0] > 100
    assert any(stacks(compile_cubin(k09_registers.SOURCE, "sm_90a", {"CONSUMERS": 1})))


@pytest.mark.parametrize("function", [k09_registers.wide, k09_registers.one_consumer], ids=name_of)
def test_the_other_ways_of_kernel_9_are_right(run, function):
    a, b = inputs(260, 200, 328)

    assert error_of(run(function, a, b), a, b) <= 2.0**-8
