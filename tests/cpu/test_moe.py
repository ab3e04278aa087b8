"""A mixture of experts, interpreted: the truth against a model's layer, who goes where, every tile once, refusals."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl

from course_judge.worker.interpreter import watched_memory
from course_kernels.moe import k01_expert_by_expert, k02_sorted, k03_fused, library, route, tiles
from course_kernels.moe.arguments import MAX_TOP_K
from course_kernels.moe.problem import (
    BLOCKS,
    MAX_ERROR,
    PROBLEM,
    block,
    experts_hit,
    load_for,
    loads,
    plan,
    routed,
)
from course_kernels.problem import INF, NAN, Workload, worst_error
from course_models.config import Config
from course_models.model import Layer
from course_models.operators import PLAIN

pytestmark = pytest.mark.kept

KERNELS = {"k01": k01_expert_by_expert.moe, "k02": k02_sorted.moe, "k03": k03_fused.moe}
SMALL = tiles.Tile(16, 32, 16, warps=4, stages=3)  # what tests of the copy engine's way cut into


def workload(T, D, F, E, TOP_K, **more):
    """float16: the interpreter multiplies no bfloat16."""
    return Workload.of("float16", T=T, D=D, F=F, E=E, TOP_K=TOP_K, **more)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator().manual_seed(seed), "cpu")


def error(out, w, inputs):
    return worst_error(out, PROBLEM.reference(*inputs, **PROBLEM.options(w)))


SIZES = (
    workload(1, 2, 1, 1, 1),
    workload(1, 20, 9, 5, 2),
    workload(3, 33, 17, 4, 4),
    workload(17, 16, 12, 3, 2, SKEW=150),  # one expert has all tokens: two tiles, the second not full
    workload(3, 24, 8, 5, 2, one=True),  # three experts without a token
)
TWO_TILES, EMPTY = SIZES[3:]

# --- the truth --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("w", [SIZES[1], TWO_TILES, EMPTY], ids=lambda w: w.label)
def test_the_truth_is_the_block_of_a_model_s_layer_in_float64(w):
    x, router, gate_up, down = inputs_of(w)
    y = layer_of(w, router, gate_up, down, torch.float64)._experts(PLAIN, x.double()[None])[0]

    torch.testing.assert_close(PROBLEM.reference(x, router, gate_up, down, top_k=w.TOP_K), y)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_takes_the_place_of_a_model_s_block(kernel):
    w = TWO_TILES
    x, router, gate_up, down = inputs_of(w)
    y = layer_of(w, router, gate_up, down, torch.float16)._experts(PLAIN, x[None])[0]

    assert worst_error(KERNELS[kernel](x, router, gate_up, down, top_k=w.TOP_K), y) <= MAX_ERROR[w.dtype]


def layer_of(w, router, gate_up, down, dtype):
    """A layer of `course_models` whose experts are these."""
    config = Config(
        layers=1, width=w.D, heads=1, kv_heads=1, head_dim=2, hidden=w.F, vocab=8, experts=w.E,
        experts_per_token=w.TOP_K,
    )  # fmt: skip
    layer = Layer(config).to(dtype).requires_grad_(False)
    gate, up = gate_up.chunk(2, dim=1)
    for name, weight in {"router": router, "gate": gate, "up": up, "down": down}.items():
        getattr(layer, name).copy_(weight)
    return layer


# --- the inputs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("w", PROBLEM.check_on, ids=lambda w: w.label)
def test_tokens_go_where_the_plan_says_and_no_rounding_moves_one(w):
    x, router, *_ = inputs_of(w)
    who, _ = routed(x, router, w.TOP_K)

    assert sorted(torch.bincount(who.flatten(), minlength=w.E).tolist()) == sorted(loads(w))
    assert all(len(set(row)) == w.TOP_K for row in plan(w))
    rounded = (x.double() @ router.double().T).bfloat16()
    assert torch.equal(rounded.topk(w.TOP_K).indices.sort().values, who.sort().values)


def test_bytes_are_those_of_the_experts_that_have_a_token():
    D, F, E, TOP_K = BLOCKS["30B"]
    one = 3 * D * F * 2
    rest = {T: 2 * (T * D + E * D) for T in (1, 16)}

    assert PROBLEM.reads_bytes(block("30B", 1)) == TOP_K * one + rest[1]
    assert PROBLEM.reads_bytes(block("30B", 16, one=True)) == TOP_K * one + rest[16]
    assert PROBLEM.reads_bytes(block("30B", 16, SKEW=100)) == E * one + rest[16]
    assert TOP_K < experts_hit(block("30B", 16)) < E
    assert PROBLEM.flops(block("30B", 1)) == 2 * E * D + TOP_K * 6 * D * F


@pytest.mark.parametrize("skew", [100, 138, 165, 400, 1600])
@pytest.mark.parametrize(("T", "E", "TOP_K"), [(4096, 128, 8), (16, 128, 8), (1000, 60, 3), (1, 16, 1)])
def test_a_load_has_the_skew_that_it_is_asked_for(T, E, TOP_K, skew):
    load = load_for(T, T * TOP_K, E, skew)
    mean = T * TOP_K / E

    assert sum(load) == T * TOP_K
    assert max(load) <= T
    assert min(load) >= 0
    if mean >= 100 and skew <= 100 * E / TOP_K:
        assert max(load) / mean == pytest.approx(skew / 100, rel=0.05)
    if skew == 100:
        assert max(load) - min(load) <= 1


# --- the answer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("w", SIZES, ids=lambda w: w.label)
@pytest.mark.parametrize("kernel", KERNELS)
def test_any_size_is_right_and_nothing_is_touched_outside(kernel, w):
    inputs = inputs_of(w)
    with watched_memory() as memory:
        out = KERNELS[kernel](*inputs, top_k=w.TOP_K)

    assert memory.findings == []
    assert out.dtype is torch.float16
    assert error(out, w, inputs) <= MAX_ERROR[w.dtype]


@pytest.mark.parametrize("kernel", ["k02", "k03"])
def test_tiles_that_the_copy_engine_brings_are_right(kernel):
    """Tiles reach into the rows of the next expert, and from gate into up: F is no multiple of a tile."""
    w = workload(17, 24, 24, 3, 2, SKEW=150)
    inputs = inputs_of(w)

    assert error(KERNELS[kernel](*inputs, top_k=2, tile=SMALL), w, inputs) <= MAX_ERROR[w.dtype]


@pytest.mark.parametrize("kernel", ["k02", "k03"])
def test_the_order_of_programs_changes_no_bit(kernel):
    w = EMPTY
    inputs = inputs_of(w)
    expected = KERNELS[kernel](*inputs, top_k=w.TOP_K)
    with watched_memory(shuffle=1) as memory:
        out = KERNELS[kernel](*inputs, top_k=w.TOP_K)

    assert memory.findings == []
    assert torch.equal(out, expected)


def with_equals():
    """A workload and inputs with equal scores, on which the choice hangs, and tokens that have negative ones alone."""
    w = workload(4, 24, 8, 5, 2)
    x, router, gate_up, down = inputs_of(w)
    router, x = router.abs(), x.abs()
    router[[0, 2, 3]] = router[4].clone()  # four alike; the last but one is better or worse
    x[:2] = -x[:2]
    who, _ = routed(x, router, 2)
    assert {(0, 1), (0, 2)} >= set(map(tuple, who.sort().values.tolist()))
    return w, (x, router, gate_up, down)


@pytest.mark.parametrize("kernel", KERNELS)
def test_of_equal_scores_the_lower_expert_wins(kernel):
    w, inputs = with_equals()

    assert error(KERNELS[kernel](*inputs, top_k=2), w, inputs) <= MAX_ERROR[w.dtype]


def test_a_token_of_nan_spoils_no_other_and_goes_to_experts_that_there_are():
    w = workload(4, 24, 8, 4, 2)
    x, router, gate_up, down = inputs_of(w)
    for name, kernel in KERNELS.items():
        expected = kernel(x, router, gate_up, down, top_k=2)
        bad = x.clone()
        bad[1, 5], bad[3, 0] = NAN, -INF
        out = kernel(bad, router, gate_up, down, top_k=2)

        assert out[[1, 3]].isnan().all(), name
        others = [0, 2]
        torch.testing.assert_close(out[others], expected[others], rtol=2e-3, atol=2e-3, msg=name)


# --- who goes where ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("T", "E", "TOP_K"), [(1, 1, 1), (50, 6, 3)])
def test_choices_are_sorted_by_expert_and_stay_in_their_order(T, E, TOP_K):
    w = workload(T, 16, 1, E, TOP_K)
    x, router, *_ = inputs_of(w)
    to = route.route(x, router, TOP_K)
    who, weights = routed(x, router, TOP_K)
    expert, order = who.flatten().sort(stable=True)

    assert torch.equal(to.order.long(), order)
    assert torch.equal(to.order[to.place.long()].long(), torch.arange(T * TOP_K))
    assert torch.equal(to.starts.long(), torch.searchsorted(expert, torch.arange(E + 1)))
    torch.testing.assert_close(to.weights.double(), weights, rtol=1e-5, atol=1e-6)


def test_a_sort_that_takes_several_steps_is_the_same(monkeypatch):
    monkeypatch.setattr(route, "CHOICES", 128)
    test_choices_are_sorted_by_expert_and_stay_in_their_order(150, 5, 2)


@triton.jit
def key_kernel(scores, out, N: tl.constexpr):
    """What the scores are compared by."""
    at = tl.arange(0, N)
    tl.store(out + at, route.key_of(tl.load(scores + at)))


def test_keys_are_in_the_order_of_scores():
    scores = torch.tensor([-INF, -3e38, -1.5, -1e-45, -0.0, 0.0, 1e-45, 1.5, 3e38, INF, NAN, -NAN])
    out = torch.empty(16, dtype=torch.int32)
    key_kernel[(1,)](torch.cat([scores, torch.zeros(4)]), out, N=16)
    keys = out[:12].tolist()

    assert keys[4] == keys[5]
    assert keys[10] == keys[11]
    assert keys[:4] + keys[5:11] == sorted(set(keys))
    assert min(keys) > route.CHOSEN.value


@triton.jit
def tile_kernel(starts, out, E, ACROSS, E_PAD: tl.constexpr, BLOCK_M: tl.constexpr):
    """What a program finds, for a count."""
    program = tl.program_id(0)
    expert, begin, end, n = route.tile_of(program, starts, E, ACROSS, E_PAD, BLOCK_M)
    tl.store(out + program * 4, expert)
    tl.store(out + program * 4 + 1, begin)
    tl.store(out + program * 4 + 2, end)
    tl.store(out + program * 4 + 3, n)


LOADS = ([5], [0, 0, 40], [17, 0, 16, 1, 0], [16, 16], [0, 3, 0, 0, 33, 0], [1] * 7)


@pytest.mark.parametrize("load", LOADS, ids=str)
@pytest.mark.parametrize("across", [1, 3])
def test_every_tile_of_every_expert_has_one_program(load, across):
    E, BLOCK_M = len(load), 16
    starts = torch.tensor([0, *load]).cumsum(0).int()
    programs = tiles.most_tiles(sum(load), E, BLOCK_M) * across
    out = torch.full((programs, 4), -1, dtype=torch.int32)
    tile_kernel[(programs,)](starts, out, E, across, E_PAD=route.padded(E), BLOCK_M=BLOCK_M)
    found = [row for row in out.tolist() if row[0] < E]
    due = [
        [e, row, int(starts[e + 1]), n]
        for e in range(E)
        for n in range(across)
        for row in range(int(starts[e]), int(starts[e + 1]), BLOCK_M)
    ]

    assert found == due  # in this order: down the rows of an expert, then across
    assert all(row[0] == E for row in out.tolist()[len(due) :])


@pytest.mark.parametrize(("choices", "experts", "block_m"), [(7, 3, 2), (6, 4, 3), (3, 8, 16), (9, 2, 4)])
def test_no_load_has_more_tiles_than_the_grid_and_one_has_as_many(choices, experts, block_m):
    def every(left, more):
        if more == 1:
            yield (left,)
            return
        for first in range(left + 1):
            for rest in every(left - first, more - 1):
                yield (first, *rest)

    most = max(sum(-(-load // block_m) for load in every_load) for every_load in every(choices, experts))
    assert tiles.most_tiles(choices, experts, block_m) == most


@pytest.mark.parametrize(
    ("T", "rows"), [(1, 16), (16, 16), (128, 16), (129, 32), (256, 32), (512, 64), (513, 128), (4096, 128)]
)
def test_a_tile_is_twice_as_high_as_the_mean(T, rows):
    for tma in (True, False):
        assert tiles.tile_for(8 * T, 128, tma).block_m == rows


# --- planted faults ---------------------------------------------------------------------------------------

FAULTS = {
    "combine forgets the weight": (
        k02_sorted, "y += tl.load(weights_ptr + t * TOP_K + j) * answer", "y += answer"
    ),
    "combine takes the choices as they are sorted": (
        k02_sorted, "tl.load(place_ptr + t * TOP_K + j).to(tl.int64)", "t * TOP_K + j"
    ),
    "the rows are gathered by choice, not by token": (
        k02_sorted, "(tl.load(order_ptr + place) // TOP_K)", "(tl.load(order_ptr + place) % (TOP_K + 1))"
    ),
    "rows past an expert's end are stored": (k02_sorted, "mask=(rows < end)[:, None] & (col < N)", "mask=(col < N)"),
    "the weights of the first expert are everybody's": (k02_sorted, "at = (expert * N + row)", "at = row"),
    "silu is taken of up": (k02_sorted, "(gate / (1.0 + tl.exp(-gate)) * up)", "(up / (1.0 + tl.exp(-up)) * gate)"),
    "the weight is forgotten in the epilogue": (
        k03_fused, "acc *= tl.load(weights_ptr + choice, mask=rows < end, other=0.0)[:, None]", "acc *= 1.0"
    ),
    "the weight is that of the sorted place": (k03_fused, "weights_ptr + choice,", "weights_ptr + rows,"),
    "choices are taken for tokens": (k03_fused, "other=0) // TOP_K", "other=0) // (TOP_K + 1)"),
    "up begins where gate does": (k03_fused, "expert, F + f, k", "expert, f, k"),
    "columns past F are stored": (k03_fused, "[:, None] & (col < F)[None, :]", "[:, None] & (col < 2 * F)[None, :]"),
    "the last answer is left out of the sum": (k03_fused, "tl.static_range(TOP_K)", "tl.static_range(TOP_K - 1)"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_planted_in_a_kernel_is_seen(fault, tmp_path):
    assert is_seen(planted(tmp_path, *FAULTS[fault]), workload(3, 24, 12, 3, 2))


ROUTE_FAULTS = {
    "of equals the higher wins": ("tl.min(tl.where(keys == most[:, None], e, E_PAD), axis=1)",
                                  "tl.max(tl.where(keys == most[:, None], e, -1), axis=1)"),
    "nobody is taken out once chosen": ("keys = tl.where(it, CHOSEN, keys)", "keys = keys"),
    "experts that are not there have scores": ("keys = tl.where(e < E, key_of(scores), CHOSEN)",
                                               "keys = key_of(scores)"),
    "negative scores are in the wrong order": ("bits ^ ((bits >> 31) & 0x7FFFFFFF)", "bits"),
    "the softmax is of one": ("weights / tl.sum(weights, axis=1)[:, None]", "weights"),
    "an expert begins where it ends": ("lower += (who < expert)", "lower += (who <= expert)"),
}  # fmt: skip


@pytest.mark.parametrize("fault", ROUTE_FAULTS)
def test_a_fault_planted_in_the_routing_is_seen(fault, tmp_path, monkeypatch):
    module = planted(tmp_path, route, *ROUTE_FAULTS[fault])
    monkeypatch.setattr(k03_fused, "route", module.route)

    assert is_seen(k03_fused, *with_equals())


TILE_FAULTS = {
    "an empty expert hides the next": (
        "expert = tl.sum(((ends <= program)",
        "expert = tl.sum(((ends < program)",
    ),
    "the tiles of the experts before count": ("(program - before) % high", "program % high"),
    "across, then down": ("(program - before) // high", "(program - before) % ACROSS"),
    "an expert ends where its last tile does": ("begin + mine,", "begin + high * BLOCK_M,"),
}


@pytest.mark.parametrize("fault", TILE_FAULTS)
def test_a_fault_planted_in_the_tiles_is_seen(fault, tmp_path, monkeypatch):
    monkeypatch.setattr(route, "tile_of", planted(tmp_path, route, *TILE_FAULTS[fault]).tile_of)
    with pytest.raises(AssertionError):
        test_every_tile_of_every_expert_has_one_program([17, 0, 40, 1, 0], 2)


def is_seen(module, w, inputs=None):
    """Whether a kernel's answer is refused, or what it did to memory."""
    inputs = inputs or inputs_of(w)
    with watched_memory(shuffle=0) as memory:  # what is outside is left alone
        out = module.moe(*inputs, top_k=w.TOP_K)
    return bool(memory.findings) or not error(out, w, inputs) <= MAX_ERROR[w.dtype]


