"""Decode linear, kernel 2: right without a card, in any cut; planted faults; refusals; machine code."""

import re
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from hopper_on_cpu import prepare_in, tensor_map

from course_kernels.cuda.compile import compile_cubin
from course_kernels.cuda.disassemble import sass
from course_kernels.decode_linear import by_tma, k01_stream, k02_even
from course_kernels.decode_linear.arguments import ADD, GATE, NOTHING, ROPE, Turned
from course_kernels.decode_linear.by_tma import Kind
from course_kernels.decode_linear.problem import PROBLEM, flags_of
from course_kernels.problem import Workload, worst_error
from course_kernels.qkv_rope.problem import PROBLEM as QKV

pytestmark = pytest.mark.kept

KINDS = ({}, {"norm": True}, {"add": True}, {"norm": True, "gated": True})
# Parts of tiles at the begin and at the end of a block, and a ring that comes round.
PLAN = k02_even.Plan(4, 2)


def inputs_of(M, N, K, **kind):
    w = Workload.of("float16", M=M, N=N, K=K, **kind)
    return w, PROBLEM.make_inputs(w, torch.Generator().manual_seed(0), "cpu")


def error(out, w, inputs):
    return worst_error(out, PROBLEM.reference(*inputs, **flags_of(w))) / PROBLEM.max_error(w)


@pytest.fixture(scope="module")
def on_the_cpu(tmp_path_factory):
    """on_the_cpu(text): a patch by which the launcher runs here; new memory is full of NaN."""
    made = {}

    def patched(text=None):
        def prepare(path, name, **how):
            key = name, text, str(sorted(how.items(), key=str))
            if key not in made:
                made[key] = prepare_in(tmp_path_factory.mktemp(name))(path, name, text=text, **how)
            return made[key]

        patch = pytest.MonkeyPatch()
        patch.setattr(k02_even, "prepare", prepare)
        patch.setattr(by_tma, "tensor_map", tensor_map)
        patch.setenv("TRITON_INTERPRET", "1")  # tensors on the CPU are welcome
        patch.setattr(torch.cuda, "get_device_properties", lambda d: SimpleNamespace(multi_processor_count=3))
        patch.setattr(
            torch,
            "empty",
            lambda size, **how: torch.full(size if isinstance(size, tuple) else (size,), torch.nan, **how),
        )
        forget()
        return patch

    yield patched
    forget()


def forget():
    for kept in vars(k02_even).values():
        getattr(kept, "cache_clear", lambda: None)()


def run(on_the_cpu, w, inputs, text=None, **how):
    patch = on_the_cpu(text)
    try:
        return k02_even.decode_linear(*inputs, **flags_of(w), **how)
    finally:
        patch.undo()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(kind) or "plain")
def test_it_is_right_and_the_same_every_time(on_the_cpu, kind):
    w, inputs = inputs_of(
        3, 144, 320, **kind
    )  # a tile that is whole, and one that has 16 rows, gated two of 64
    first = run(on_the_cpu, w, inputs, plan=PLAN)

    assert error(first, w, inputs) < 1
    assert torch.equal(run(on_the_cpu, w, inputs, plan=PLAN), first)


def test_32_rows_in_its_own_plan_are_right(on_the_cpu):
    w, inputs = inputs_of(29, 80, 192, norm=True, gated=True)

    assert error(run(on_the_cpu, w, inputs), w, inputs) < 1


def test_the_tickets_are_zero_again(on_the_cpu):
    w, inputs = inputs_of(3, 144, 320, add=True)
    tickets = torch.zeros(k02_even.tickets_for(144), dtype=torch.int32)
    assert error(run(on_the_cpu, w, inputs, plan=PLAN, tickets=tickets), w, inputs) < 1
    assert not tickets.any()


