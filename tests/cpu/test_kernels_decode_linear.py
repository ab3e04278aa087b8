"""A linear layer of a step and what stands around it: right without a card, in any cut; refusals; machine code."""

import re
from types import SimpleNamespace

import pytest
import torch
from compiled import seen
from hopper_on_cpu import prepare_in

from course_kernels.decode_linear import k01_stream, library
from course_kernels.decode_linear import problem as contract
from course_kernels.decode_linear.arguments import ADD, GATE, NOTHING, ROPE, Turned
from course_kernels.decode_linear.k01_stream import ROOM, Cut, cut_of, defines_of
from course_kernels.decode_linear.problem import EPSILON, PROBLEM, flags_of
from course_kernels.problem import Workload, worst_error
from course_kernels.qkv_rope.problem import PROBLEM as QKV

pytestmark = pytest.mark.kept

KINDS = ({}, {"norm": True}, {"add": True}, {"norm": True, "gated": True})


def inputs_of(M, N, K, dtype="float16", seed=0, **kind):
    w = Workload.of(dtype, M=M, N=N, K=K, **kind)
    return w, PROBLEM.make_inputs(w, torch.Generator().manual_seed(seed), "cpu")


def error(out, w, inputs):
    return worst_error(out, PROBLEM.reference(*inputs, **flags_of(w))) / PROBLEM.max_error(w)


@pytest.fixture(scope="module")
def on_the_cpu(tmp_path_factory):
    """with on_the_cpu(text=…): launchers run here, on a card of three multiprocessors; new memory is full of NaN."""
    made = {}

    def patched(text=None):
        def prepare(path, name, **how):
            key = text, str(sorted(how.items(), key=str))
            if key not in made:
                made[key] = prepare_in(tmp_path_factory.mktemp(name))(path, name, text=text, **how)
            return made[key]

        for kept in (k01_stream._cut, k01_stream._prepared):
            kept.cache_clear()
        patch = pytest.MonkeyPatch()
        patch.setattr(k01_stream, "prepare", prepare)
        patch.setenv("TRITON_INTERPRET", "1")  # tensors on the CPU are welcome
        patch.setattr(torch.cuda, "get_device_properties", lambda d: SimpleNamespace(multi_processor_count=3))
        patch.setattr(
            torch,
            "empty",
            lambda size, **how: torch.full(size if isinstance(size, tuple) else (size,), torch.nan, **how),
        )
        return patch

    yield patched
    for kept in (k01_stream._cut, k01_stream._prepared):
        kept.cache_clear()


def run(on_the_cpu, w, inputs, text=None, **how):
    patch = on_the_cpu(text)
    try:
        return k01_stream.decode_linear(*inputs, **flags_of(w), **how)
    finally:
        patch.undo()


# A piece and many, one that is missing at the end, rows of x in one, two and four eights, K in several blocks.
SIZES = [(1, 16, 64), (3, 80, 192), (9, 48, 320), (2, 32, 4224), (29, 48, 2112)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(kind) or "plain")
@pytest.mark.parametrize(("M", "N", "K"), SIZES)
def test_it_is_right(on_the_cpu, M, N, K, kind):
    w, inputs = inputs_of(M, N, K, **kind)

    assert error(run(on_the_cpu, w, inputs), w, inputs) < 1


def test_it_is_right_in_bfloat16(on_the_cpu):
    w, inputs = inputs_of(9, 48, 320, "bfloat16", norm=True, gated=True)

    assert error(run(on_the_cpu, w, inputs), w, inputs) < 1


@pytest.mark.parametrize(
    "cut",
    [Cut(1, 1, 4, 2, 4, 1), Cut(2, 2, 2, 3, 4, 1), Cut(3, 4, 1, 1, 4, 1), Cut(2, 7, 2, 5, 1, 2)],
    ids=lambda cut: "-".join(map(str, cut)),
)
@pytest.mark.parametrize("kind", KINDS[1:3], ids=["norm", "add"])
def test_any_cut_is_right_and_leaves_the_tickets_at_zero(on_the_cpu, cut, kind):
    w, inputs = inputs_of(11, 80, 832, **kind)  # thirteen pieces: one is missing at the end
    tickets = torch.zeros(5 * 2, dtype=torch.int32)
    first = run(on_the_cpu, w, inputs, cut=cut, tickets=tickets)

    assert error(first, w, inputs) < 1
    assert not tickets.any()
    assert torch.equal(run(on_the_cpu, w, inputs, cut=cut, tickets=tickets), first)