def test_no_fault_is_seen_where_none_is():
    assert not is_seen(k02_sorted, workload(3, 24, 12, 3, 2))
    assert not is_seen(k03_fused, *with_equals())


def planted(folder, module, right, wrong):
    """A module with another text; Triton reads the source from a file."""
    text = Path(module.__file__).read_text(encoding="utf-8")
    assert text.count(right) == 1, text.count(right)
    path = folder / "planted.py"
    path.write_text(text.replace(right, wrong), encoding="utf-8")
    spec = spec_from_file_location("planted", path)
    changed = module_from_spec(spec)
    spec.loader.exec_module(changed)
    return changed


# --- the peer, and what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [{}, {"one": True}])
def test_torch_s_grouped_multiply_is_right(flags):
    w = Workload.of("bfloat16", T=21, D=64, F=40, E=6, TOP_K=2, **flags)
    inputs = inputs_of(w)

    assert error(library.grouped_mm(*inputs, top_k=2), w, inputs) <= MAX_ERROR[w.dtype]
    assert library.supports(w)
    assert not any(map(library.supports, (EMPTY, Workload.of("bfloat16", **w.dims | {"F": 41}))))


def refused(**other):
    x, router, gate_up, down = inputs_of(workload(3, 8, 4, 40, 2))
    return {"x": x, "router": router, "gate_up": gate_up, "down": down, "top_k": 2} | other


