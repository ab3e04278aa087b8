"""A linear layer of a step with 4-bit weights: right without a card, in any cut; how rows meet; its machine code."""

import re
from collections import Counter
from types import SimpleNamespace

import pytest
import torch
from compiled import seen
from hopper_on_cpu import prepare_in

from course_kernels.cuda.four_bits import GROUP, quantised, scales_in_order, unpacked, values_of
from course_kernels.cuda.includes import SHARED
from course_kernels.decode_linear import stream_w4
from course_kernels.decode_linear.arguments import ADD, GATE, NOTHING, ROPE, Turned
from course_kernels.decode_linear.problem import PROBLEM, flags_of
from course_kernels.decode_linear.stream_w4 import ROOM, Cut, Packed, cut_of, defines_of, in_order, packed_for
from course_kernels.problem import Workload, worst_error
from course_kernels.qkv_rope.problem import PROBLEM as QKV

pytestmark = pytest.mark.kept

KINDS = ({}, {"norm": True}, {"add": True}, {"norm": True, "gated": True})


def rounded(w):
    """What the four bits of (N, K) weights stand for, in float64."""
    return values_of(*quantised(w.float(), w.dtype))


class Case:
    """A call, what it comes to with the weights that four bits make of them, and how far an answer is off."""

    def __init__(self, M, N, K, dtype="float16", **kind):
        self.w = Workload.of(dtype, M=M, N=N, K=K, **kind)
        self.x, weights, *rest = PROBLEM.make_inputs(self.w, torch.Generator().manual_seed(0), "cpu")
        self.due = PROBLEM.reference(self.x, rounded(weights), *rest, **flags_of(self.w))
        self.behind = GATE if kind.get("gated") else ADD if kind.get("add") else NOTHING
        self.how = {"g": rest[0] if kind.get("norm") else None, "r": rest[-1] if kind.get("add") else None}
        self.packed = packed_for(tuple(weights.chunk(2)) if self.behind == GATE else (weights,), self.behind)

    def error(self, y):
        return worst_error(y, self.due) / PROBLEM.max_error(self.w)


@pytest.fixture(scope="module")
def on_the_cpu(tmp_path_factory):
    """with on_the_cpu(text=…): the launcher runs here, on a card of three multiprocessors; new memory is NaN."""
    made = {}

    def patched(text=None):
        def prepare(path, name, **how):
            key = text, str(sorted(how.items(), key=str))
            if key not in made:
                made[key] = prepare_in(tmp_path_factory.mktemp(name))(path, name, text=text, **how)
            return made[key]

        for kept in (stream_w4._cut, stream_w4._prepared):
            kept.cache_clear()
        patch = pytest.MonkeyPatch()
        patch.setattr(stream_w4, "prepare", prepare)
        patch.setenv("TRITON_INTERPRET", "1")  # tensors on the CPU are welcome
        patch.setattr(torch.cuda, "get_device_properties", lambda d: SimpleNamespace(multi_processor_count=3))
        patch.setattr(
            torch,
            "empty",
            lambda size, **how: torch.full(size if isinstance(size, tuple) else (size,), torch.nan, **how),
        )
        return patch

    yield patched
    for kept in (stream_w4._cut, stream_w4._prepared):
        kept.cache_clear()


@pytest.fixture
def start(on_the_cpu):
    """start(case, text=…, **how): what comes of a case."""

    def start(case, text=None, **how):
        patch = on_the_cpu(text)
        try:
            return stream_w4.start(case.x, case.packed, case.behind, **case.how | how)
        finally:
            patch.undo()

    return start


# A group and many, one that is missing at the end, rows of x in one, two and four eights, K in several blocks.
SIZES = [(1, 16, 128), (3, 80, 384), (9, 48, 640), (2, 32, 4224), (32, 48, 2176)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(kind) or "plain")
@pytest.mark.parametrize(("M", "N", "K"), SIZES)
def test_it_is_right(start, M, N, K, kind):
    case = Case(M, N, K, **kind)

    assert case.error(start(case)) < 1


def test_it_is_right_in_bfloat16(start):
    case = Case(9, 48, 640, "bfloat16", norm=True, gated=True)

    assert case.error(start(case)) < 1


def test_gate_and_up_may_end_within_a_tile_of_sixteen(start):
    case = Case(5, 24, 256, gated=True)

    assert case.error(start(case)) < 1