def test_a_sum_may_take_the_place_of_the_residual(on_the_cpu):
    w, (x, weights, r) = inputs_of(3, 80, 192, add=True)
    due = PROBLEM.reference(x, weights, r, add=True)
    patch = on_the_cpu()
    try:
        assert k01_stream.start(x, (weights,), ADD, r=r, y=r) is r
    finally:
        patch.undo()
    assert worst_error(r, due) < PROBLEM.max_error(w)


@pytest.mark.parametrize(("B", "H", "KV", "D"), [(1, 2, 1, 64), (3, 4, 2, 128), (9, 2, 2, 64)])
def test_queries_keys_and_values_find_their_places(on_the_cpu, B, H, KV, D):
    w = Workload.of("float16", B=B, H=H, KV=KV, D=D, W=192, P=11)
    x, g, weights, positions, cos, sin = QKV.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
    q_due, k_due, v_due = QKV.reference(x, g, weights, positions, cos, sin, kv_heads=KV)
    parts = weights.split([H * D, KV * D, KV * D])
    room = 9  # fewer than positions: who is past the end writes nothing
    caches = [torch.full((B, KV, room, D), 7.0, dtype=torch.float16) for _ in range(2)]
    at = positions.long()
    patch = on_the_cpu()
    try:
        q = k01_stream.start(x, parts, ROPE, g=g, turned=Turned(cos[at], sin[at], at, *caches))
    finally:
        patch.undo()

    assert worst_error(q, q_due, rows_apart=True) < QKV.max_error(w)
    for cache, due in zip(caches, (k_due, v_due), strict=True):
        for b, position in enumerate(at.tolist()):
            others = torch.arange(room) != position
            assert (cache[b][:, others] == 7).all()
            if position < room:
                assert worst_error(cache[b, :, position], due[b]) < QKV.max_error(w)


# Each must be seen in one of two runs: K in one block, and in several.
FAULTS = {
    "a multiply takes the next columns of x": ("[eight][2 * j]);", "[eight][2 * j ^ 2]);"),
    "rows of the weights change places": ("{low.x, high.x, low.y, high.y}", "{high.x, low.x, high.y, low.y}"),
    "nobody waits for a copy": ("wait_for_all_but<STAGES - 1>();", ""),
    "one copy too many may be missing": ("wait_for_all_but<STAGES - 1>();", "wait_for_all_but<STAGES>();"),
    "sums are read before they are there": ("    __syncthreads();  // the sums", "    //"),
    "both sides are one": ("side ^= 1;", ""),
    "pieces past the end": ("mine = max(min(HELD, pieces - begin), 0)", "mine = HELD"),
    "parts lie on those of another tile": ("(tile) * splits * EIGHTS + e)", "(tile) * EIGHTS + e)"),
    "one part too few": ("split < splits; split++", "split < splits - 1; split++"),
    "the squares of one part": (
        "if (NORM) squares[0] += __ldcg(",
        "if (NORM && !split) squares[0] += __ldcg(",
    ),
    "half of a row's squares": ("squares += __shfl_xor_sync(0xffffffffu, squares, 2);", ""),
    "x before the last grid has ended": ("  wait_for_last_grid();\n", ""),
    "no weight for x": ("a * unpacked<Type>(by[j], false)", "a"),
    "gate and up change places": ("* low)) * high", "* high)) * low"),
}


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if "grid" not in fault])
def test_a_planted_fault_is_seen(on_the_cpu, fault):
    right, wrong = FAULTS[fault]
    behind = k01_stream.SOURCE.with_name("epilogue.cuh").read_text()
    text = k01_stream.SOURCE.read_text().replace('#include "epilogue.cuh"', behind)
    assert text.count(right) == 1
    w, inputs = inputs_of(9, 80, 832, norm=True, gated=True)
    seen = False
    for cut in (Cut(1, 1, 4, 2, 4, 1), Cut(2, 2, 2, 2, 4, 1)):
        try:
            seen |= (
                not error(run(on_the_cpu, w, inputs, text=text.replace(right, wrong), cut=cut), w, inputs) < 1
            )
        except RuntimeError:
            seen = True
    assert seen