REFUSED = [
    ({"x": torch.zeros(3, 8)}, TypeError, "x: expected bfloat16 or float16, got float32"),
    ({"router": torch.zeros(40, 8).bfloat16()}, TypeError, "router: expected float16, got bfloat16"),
    ({"router": torch.zeros(40, 9).half()}, ValueError, "router: expected (E, D) with D=8, got (40, 9)"),
    ({"down": torch.zeros(40, 8, 5).half()}, ValueError,
     "gate_up: expected (E, 2 F, D) with F=5, that of down, got (40, 8, 8)"),
    ({"gate_up": torch.zeros(40, 8, 16).half()[:, :, ::2]}, ValueError,
     "gate_up: expected contiguous (E, N, D), got strides"),
    ({"top_k": 2.0}, TypeError, "top_k: expected a whole number, got 2.0"),
    ({"top_k": True}, TypeError, "top_k: expected a whole number, got True"),
    ({"top_k": 0}, ValueError, f"top_k: expected 1 to {MAX_TOP_K}, got 0"),
    ({"top_k": 33}, ValueError, f"top_k: expected 1 to {MAX_TOP_K}, got 33"),
]  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("other", "kind", "line"), REFUSED, ids=[line for *_, line in REFUSED])
def test_what_a_kernel_does_not_take_is_one_line(kernel, other, kind, line):
    with pytest.raises(kind, match=f"^{re.escape(line)}"):
        KERNELS[kernel](**refused(**other))