@pytest.mark.parametrize(
    "cut",
    [
        Cut(1, 1, 4, 2, 2, 1),
        Cut(2, 2, 2, 3, 2, 1),
        Cut(3, 4, 1, 1, 2, 1),
        Cut(2, 7, 1, 5, 1, 2),
        Cut(1, 2, 3, 2, 2, 1),  # two warps without work
    ],
    ids=lambda cut: "-".join(map(str, cut)),
)
@pytest.mark.parametrize("kind", KINDS[1:3], ids=["norm", "add"])
def test_any_cut_is_right_and_leaves_the_tickets_at_zero(start, cut, kind):
    case = Case(11, 80, 896, **kind)  # seven groups: one is missing at the end
    tickets = torch.zeros(5 * 2, dtype=torch.int32)
    first = start(case, cut=cut, tickets=tickets)

    assert case.error(first) < 1
    assert not tickets.any()
    assert torch.equal(start(case, cut=cut, tickets=tickets), first)


def test_a_sum_may_take_the_place_of_the_residual(start):
    case = Case(3, 80, 384, add=True)
    r = case.how["r"]

    assert start(case, y=r) is r
    assert case.error(r) < 1


@pytest.mark.parametrize(
    ("B", "H", "KV", "D"), [(1, 2, 1, 64), (3, 3, 2, 128), (9, 2, 2, 64), (17, 4, 1, 64)]
)
def test_queries_keys_and_values_find_their_places(on_the_cpu, B, H, KV, D):
    w = Workload.of("float16", B=B, H=H, KV=KV, D=D, W=256, P=11)
    x, g, weights, positions, cos, sin = QKV.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
    q_due, k_due, v_due = QKV.reference(x, g, rounded(weights), positions, cos, sin, kv_heads=KV)
    parts = weights.split([H * D, KV * D, KV * D])
    room = 9  # fewer than positions: who is past the end writes nothing
    caches = [torch.full((B, KV, room, D), 7.0, dtype=torch.float16) for _ in range(2)]
    at = positions.long()
    turned = Turned(cos[at], sin[at], at, *caches)
    patch = on_the_cpu()
    try:
        q = stream_w4.start(x, packed_for(parts, ROPE, D), ROPE, g=g, turned=turned)
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
    "a multiply takes the next columns of x": ("[eight][j % 2 * 2]);", "[eight][2 - j % 2 * 2]);"),
    "the other half of a word's columns": ("half * 2 + j / 2]", "half * 2 + 1 - j / 2]"),
    "a scale of the other rows": ("scale[i % 4 / 2]", "scale[1 - i % 4 / 2]"),
    "a scale of the next group": ("next_scales + group * 8);", "next_scales + (group ^ 1) * 8);"),
    "no scale": ("+= scale[i % 4 / 2] * of_group", "+= of_group"),
    "a nibble too far": ("word >> 4 * i", "word >> 4 * (i ^ 1)"),
    "nobody waits for a copy": ("wait_for_all_but<STAGES - 1>();", ""),
    "one copy too many may be missing": ("wait_for_all_but<STAGES - 1>();", "wait_for_all_but<STAGES>();"),
    "sums are read before they are there": ("    __syncthreads();  // the sums", "    //"),
    "both sides are one": ("side ^= 1;", ""),
    "groups past the end": ("mine = groups - begin;", "mine = HELD;"),
    "rows that x has not": ("if (m < M && i / 4 < mine)", "if (i / 4 < mine)"),
    "a tile's weights from where the one before lies": ("next_words += step * 64", "next_words += step * 32"),
    "parts lie on those of another tile": ("(tile) * splits * EIGHTS + e)", "(tile) * EIGHTS + e)"),
    "one part too few": ("split < splits; split++", "split < splits - 1; split++"),
    "the squares of one part": (
        "if (NORM) squares[0] += __ldcg(",
        "if (NORM && !split) squares[0] += __ldcg(",
    ),
    "half of a row's squares": ("squares[eight] += __shfl_xor_sync(0xffffffffu, squares[eight], 2);", ""),
    "no weight for x": ("Of::times(both[j], by[j])", "both[j]"),
    "gate and up change places": ("* low)) * high", "* high)) * low"),
}


def text_with_headers():
    """The source with the text of two headers in their places."""
    text = stream_w4.SOURCE.read_text()
    for header in (SHARED / "four_bits.cuh", stream_w4.SOURCE.with_name("epilogue.cuh")):
        text = text.replace(f'#include "{header.name}"', header.read_text().replace("#pragma once", ""))
    return text


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(start, fault):
    right, wrong = FAULTS[fault]
    text = text_with_headers()
    assert text.count(right) == 1
    case = Case(9, 80, 896, norm=True, gated=True)
    seen = False
    for cut in (Cut(1, 1, 4, 2, 2, 1), Cut(2, 2, 2, 2, 2, 1)):
        try:
            seen |= not case.error(start(case, text=text.replace(right, wrong), cut=cut)) < 1
        except RuntimeError:
            seen = True
    assert seen