@pytest.mark.parametrize(
    ("tiles", "K", "eights", "cut"),
    [
        (256, 4096, 1, (132, 1, 8, 12)),
        (1792, 4096, 2, (132, 1, 16, 5)),
        (8016, 4096, 4, (66, 2, 16, 4)),
        (256, 14336, 1, (33, 4, 7, 14)),
        (256, 14336, 4, (16, 8, 14, 4)),
        (1, 64, 1, (1, 1, 1, 16)),
    ],
)
def test_how_an_h200_shares_out_the_work(tiles, K, eights, cut):
    room = ROOM[eights]
    found = cut_of(tiles, K, room, 132)

    assert found[:4] == cut
    assert found.blocks * found.splits <= 132
    share = found.warps * found.held * k01_stream.PIECE
    assert (found.splits - 1) * share < K <= found.splits * share
    shared = found.warps * (found.stages * k01_stream.STAGE_BYTES + 2 * eights * 512)
    assert shared * room.resident <= 226 * 1024


def loop_of(code):
    """Copies asked for before the last grid has ended; of the loop, the multiplies and what is spilled."""
    names = re.findall(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z]\w*)", code.text, re.M)
    waits, first = names.index("ACQBULK"), names.index("HMMA")
    copies = [i for i, name in enumerate(names) if name == "LDGSTS"]
    loop = names[first : max(copies)]
    return sum(i < waits for i in copies), loop.count("HMMA"), loop.count("STL")


@pytest.mark.parametrize("eights", ROOM)
@pytest.mark.parametrize("behind", [NOTHING, ADD, GATE, ROPE])
def test_nothing_of_the_loop_is_kept_in_memory(eights, behind):
    """The first weights are asked for before the last grid has ended, and the loop that multiplies spills nothing."""
    pytest.importorskip("cuda.core")
    block = cut_of(1792, 4096, ROOM[eights], 132)[2:]
    norm = behind != ADD
    defines = defines_of(False, eights, block, norm, behind, 128)
    early, multiplies, spilled = seen(loop_of, k01_stream.SOURCE, "sm_90a", defines)
    assert early == 4 * block[1]
    assert multiplies == 4 * block[2] * eights
    assert spilled == 0


def test_what_torch_offers_is_right():
    for kind in KINDS:
        w, inputs = inputs_of(3, 80, 192, **kind)
        assert error(library.eager(*inputs, **flags_of(w)), w, inputs) < 1


def test_the_truth_goes_in_strips(monkeypatch):
    monkeypatch.setattr(contract, "ROWS_AT_ONCE", 64)
    _, (x, weights) = inputs_of(2, 96, 128)

    torch.testing.assert_close(PROBLEM.reference(x, weights), x.double() @ weights.double().t())


def test_a_small_row_meets_epsilon():
    x = torch.full((1, 64), 2.0**-12)
    due = x.double() / (x.double().square().mean() + EPSILON).sqrt()

    torch.testing.assert_close(
        PROBLEM.reference(x, torch.eye(64), torch.ones(64), norm=True), due, rtol=1e-12, atol=0
    )


REFUSED = [
    (
        lambda x, w: k01_stream.decode_linear(x.float(), w),
        TypeError,
        "x: expected bfloat16 or float16, got float32",
    ),
    (
        lambda x, w: k01_stream.decode_linear(x, w[:24]),
        ValueError,
        "w: expected N a multiple of 16, got N=24",
    ),
    (
        lambda x, w: k01_stream.decode_linear(x[:, :96].contiguous(), w[:, :96].contiguous()),
        ValueError,
        "x: expected K a multiple of 64, got K=96",
    ),
    (
        lambda x, w: k01_stream.decode_linear(x.repeat(17, 1), w),
        ValueError,
        "x: expected M <= 32, got M=34",
    ),
    (
        lambda x, w: k01_stream.decode_linear(x, w, cut=Cut(1, 1, 1, 1, 1, 1)),
        ValueError,
        "cut: expected one whose warps hold K=128 together, got Cut(blocks=1",
    ),
    (lambda x, w: k01_stream.decode_linear(x, w, norm=True), ValueError, "rest: expected 1 tensors, got 0"),
    (
        lambda x, w: k01_stream.decode_linear(x, w, x, add=True, gated=True),
        ValueError,
        "add, gated: expected at most one of them",
    ),
    (
        lambda x, w: k01_stream.decode_linear(x, w, x[:, :64].contiguous(), norm=True),
        ValueError,
        "g: expected (K), got (2, 64)",
    ),
]


@pytest.mark.parametrize(("call", "kind", "says"), REFUSED, ids=[says for _, _, says in REFUSED])
def test_what_is_refused(monkeypatch, call, kind, says):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    _, (x, w) = inputs_of(2, 48, 128)
    with pytest.raises(kind) as caught:
        call(x, w)
    assert says in str(caught.value) or says.startswith("g:")