@pytest.mark.parametrize(("B", "H", "KV", "D"), [(1, 2, 1, 64), (3, 4, 2, 128)])
def test_queries_keys_and_values_find_their_places(on_the_cpu, B, H, KV, D):
    w = Workload.of("float16", B=B, H=H, KV=KV, D=D, W=192, P=11)
    x, g, weights, positions, cos, sin = QKV.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
    due = QKV.reference(x, g, weights, positions, cos, sin, kv_heads=KV)
    room = 9  # fewer than positions: who is past the end writes nothing
    caches = [torch.full((B, KV, room, D), 7.0, dtype=torch.float16) for _ in range(2)]
    at = positions.long()
    patch = on_the_cpu()
    try:
        parts = weights.split([H * D, KV * D, KV * D])
        q = k02_even.start(x, parts, ROPE, g=g, turned=Turned(cos[at], sin[at], at, *caches))
    finally:
        patch.undo()

    assert worst_error(q, due[0], rows_apart=True) < QKV.max_error(w)
    for cache, right in zip(caches, due[1:], strict=True):
        for b, position in enumerate(at.tolist()):
            assert (cache[b][:, torch.arange(room) != position] == 7).all()
            if position < room:
                assert worst_error(cache[b, :, position], right[b]) < QKV.max_error(w)