# --- how rows meet ----------------------------------------------------------------------------------------


def numbered(*rows):
    """Matrices of one column, every row with a number of its own."""
    return tuple(torch.arange(100_000 * (i + 1), 100_000 * (i + 1) + n)[:, None] for i, n in enumerate(rows))


@pytest.mark.parametrize("behind", [NOTHING, ADD])
def test_rows_that_meet_none_stay_as_they_are(behind):
    (w,) = numbered(48)

    assert in_order((w,), behind) is w


def test_a_row_of_the_gate_meets_that_of_up():
    gate, up = numbered(40, 40)
    tiles = in_order((gate, up), GATE).view(-1, 2, 8)

    for tile in range(5):
        assert torch.equal(tiles[tile, 0], gate[8 * tile : 8 * tile + 8, 0])
        assert torch.equal(tiles[tile, 1], up[8 * tile : 8 * tile + 8, 0])


@pytest.mark.parametrize("head", [64, 128])
def test_a_number_of_a_head_meets_the_one_it_turns_with(head):
    matrices = numbered(3 * head, 2 * head, 2 * head)
    every = torch.cat(matrices)[:, 0]
    tiles = in_order(matrices, ROPE, head).view(-1, 2, 8)

    assert len(tiles) == 7 * head // 16
    for number, (low, high) in enumerate(tiles):
        for p in range(8):  # as `finish` in epilogue.cuh counts pairs
            of, i = divmod(number * 8 + p, head // 2)
            assert low[p] == every[of * head + i]
            assert high[p] == every[of * head + i + head // 2]


def test_packed_are_the_rounded_weights_in_their_order():
    gate, up = torch.randn(2, 24, 256, generator=torch.Generator().manual_seed(0)).half()
    words, scales = packed_for((gate, up), GATE)
    q, s = quantised(in_order((gate, up), GATE).float(), torch.float16)

    assert (words.shape, scales.shape) == ((3, 4, 32, 4), (3, 2, 16))
    assert torch.equal(unpacked(words), q)
    assert torch.equal(scales_in_order(scales), s)
    assert torch.equal(scales_in_order(scales)[8:16], quantised(up.float(), torch.float16)[1][:8])


@pytest.mark.parametrize(
    ("rows", "behind", "says"),
    [
        ((16, 16), NOTHING, "weights: expected 1 of them, got 2"),
        ((16,), GATE, "weights: expected 2 of them, got 1"),
        ((24,), ADD, "weights: expected (N, K) with N a multiple of 16, got (24, 1)"),
        ((16, 24), GATE, "weights: expected (N, K) with N a multiple of 8, the same for both, got (24, 1)"),
        ((128, 64, 64), ROPE, "weights: expected (N, K) with N a multiple of 128, got (64, 1)"),
    ],
)
def test_what_has_no_order(rows, behind, says):
    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
        in_order(numbered(*rows), behind)


# --- how the work is shared out, and what comes of it -----------------------------------------------------


@pytest.mark.parametrize(
    ("tiles", "K", "eights", "cut"),
    [
        (384, 4096, 1, (132, 1, 8, 2)),
        (256, 4096, 1, (132, 1, 8, 2)),
        (1792, 4096, 2, (132, 1, 16, 5)),
        (256, 14336, 1, (66, 2, 14, 1)),
        (1792, 14336, 2, (33, 4, 14, 5)),
        (1792, 4096, 4, (66, 2, 8, 8)),
        (256, 14336, 4, (16, 8, 7, 10)),
        (1, 128, 1, (1, 1, 1, 16)),
    ],
)
def test_how_an_h200_shares_out_the_work(tiles, K, eights, cut):
    room = ROOM[eights]
    found = cut_of(tiles, K, room, 132)

    assert found[:4] == cut
    assert found.blocks * found.splits <= 132
    share = found.warps * found.held * GROUP
    assert (found.splits - 1) * share < K <= found.splits * share
    shared = stream_w4.shared_bytes(eights, found.warps, found.stages, found.held)
    assert shared * room.resident <= 226 * 1024


def sorts_of(code):
    """What is spilled; copies before the wait for the last grid; how far behind it that is read; the loop's sorts."""
    in_full = re.findall(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", code.text, re.M)
    names = [name.split(".")[0] for name in in_full]
    wait = names.index("ACQBULK")
    of_the_last_grid = [i - wait for i, name in enumerate(in_full) if name.startswith("LDG.E.128.STRONG")]
    start = next(i for i, name in enumerate(names) if i > wait and name == "DEPBAR")
    loop = names[start : names.index("BAR", start)]
    spilled = sum(name in ("STL", "LDL") for name in names)
    return spilled, names[:wait].count("LDGSTS"), of_the_last_grid, Counter(loop)


@pytest.mark.parametrize("eights", ROOM)
@pytest.mark.parametrize(
    ("norm", "behind"), [(True, NOTHING), (False, ADD), (True, GATE), (True, ROPE)], ids=str
)
def test_nothing_is_kept_in_memory_and_a_word_costs_eleven_instructions_and_its_multiplies(
    norm, behind, eights
):
    """The first weights are asked for before the last grid has ended, and the loop is as lean as k02_fragments'."""
    pytest.importorskip("cuda.core")
    block = cut_of(1792, 4096, ROOM[eights], 132)[2:]
    held = block[2]
    defines = defines_of(False, eights, block, norm, behind, 128)
    spilled, early, of_the_last_grid, sorts = seen(sorts_of, stream_w4.SOURCE, "sm_90a", defines)
    loop = Counter(sorts)
    words = 8 * held  # of a lane

    assert spilled == 0
    assert early == 3 * held * block[1]
    assert len(of_the_last_grid) >= 4 * held * eights
    assert min(of_the_last_grid) > 0
    assert loop["LDGSTS"] == 3 * held
    assert loop["HMMA"] == words * eights
    assert 4 * words <= loop["LOP3"] <= 4 * words + 10
    assert 4 * words <= loop["HFMA2"] <= 4 * words + 4
    # A group's words and scales are read, if it is there; its sums begin at zero, and are scaled in the end.
    assert loop.total() <= (11 + eights) * words + 8 * eights * held + 8 * held + 74


# --- what is refused --------------------------------------------------------------------------------------


def given(behind=NOTHING, M=2, N=48, K=256, dtype=torch.float16, **other):
    words = torch.zeros(N // 16, K // 64, 32, 4, dtype=torch.int32)
    scales = torch.ones(N // 16, K // 128, 16, dtype=dtype)
    return {"x": torch.zeros(M, K, dtype=dtype), "packed": Packed(words, scales), "behind": behind} | other


def turned_for(M=2, KV=1, D=64, **other):
    fields = {
        "cos": torch.zeros(M, D // 2),
        "sin": torch.zeros(M, D // 2),
        "position": torch.zeros(M, dtype=torch.int64),
        "k_cache": torch.zeros(M, KV, 9, D).half(),
        "v_cache": torch.zeros(M, KV, 9, D).half(),
    }
    return Turned(**fields | other)


REFUSED = [
    (given(dtype=torch.float32), TypeError, "x: expected bfloat16 or float16, got float32"),
    (given(M=33), ValueError, "x: expected M <= 32, got M=33"),
    (
        given(x=torch.zeros(2, 192).half()),
        ValueError,
        "x: expected (M, K) with K a multiple of 128, got K=192",
    ),
    (
        given(packed=Packed(torch.zeros(3, 2, 32, 4, dtype=torch.int32), torch.ones(3, 2, 16).half())),
        ValueError,
        "words: expected (N/16, K/64, 32, 4) with K/64=4, got (3, 2, 32, 4)",
    ),
    (
        given(packed=Packed(torch.zeros(3, 4, 32, 4, dtype=torch.int32), torch.ones(2, 2, 16).half())),
        ValueError,
        "scales: expected (N/16, K/128, 16) with N/16=3, got (2, 2, 16)",
    ),
    (
        given(packed=Packed(torch.zeros(3, 4, 32, 4, dtype=torch.int32), torch.ones(3, 2, 16).bfloat16())),
        TypeError,
        "scales: expected float16, got bfloat16",
    ),
    (
        given(packed=Packed(torch.zeros(3, 4, 32, 4, dtype=torch.int8), torch.ones(3, 2, 16).half())),
        TypeError,
        "words: expected int32, got int8",
    ),
    (
        given(packed=given()["packed"]._replace(scales=torch.ones(3 * 2 * 16 + 1).half()[1:].view(3, 2, 16))),
        ValueError,
        "scales: expected an address divisible by 16, got one 2 bytes past it",
    ),
    (given(g=torch.ones(255).half()), ValueError, "g: expected (K,) with K=256, got (255,)"),
    (given(ADD), ValueError, "weights, r, turned: expected those of what stands behind"),
    (
        given(r=torch.zeros(2, 48).half()),
        ValueError,
        "weights, r, turned: expected those of what stands behind",
    ),
    (given(ROPE), ValueError, "weights, r, turned: expected those of what stands behind"),
    (
        given(GATE, turned=turned_for()),
        ValueError,
        "weights, r, turned: expected those of what stands behind",
    ),
    (given(ADD, r=torch.zeros(2, 32).half()), ValueError, "r: expected (M, N) with N=48, got (2, 32)"),
    (given(GATE, y=torch.zeros(2, 48).half()), ValueError, "y: expected (M, N) with N=24, got (2, 48)"),
    (
        given(ROPE, N=128, turned=turned_for()),
        ValueError,
        "query: expected whole heads of D=64, KV=1, got 0 rows",
    ),
    (
        given(ROPE, N=240, turned=turned_for()),
        ValueError,
        "query: expected whole heads of D=64, KV=1, got 112 rows",
    ),
    (
        given(ROPE, N=256, turned=turned_for(k_cache=torch.zeros(2, 9, 64).half())),
        ValueError,
        "k_cache: expected (M, KV, N, D) with no empty dimension, got (2, 9, 64)",
    ),
    (
        given(ROPE, N=256, turned=turned_for(v_cache=torch.zeros(2, 2, 9, 64).half())),
        ValueError,
        "v_cache: expected (M, KV, N, D) with KV=1, got (2, 2, 9, 64)",
    ),
    (
        given(ROPE, N=256, turned=turned_for(k_cache=None)),
        TypeError,
        "k_cache: expected a torch.Tensor, got NoneType",
    ),
    (
        given(cut=Cut(1, 1, 1, 1, 1, 1)),
        ValueError,
        "cut: expected one whose warps hold K=256 together, got Cut(blocks=1",
    ),
    (
        given(cut=Cut(1, 2, 1, 1, 1, 1), tickets=torch.zeros(2, dtype=torch.int32)),
        ValueError,
        "tickets: expected (T,) with T >= 3, got (2,)",
    ),
]


@pytest.mark.parametrize(("call", "kind", "says"), REFUSED, ids=[says for _, _, says in REFUSED])
def test_what_is_refused(monkeypatch, call, kind, says):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    with pytest.raises(kind, match=f"^{re.escape(says)}"):
        stream_w4.start(**call)


def test_it_runs_on_hopper_only(monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr("course_kernels.decode_linear.arguments.is_hopper", lambda device: False)
    monkeypatch.setattr(torch.Tensor, "get_device", lambda self: 0)
    with pytest.raises(
        RuntimeError, match=r"^decode_linear: expected a GPU of compute capability 9\.0, got cpu$"
    ):
        stream_w4.start(**given())


def test_the_kernel_is_made_ready_as_its_cut_wants_it(monkeypatch):
    """On an H200, with a stand-in for the driver: shared memory, macros, grid, and when it may begin."""
    asked = []

    def prepare(path, name, **how):
        return lambda grid, *args: asked.append((grid, args[-2] is None, how))

    for kept in (stream_w4._cut, stream_w4._prepared):
        kept.cache_clear()
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(stream_w4, "prepare", prepare)
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda device: SimpleNamespace(multi_processor_count=132)
    )
    stream_w4.start(**given(M=1, N=4096, K=4096))
    stream_w4.start(
        **given(ADD, M=9, N=4096, K=14336, dtype=torch.bfloat16, r=torch.zeros(9, 4096).bfloat16()),
        early=True,
    )
    for kept in (stream_w4._cut, stream_w4._prepared):
        kept.cache_clear()
    (one, no_parts, how), (two, none, more) = asked

    assert (one, no_parts, how["block"], how["before_the_last_grid_ended"]) == ((132, 1, 1), True, 256, False)
    assert how["defines"] == defines_of(True, 1, (8, 2, 4, 1), False, NOTHING, 128)
    assert how["shared_bytes"] == 8 * (2 * 4608 + 2 * 512)
    assert (two, none, more["block"], more["before_the_last_grid_ended"]) == ((33, 4, 1), False, 448, True)
    assert more["defines"] == defines_of(False, 2, (14, 5, 2, 1), False, ADD, 128)


def test_tickets_serve_any_call_of_so_many_rows():
    assert stream_w4.tickets_for(28672) == 1792 * 4