FAULTS = {
    "the squares of one part": (
        "if (NORM) square[i] += __ldcg(",
        "if (NORM && block == from) square[i] += __ldcg(",
    ),
    "the first part's place": ("(turn > 0)", "0"),
    "nobody waits for the numbers to be weighed": ("if (NORM) wait(&weighed[s], parity);", ""),
    "a place is free too early": (
        "barrier_init(&empty[s], MULTIPLYING / 32);",
        "barrier_init(&empty[s], 1);",
    ),
    "gate and up change places": ("* low)) * high);", "* high)) * low);"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(on_the_cpu, fault):
    right, wrong = FAULTS[fault]
    text = k02_even.SOURCE.read_text()
    for name in ("tma_tiles.cuh", "epilogue.cuh"):
        text = text.replace(f'#include "{name}"', k02_even.SOURCE.with_name(name).read_text())
    assert text.count(right) == 1
    w, inputs = inputs_of(3, 144, 320, norm=True, gated=True)
    try:
        out = run(on_the_cpu, w, inputs, text=text.replace(right, wrong), plan=PLAN)
    except RuntimeError:
        return
    assert not error(out, w, inputs) < 1


@pytest.mark.parametrize(
    ("tiles", "pieces", "even"),
    [
        (48, 64, (132, 12)),  # queries, keys and values
        (32, 64, (128, 12)),  # attention's output: a cut that falls on the tiles' own edges
        (224, 64, (132, 12)),  # gate and up
        (32, 224, (128, 12)),  # down
        (1002, 64, (132, 12)),  # the head
        (1, 1, (1, 12)),
    ],
)
def test_how_an_h200_shares_out_the_work(tiles, pieces, even):
    assert k02_even.plan_of(tiles, pieces, 16, 132) == even
    for rows in (16, 32):
        assert k02_even.shared_bytes_of(rows, k02_even.plan_of(tiles, pieces, rows, 132).stages) <= 226 * 1024


@pytest.mark.parametrize("behind", [ADD, GATE, ROPE])
def test_weights_are_asked_for_early_and_nothing_is_kept_in_memory(behind):
    pytest.importorskip("cuda.core")
    kind = Kind(False, 32, behind != ADD, behind, 128)
    text = sass(compile_cubin(k02_even.SOURCE, "sm_90a", kind.defines(10)))
    names = re.findall(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z]\w*)", text, re.M)

    assert names.count("HGMMA") == 4
    # Of the two warps that wait for the last grid, the one that fetches has asked for weights before.
    last_wait = max(i for i, name in enumerate(names) if name == "ACQBULK")
    first_wait = names.index("ACQBULK")
    early = [names[:wait].count("UTMALDG") for wait in (first_wait, last_wait)]
    assert any(0 < n < names.count("UTMALDG") for n in early)
    assert "STL" not in names


REFUSED = [
    (lambda k, x, w: k.decode_linear(x.float(), w), TypeError, "x: expected bfloat16 or float16, got float32"),
    (lambda k, x, w: k.decode_linear(x.repeat(17, 1), w), ValueError, "x: expected M <= 32, got M=34"),
    (lambda k, x, w: k.decode_linear(x, w, norm=True), ValueError, "rest: expected 1 tensors, got 0"),
    (lambda k, x, w: k.decode_linear(x, w, x, add=True, gated=True), ValueError, "add, gated: expected at most"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "says"), REFUSED, ids=[says for _, _, says in REFUSED])
def test_what_is_refused(monkeypatch, call, kind, says):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    _, (x, w) = inputs_of(2, 48, 128)
    with pytest.raises(kind, match=re.escape(says)):
        call(k02_even, x, w)


def turned(**change):
    """A call of ROPE: x, the weights and what turns them, two heads of 64 for one of the cache."""
    M, K, D, N = 2, 128, 64, 8
    angles, cache = torch.zeros(M, D // 2), torch.zeros(M, 1, N, D).half()
    given = {
        "query": torch.zeros(2 * D, K).half(),
        "key": torch.zeros(D, K).half(),
        "value": torch.zeros(D, K).half(),
        "cos": angles,
        "sin": angles,
        "position": torch.zeros(M, dtype=torch.int64),
        "k_cache": cache,
        "v_cache": cache,
    } | change
    weights = tuple(given.pop(name) for name in ("query", "key", "value"))
    return torch.zeros(M, K).half(), weights, ROPE, Turned(**given)


NOT_TURNED = [
    ({"v_cache": torch.zeros(2, 1, 9, 64).half()}, ValueError, "v_cache: expected (M, KV, N, D) with N=8"),
    ({"v_cache": torch.zeros(2, 1, 8, 64)}, TypeError, "v_cache: expected float16, got float32"),
    ({"k_cache": torch.zeros(3, 1, 8, 64).half()}, ValueError, "k_cache: expected (M, KV, N, D) with M=2"),
    (
        {"k_cache": torch.zeros(2, 1, 8, 96).half(), "v_cache": torch.zeros(2, 1, 8, 96).half()},
        ValueError,
        "k_cache: expected D = 64 or 128, got D=96",
    ),
    ({"cos": torch.zeros(2, 64)}, ValueError, "cos: expected (M, D/2) with D/2=32"),
    ({"sin": torch.zeros(2, 32).half()}, TypeError, "sin: expected float32, got float16"),
    ({"position": torch.zeros(2).int()}, TypeError, "position: expected int64, got int32"),
    ({"query": torch.zeros(96, 128).half()}, ValueError, "query: expected whole heads of D=64, KV=1, got 96 rows"),
    ({"value": torch.zeros(128, 128).half()}, ValueError, "value: expected whole heads of D=64, KV=1, got 128 rows"),
    ({"key": torch.zeros(64, 64).half()}, ValueError, "w: expected (N, K) with K=128"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "kind", "says"), NOT_TURNED, ids=[says for _, _, says in NOT_TURNED])
@pytest.mark.parametrize("kernel", [k01_stream, k02_even])
def test_what_is_refused_before_it_is_turned(monkeypatch, kernel, change, kind, says):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    x, weights, behind, where = turned(**change)
    with pytest.raises(kind, match=re.escape(says)):
        kernel.start(x, weights, behind, turned=where)


@pytest.mark.parametrize("behind", [NOTHING, ADD, GATE, ROPE])
@pytest.mark.parametrize("kernel", [k01_stream, k02_even])
def test_what_stands_behind_says_what_is_given(monkeypatch, kernel, behind):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    x, (query, *_), _, where = turned()
    r = torch.zeros(2, 128).half()
    few = {NOTHING: (query, query), ADD: (query,), GATE: (query,), ROPE: (query, query)}[behind]
    with pytest.raises(ValueError, match="weights, r, turned: expected those of what stands behind"):
        kernel.start(x, few, behind, turned=where if behind == ROPE else None)
    with pytest.raises(ValueError, match="y: expected "):
        kernel.start(x, (query,), ADD, r=r, y=r[:, :64].contiguous())


def test_too_few_tickets_are_refused(monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    _, (x, w) = inputs_of(2, 144, 128)
    call = partial(k02_even.start, x, (w,), NOTHING, tickets=torch.zeros(1, dtype=torch.int32))
    with pytest.raises(ValueError, match=re.escape("tickets: expected (T,) with T >= 2, got (1,)")):
        call()
