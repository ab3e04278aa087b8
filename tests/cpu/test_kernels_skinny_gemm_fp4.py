"""A few rows times NVFP4 weights: the packer, every code and scale, the kernels without a card, machine code."""

import re
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import triton.language as tl
from compiled import seen
from hopper_on_cpu import prepare_in

from course_judge.worker.interpreter import watched_memory
from course_kernels.nvfp4 import blocks, formats
from course_kernels.problem import Workload, worst_error
from course_kernels.skinny_gemm_fp4 import k01_one_program, k02_fragments, k03_cluster, library
from course_kernels.skinny_gemm_fp4 import problem as contract
from course_kernels.skinny_gemm_fp4.k02_fragments import GROUP_BYTES, ROOM, Cut, cut_of
from course_kernels.skinny_gemm_fp4.layout import (
    GROUP,
    NO_SCALE,
    SCALE,
    packed,
    place_of,
    scales_in_order,
    unpacked,
    values_of,
)
from course_kernels.skinny_gemm_fp4.problem import PROBLEM

pytestmark = pytest.mark.kept

ROUNDED = 2.0**-8 + 2.0**-12  # y once, and what float32 loses on the way


def inputs_of(M, N, K, seed=0):
    w = Workload.of("bfloat16", M=M, N=N, K=K)
    return PROBLEM.make_inputs(w, torch.Generator().manual_seed(seed), "cpu")


def error(out, inputs):
    return worst_error(out, PROBLEM.reference(*inputs))


# --- the packer -------------------------------------------------------------------------------------------


def some_weights(N=48, K=384):
    """Codes and scales as the encoder gives them, and what they stand for without the second scale."""
    x = np.random.default_rng(N + K).standard_normal((N, K), dtype=np.float32)
    codes, scales, second = blocks.encode(x)
    return (
        torch.tensor(codes),
        torch.tensor(scales),
        blocks.decode(blocks.Encoded(codes, scales, second)),
        second,
    )


def test_packing_loses_nothing():
    codes, scales, decoded, second = some_weights()
    words, of_lanes = packed(codes, scales)

    assert words.shape == (3, 6, 32, 4)
    assert of_lanes.shape == (3, 3, 32, 4)
    assert words.is_contiguous()
    assert of_lanes.is_contiguous()
    assert torch.equal(unpacked(words), codes)
    found = values_of(words, of_lanes).float().numpy() * second
    np.testing.assert_allclose(found, decoded, rtol=2.0**-23)  # the encoder rounds scale times scale first


def test_every_code_lies_where_it_is_said():
    codes, scales, _, _ = some_weights(32, 128)
    words, of_lanes = packed(codes, scales)
    taken = set()
    for n in range(32):
        for k in range(128):
            place = place_of(n, k)
            word = int(words[place[:4]])
            assert sum((word >> bit & 1) << i for i, bit in enumerate(place.bits)) == codes[n, k]
            taken |= {(*place[:4], bit) for bit in place.bits}
            which = 2 * (k // 64) + n % 16 // 8
            assert of_lanes[place.down, 0, place.lane, which] == scales_in_order(of_lanes)[n, k // 16]

    assert len(taken) == 32 * 128 * 4


def test_a_scale_keeps_its_number_and_its_sign_goes_into_the_codes():
    codes = torch.arange(16, dtype=torch.uint8).repeat(32, 8)
    scales = torch.arange(256, dtype=torch.uint8).view(32, 8)
    words, of_lanes = packed(codes, scales)
    truth = np.outer(formats.values(formats.E4M3), formats.values(formats.E2M1)).reshape(32, 128)

    assert np.array_equal(values_of(words, of_lanes).numpy(), truth, equal_nan=True)
    ordered = scales_in_order(of_lanes).flatten()
    assert set(ordered[[0, 128]].tolist()) == {NO_SCALE}
    assert formats.values(SCALE)[NO_SCALE] == 2
    assert np.isnan(formats.values(SCALE)[ordered[[127, 255]]]).all()
    assert not unpacked(words)[[0, 16], :16].any()


@pytest.mark.parametrize(
    ("codes", "scales", "says"),
    [
        ((24, 128), (24, 8), "codes: expected (N, K) with N a multiple of 16, got N=24"),
        ((16, 64), (16, 4), "codes: expected (N, K) with K a multiple of 128, got K=64"),
        ((16, 128), (16, 4), "scales: expected (N, K/16) = (16, 8), got (16, 4)"),
    ],
)
def test_what_cannot_be_packed(codes, scales, says):
    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
        packed(torch.zeros(codes, dtype=torch.uint8), torch.zeros(scales, dtype=torch.uint8))


# --- the contract -----------------------------------------------------------------------------------------


def test_the_tolerance_sees_one_wrong_weight_and_not_the_second_scale_rounded_into_the_weights():
    inputs = inputs_of(16, 32, 1024)
    x, words, scales, second = inputs
    assert error(library.unpacked_first(*inputs), inputs) <= PROBLEM.max_error(None)

    codes = unpacked(words)
    n, k = divmod(int((values_of(words, scales).abs()).argmax()), 1024)
    wrong = words.clone()
    place = place_of(n, k)
    sign = 1 << place.bits[3]
    wrong[place[:4]] ^= sign - (sign >> 31 << 32)
    assert int((unpacked(wrong) != codes).sum()) == 1
    assert error(PROBLEM.reference(x, wrong, scales, second), inputs) > PROBLEM.max_error(None)
    of_neighbours = scales.view(-1, 2).flip(1).reshape(scales.shape)
    assert error(PROBLEM.reference(x, words, of_neighbours, second), inputs) > PROBLEM.max_error(None)


def test_the_truth_goes_in_strips(monkeypatch):
    monkeypatch.setattr(contract, "ROWS_AT_ONCE", 64)
    x, words, scales, second = inputs = inputs_of(2, 96, 128)

    torch.testing.assert_close(
        PROBLEM.reference(*inputs), x.double() @ values_of(words, scales).t() * second.double()
    )


def test_the_inputs_have_every_code_and_scales_up_to_2():
    _, words, scales, second = inputs_of(1, 256, 256)
    steps = formats.values(SCALE)[scales]

    assert len(unpacked(words).unique()) == 16
    assert (steps.min(), steps.max()) == (2.0**-9, 2.0)
    assert 0.01 <= second <= 0.02


# --- kernel 1 ---------------------------------------------------------------------------------------------


@pytest.fixture
def interpreted(monkeypatch):
    monkeypatch.setattr(k01_one_program, "MULTIPLIED", tl.float32)  # weights and x are exact in it


@pytest.mark.parametrize(("M", "N", "K"), [(1, 16, 128), (3, 80, 384), (17, 64, 256)])
def test_triton_is_right(interpreted, M, N, K):
    inputs = inputs_of(M, N, K)

    assert error(k01_one_program.skinny_gemm_fp4(*inputs), inputs) <= ROUNDED


def test_triton_reads_and_writes_nothing_outside(interpreted):
    inputs = inputs_of(3, 80, 256)  # five tiles, and a program takes four
    with watched_memory(dict(zip(("x", "words", "scales", "second"), inputs, strict=True))) as memory:
        k01_one_program.skinny_gemm_fp4(*inputs)

    assert memory.findings == []


# --- kernel 2 ---------------------------------------------------------------------------------------------


def without_a_card(kernel, multiprocessors, tmp_path_factory):
    """Yield run(*inputs, text=…, **options) -> y, its memory full of NaN before; on a card of so many."""
    made = {}

    def run(*inputs, text=None, **options):
        def prepare(path, name, **how):
            key = text, str(sorted(how.items(), key=str))
            if key not in made:
                made[key] = prepare_in(tmp_path_factory.mktemp(name))(path, name, text=text, **how)
            return made[key]

        for kept in (kernel._cut, kernel._prepared):
            kept.cache_clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernel, "prepare", prepare)
            if kernel is k03_cluster:
                patch.setattr(kernel, "clusters_at_once", lambda device, blocks: multiprocessors // blocks)
            patch.setattr(
                torch.cuda,
                "get_device_properties",
                lambda device: SimpleNamespace(multi_processor_count=multiprocessors),
            )
            patch.setattr(
                torch,
                "empty",
                lambda size, **how: torch.full(
                    size if isinstance(size, tuple) else (size,), torch.nan, **how
                ),
            )
            return kernel.skinny_gemm_fp4(*inputs, **options)

    yield run
    for kept in (kernel._cut, kernel._prepared):
        kept.cache_clear()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    yield from without_a_card(k02_fragments, 3, tmp_path_factory)


# One warp and several, an odd number of groups, one more than a block takes; rows of x in one, two and four eights.
SIZES = [(1, 16, 128), (3, 80, 384), (16, 112, 512), (2, 32, 4224), (29, 48, 640)]


@pytest.mark.parametrize(("M", "N", "K"), SIZES)
def test_fragments_are_right(run, M, N, K):
    inputs = inputs_of(M, N, K)

    # Products are exact and sums in float32, so that only the last rounding is seen.
    assert error(run(*inputs), inputs) <= ROUNDED


def every_pair():
    """Weights of every code times every scale but NaN, (32, 128) float64, and their packed form."""
    codes = torch.arange(16, dtype=torch.uint8).repeat(32, 8)
    scales = torch.arange(256, dtype=torch.uint8).view(32, 8)
    scales[(scales & 0x7F) == 0x7F] = 1
    words, of_lanes = packed(codes, scales)
    return values_of(words, of_lanes), words, of_lanes


@pytest.mark.parametrize("kernel", ["k01_one_program", "k02_fragments"])
def test_every_code_times_every_scale_comes_out_to_the_last_bit(run, interpreted, kernel):
    truth, words, of_lanes = every_pair()
    multiply = run if kernel == "k02_fragments" else k01_one_program.skinny_gemm_fp4
    rows = torch.eye(128, dtype=torch.bfloat16)
    found = torch.cat([multiply(x.contiguous(), words, of_lanes, torch.ones(1)) for x in rows.split(32)])

    assert torch.equal(found.double(), truth.t())


@pytest.mark.parametrize("kernel", ["k01_one_program", "k02_fragments"])
def test_a_scale_of_nan_is_in_its_row_and_in_no_other(run, interpreted, kernel):
    x, words, scales, second = inputs_of(2, 32, 256)
    scales[1, 0, 4 * 5 + 2, 1] = 0xFF  # of row 16 + 8 + 5
    multiply = run if kernel == "k02_fragments" else k01_one_program.skinny_gemm_fp4
    found = multiply(x, words, scales, second).isnan()

    assert found[:, 29].all()
    assert int(found.sum()) == 2


@pytest.mark.parametrize(
    "cut", [Cut(1, 1, 4, 2), Cut(2, 2, 2, 3), Cut(3, 3, 2, 1), Cut(2, 4, 1, 16)], ids=str
)
def test_any_cut_is_right_and_leaves_the_tickets_at_zero(run, cut):
    inputs = inputs_of(11, 80, 896)  # seven groups: an odd one at the end
    tickets = torch.zeros(5, dtype=torch.int32)
    first = run(*inputs, cut=cut, tickets=tickets)

    assert error(first, inputs) <= ROUNDED
    assert not tickets.any()
    assert torch.equal(run(*inputs, cut=cut, tickets=tickets), first)


FAULTS = {
    "a multiply takes the next columns of x": ("[eight][2 * j]", "[eight][2 * j ^ 2]"),
    "rows of the weights change places": ("scale[i % 2]", "scale[1 - i % 2]"),
    "the scale of the next columns": ("2 * tile_k)", "2 * (1 - tile_k))"),
    "nobody waits for a copy": ("wait_for_all_but<STAGES - 1>();", ""),
    "sums are read before they are there": ("    __syncthreads();  // the sums of all warps", "    //"),
    "both sides are one": ("side ^= 1;", ""),
    "both tiles of a batch are one": ("(batch * WARPS + warp) * SUMS", "warp * SUMS"),
    "sums of a tile past the last": (" && tile_of(i) < tiles", ""),
    "rows that x has not": ("if (m < M && group < mine)", "if (group < mine)"),
    "a group past the end": ("const int mine = groups - first;", "const int mine = HELD;"),
    "no zeros where there is no group": ("scales[group][lane] = 0;", "scales[group][lane] = ~0u;"),
    "one part too few": ("split < splits; split++", "split < splits - 1; split++"),
    "a code a place too far": ("word << 2 & CODES", "word << 3 & CODES"),
    "the last word's end is lost": ("word >> 4 | word << 28", "word >> 4"),
    "a mantissa is lost": (" | (word >> 8 & 0x00400040u)", ""),
    "no factor is left": ("LEFT = 128.0f", "LEFT = 64.0f"),
    "the second scale is forgotten": ("*second * LEFT", "LEFT"),
    "one chain of the two": ("one[0] + other[0]", "one[0]"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(run, fault):
    right, wrong = FAULTS[fault]
    text = k02_fragments.SOURCE.read_text()
    assert text.count(right) == 1
    inputs = inputs_of(9, 80, 896)
    # Where K is cut, the ticket has barriers of its own.
    cut = Cut(1, 1, 4, 2) if fault == "both sides are one" else Cut(2, 2, 2, 2)
    try:
        seen = not error(run(*inputs, cut=cut, text=text.replace(right, wrong)), inputs) <= ROUNDED
    except RuntimeError:
        seen = True
    assert seen


@pytest.mark.parametrize(
    ("N", "K", "eights", "cut"),
    [
        (28672, 4096, 1, Cut(132, 1, 16, 2)),
        (28672, 4096, 2, Cut(132, 1, 16, 2)),
        (4096, 14336, 1, Cut(33, 4, 14, 2)),
        (28672, 4096, 4, Cut(44, 3, 11, 5)),
        (1024, 4096, 1, Cut(64, 2, 8, 4)),  # fewer tiles than blocks
        (16, 65536, 1, Cut(1, 64, 4, 8)),
    ],
)
def test_how_an_h200_shares_out_the_work(N, K, eights, cut):
    found, room = cut_of(N, K, eights, 132), ROOM[eights]
    shares = -(-K // (GROUP * room.held))

    assert found == cut
    assert found.blocks * found.splits <= 132 * room.resident
    assert (found.splits - 1) * found.warps < shares <= found.splits * found.warps
    assert room.shared_bytes(eights, found.warps, found.stages) <= 226 * 1024 // room.resident


# --- kernel 3 ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clusters(tmp_path_factory):
    yield from without_a_card(k03_cluster, 48, tmp_path_factory)


# One warp, two blocks of which one has no columns; an odd number of groups; several warps along a block's columns.
@pytest.mark.parametrize(("M", "N", "K"), [(1, 16, 128), (16, 112, 640), (2, 32, 4224)])
def test_clusters_are_right(clusters, M, N, K):
    inputs = inputs_of(M, N, K)

    assert error(clusters(*inputs), inputs) <= ROUNDED


# Teams with and without a tile, a share that has no columns, one meeting and several.
CUTS = [
    (9, k03_cluster.Cut(1, 2, 4, 1, 2, 2, 2)),
    (9, k03_cluster.Cut(1, 2, 4, 2, 2, 2, 3)),
    (8, k03_cluster.Cut(2, 4, 2, 4, 4, 1, 1)),
    (16, k03_cluster.Cut(1, 8, 1, 1, 1, 3, 2)),
]


@pytest.mark.parametrize(("M", "cut"), CUTS, ids=str)
def test_any_cut_of_clusters_is_right(clusters, M, cut):
    inputs = inputs_of(M, 80, 896)

    assert error(clusters(*inputs, cut=cut), inputs) <= ROUNDED


def test_weights_may_be_asked_for_before_x(clusters):
    inputs = inputs_of(9, 80, 896)

    assert error(clusters(*inputs, cut=CUTS[0][1], early=True), inputs) <= ROUNDED


AHEAD = "a warp's sums go where others are not added yet"
CLUSTER_FAULTS = {
    "a multiply takes the next columns of x": ("[eight][2 * j]", "[eight][2 * j ^ 2]"),
    "rows of the weights change places": (
        "bf16_times_first(a[k], scale[k % 2])",
        "bf16_times_first(a[k], scale[1 - k % 2])",
    ),
    "the scale of the next columns": ("a[k] = tile_k ?", "a[k] = !tile_k ?"),
    "nobody waits for a copy": ("wait(&full[stage], side);", ""),
    "nobody waits for x": ("wait(&barriers.x_came, 0);", ""),
    "no zeros where there is no group": ("scales[group][lane] = 0;", "scales[group][lane] = ~0u;"),
    AHEAD: ("if (SHARES > 1) wait(&added[slot]", "if (0) wait(&added[slot]"),
    "sums of warps are added before they are there": ("wait(&written[slot], i / SLOTS & 1);", ""),
    "sums of blocks are added before they are there": ("wait_for_cluster(&barriers.inbox[unit], round);", ""),
    "the last tile is not sent": ("if (SHARES > 1 && here) add", "if (0) add"),
    "one block too few": ("b < BLOCKS; b++) add_to", "b < BLOCKS - 1; b++) add_to"),
    "sums that nobody announces": ("if (lane == 0) announce(begin + TILES, unit);", ""),
    "all tiles to one block": ("&barriers.inbox[unit], u % BLOCKS)", "&barriers.inbox[unit], 0)"),
    "sums come where x lies": ("(rows + ROWS * X_BYTES)", "(rows)"),
    "nobody meets before the next sums": ("cluster_arrive();  // all have been read", "continue;  //"),
    "the second scale is forgotten": ("*second * LEFT", "LEFT"),
}


@pytest.mark.parametrize("fault", CLUSTER_FAULTS)
def test_a_fault_planted_in_clusters_is_seen(clusters, fault):
    right, wrong = CLUSTER_FAULTS[fault]
    text = k03_cluster.SOURCE.read_text()
    assert text.count(right) == 1
    M, cut = CUTS[0]
    if fault == AHEAD:  # so far a warp only comes where nothing else makes it wait
        cut = cut._replace(tiles=6)
    inputs = inputs_of(M, 176, 896)
    try:
        seen = not error(clusters(*inputs, cut=cut, text=text.replace(right, wrong)), inputs) <= ROUNDED
    except RuntimeError:
        seen = True
    assert seen


@pytest.mark.parametrize(
    ("N", "K", "eights", "cut"),
    [
        (28672, 4096, 1, k03_cluster.Cut(15, 8, 4, 4, 15, 2, 8)),  # 120 tiles a block, and none has more
        (28672, 4096, 2, k03_cluster.Cut(15, 8, 4, 4, 8, 2, 15)),
        (6144, 4096, 1, k03_cluster.Cut(15, 8, 4, 4, 13, 2, 2)),  # thirteen teams with two tiles, not sixteen
        (4096, 14336, 1, k03_cluster.Cut(13, 8, 14, 4, 4, 2, 5)),
        (128256, 4096, 1, k03_cluster.Cut(15, 8, 4, 4, 16, 2, 9)),  # four meetings
        (1024, 512, 2, k03_cluster.Cut(64, 2, 2, 4, 1, 2, 1)),
        (4096, 32768, 1, k03_cluster.Cut(15, 8, 32, 4, 1, 2, 18)),  # x leaves no room for a second team
        (4096, 32768, 2, k03_cluster.Cut(15, 8, 32, 4, 1, 2, 6)),
    ],
)
def test_how_clusters_share_out_the_work(N, K, eights, cut):
    places = {2: 66, 4: 32, 8: 15}[k03_cluster.blocks_of(K)]
    found = k03_cluster.cut_of(N, K, eights, places)

    assert found == cut
    assert found.clusters <= places
    assert found.threads <= 32 * k03_cluster.WARPS[eights]
    assert found.shared_bytes(eights) <= k03_cluster.SHARED_BYTES
    assert found.blocks * found.groups * GROUP >= K


# --- its machine code -------------------------------------------------------------------------------------


def sorts_of(code):
    """How many of each instruction: from the wait for a tile's copies to the barrier behind its sums; and in all."""
    all_of_it = re.findall(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", code.text, re.M)
    start = next(i for i, name in enumerate(all_of_it) if name.startswith("DEPBAR.LE"))
    end = next(i for i, name in enumerate(all_of_it) if i > start and name.startswith("BAR.SYNC"))
    return Counter(name.split(".")[0] for name in all_of_it[start:end]), Counter(all_of_it)


def loop_of(eights, arch="sm_90a"):
    room = ROOM[eights]
    defines = room.defines(eights, room.warps, 2)
    loop, all_of_it = seen(sorts_of, k02_fragments.SOURCE, arch, defines)
    return Counter(loop), all_of_it


@pytest.mark.parametrize("eights", [1, 2, 4])
def test_a_word_costs_fourteen_instructions_and_a_multiply(eights):
    loop, all_of_it = loop_of(eights)
    words = 8 * ROOM[eights].held  # of a lane

    assert loop["HMMA"] == words * eights
    assert loop["HMUL2"] + loop["HFMA2"] == 4 * words
    # Scales take two or three each, and there are half as many as words. Two of the four shifts go to the left: those
    # are IMAD.SHL, on another pipe.
    assert 5 * words <= loop["LOP3"] <= 5.5 * words + 10
    assert loop["SHF"] <= 2.5 * words + 4
    assert loop["LDGSTS"] == 3 * ROOM[eights].held
    assert loop.total() <= (14.5 + eights) * words + 80 + 12 * ROOM[eights].held
    assert not [name for name in all_of_it if name.split(".")[0] in ("LDL", "STL")]
    assert [name for name in all_of_it if name.startswith("LDGSTS.E.BYPASS.128")]


BYTES_A_CLOCK = 20.7  # of 4.8 TB/s for each of 132 multiprocessors at 1.755 GHz


def test_an_h200_can_issue_what_its_memory_delivers():
    """Four warps an instruction each in a clock; behind the barrier the sums of two tiles are little."""
    for eights in (1, 2):
        loop, _ = loop_of(eights)

        assert loop.total() / 4 <= 0.85 * ROOM[eights].held * GROUP_BYTES / BYTES_A_CLOCK


def test_older_cards_have_these_instructions_too():
    loop, _ = loop_of(2, arch="sm_80")

    assert loop["HMMA"] == 32


def sorts_of_a_tile(code):
    """How many of each instruction: from a warp's wait for its copies to its sums on their way; and in all."""
    all_of_it = re.findall(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", code.text, re.M)
    first = next(i for i, name in enumerate(all_of_it) if name.startswith("HMMA"))
    start = max(i for i in range(first) if all_of_it[i].startswith("SYNCS.PHASECHK"))
    end = next(i for i, name in enumerate(all_of_it) if i > first and name.startswith("STAS"))
    halves = len(re.findall(r"HMUL2\.BF16_V2 [^;]*\.H[01]_H[01]", code.text))
    return Counter(name.split(".")[0] for name in all_of_it[start : end + 1]), Counter(all_of_it), halves


def cluster_defines(eights):
    return k03_cluster.cut_of(28672, 4096, eights, 15).defines(eights, True)


@pytest.mark.parametrize("eights", [1, 2])
def test_clusters_of_blocks_need_fewer_instructions_for_a_word(eights):
    tile, all_of_it, halves = seen(sorts_of_a_tile, k03_cluster.SOURCE, "sm_90a", cluster_defines(eights))
    tile, words = Counter(tile), 8 * k03_cluster.HELD

    assert tile["HMMA"] == words * eights
    # A scale is half of an operand: none is made twice, and four of them cost six instructions.
    assert tile["HMUL2"] + tile["HFMA2"] == halves == 4 * words
    assert 5 * words <= tile["LOP3"] <= 5.5 * words
    assert tile["SHF"] <= 2.25 * words
    assert tile.total() <= (15 + eights) * words + 64
    # A lane asks for a warp: all weights of a tile, and all their scales.
    assert (tile["UBLKCP"], tile["STAS"], tile["LDGSTS"]) == (2, 1, 0)
    assert not [name for name in all_of_it if name.split(".")[0] in ("LDL", "STL")]


def test_clusters_leave_an_h200_time_to_issue():
    """Less than the ring of k02_fragments for the same bytes, although the sums of blocks are sent."""
    for eights in (1, 2):
        tile, _, _ = seen(sorts_of_a_tile, k03_cluster.SOURCE, "sm_90a", cluster_defines(eights))

        assert Counter(tile).total() / 4 <= 0.70 * k03_cluster.HELD * GROUP_BYTES / BYTES_A_CLOCK


# --- what launchers refuse --------------------------------------------------------------------------------


def given(M=2, N=32, K=256):
    return {
        "x": torch.zeros(M, K, dtype=torch.bfloat16),
        "words": torch.zeros(N // 16, K // 64, 32, 4, dtype=torch.int32),
        "scales": torch.ones(N // 16, K // 128, 32, 4, dtype=torch.uint8),
        "second": torch.ones(1),
    }


REFUSED = [
    (TypeError, "x: expected bfloat16, got float16", {"x": torch.zeros(2, 256).half()}),
    (TypeError, "words: expected int32, got int8", {"words": torch.zeros(2, 4, 32, 4, dtype=torch.int8)}),
    (TypeError, "scales: expected uint8, got float32", {"scales": torch.ones(2, 2, 32, 4)}),
    (TypeError, "second: expected float32, got float64", {"second": torch.ones(1).double()}),
    (ValueError, "second: expected (1,) with 1=1, got (2,)", {"second": torch.ones(2)}),
    (
        ValueError,
        "x: expected (M, K) with K a multiple of 128, got K=192",
        {"x": torch.zeros(2, 192).bfloat16()},
    ),
    (
        ValueError,
        "words: expected (N/16, K/64, 32, 4) with K/64=4, got (2, 2, 32, 4)",
        {"words": torch.zeros(2, 2, 32, 4, dtype=torch.int32)},
    ),
    (
        ValueError,
        "scales: expected (N/16, K/128, 32, 4) with N/16=2, got (3, 2, 32, 4)",
        {"scales": torch.ones(3, 2, 32, 4, dtype=torch.uint8)},
    ),
    (
        ValueError,
        "x: expected an address divisible by 16, got one 2 bytes past it",
        {"x": torch.zeros(513).bfloat16()[1:].view(2, 256)},
    ),
]


@pytest.mark.parametrize(("refusal", "says", "other"), REFUSED, ids=[says for _, says, _ in REFUSED])
@pytest.mark.parametrize("kernel", [k01_one_program, k02_fragments, k03_cluster], ids=["k01", "k02", "k03"])
def test_what_a_launcher_refuses(kernel, refusal, says, other):
    with pytest.raises(refusal, match=f"^{re.escape(says)}$"):
        kernel.skinny_gemm_fp4(**given() | other)


@pytest.mark.parametrize(("kernel", "most"), [(k01_one_program, 128), (k02_fragments, 32), (k03_cluster, 16)])
def test_rows_past_the_most(kernel, most):
    with pytest.raises(ValueError, match=f"^x: expected M <= {most}, got M={most + 1}$"):
        kernel.skinny_gemm_fp4(**given(M=most + 1))


def test_other_tickets_are_refused():
    for refusal, says, tickets in (
        (TypeError, "tickets: expected int32, got float32", torch.zeros(2)),
        (ValueError, "tickets: expected (T,) with T=2, got (3,)", torch.zeros(3, dtype=torch.int32)),
    ):
        with pytest.raises(refusal, match=f"^{re.escape(says)}$"):
            k02_fragments.skinny_gemm_fp4(**given(), tickets=tickets)


@pytest.mark.parametrize(
    ("K", "cut", "says"),
    [
        (32896, None, "x: expected K <= 32768, got K=32896"),
        (640, (1, 2, 2, 4, 1, 2, 1), "cut: expected blocks * groups * 128 >= K=640, got 2 and 2"),
        (256, (1, 2, 1, 4, 33, 1, 1), "cut: expected at most 1024 threads, got 1056"),
        (
            256,
            (1, 2, 1, 8, 16, 2, 1),
            "cut: expected at most 232448 bytes of shared memory, got 306176",
        ),
    ],
)
def test_what_clusters_do_not_do(K, cut, says):
    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
        k03_cluster.skinny_gemm_fp4(**given(K=K), cut=cut and k03_cluster.Cut(*cut))


def test_clusters_are_made_ready_as_their_cut_wants_it(monkeypatch):
    """Where 15 clusters of eight fit, with a stand-in for the driver: shared memory, macros, grid, when it begins."""
    asked = []

    def prepare(path, name, **how):
        return lambda grid, *args: asked.append((grid, args[5:], how))

    for kept in (k03_cluster._cut, k03_cluster._prepared):
        kept.cache_clear()
    monkeypatch.setattr(k03_cluster, "prepare", prepare)
    monkeypatch.setattr(k03_cluster, "clusters_at_once", lambda device, blocks: {8: 15}[blocks])
    k03_cluster.skinny_gemm_fp4(**given(M=9, N=4096, K=4096), early=True)
    (grid, sizes, how) = asked[0]
    for kept in (k03_cluster._cut, k03_cluster._prepared):
        kept.cache_clear()

    assert (grid, sizes) == ((120, 1, 1), (9, 256, 32))
    assert (how["block"], how["cluster"], how["before_the_last_grid_ended"]) == (192, 8, True)
    macros = {"EIGHTS": 2, "BLOCKS": 8, "GROUPS": 4, "HELD": 4, "SHARES": 1, "TEAMS": 6, "STAGES": 2}
    assert how["defines"] == macros | {"TILES": 3, "X_FIRST": 0}
    # 40 barriers, six rings, rows of x, and sums of 24 tiles from eight blocks.
    assert how["shared_bytes"] == 384 + 6 * 2 * 4 * 1152 + 16 * (512 * 2 + 16) + 24 * 1024


@pytest.mark.parametrize(("answer", "places"), [(15, 15), (0, 1)])
def test_the_card_is_asked_once_how_many_clusters_it_holds(monkeypatch, answer, places):
    """One block a multiprocessor: it asks for all shared memory. A card that says none is launched on, and refuses."""
    core = pytest.importorskip("cuda.core")
    asked = []

    def most(config, *, stream):
        asked.append((config, stream))
        return answer

    kernel = SimpleNamespace(occupancy=SimpleNamespace(max_active_clusters=most))
    monkeypatch.setattr(k03_cluster, "load_kernel", lambda path, name, defines: kernel)
    monkeypatch.setattr(k03_cluster, "allow_shared_memory", lambda kernel, n_bytes: asked.append(n_bytes))
    monkeypatch.setattr(core, "LaunchConfig", dict)
    monkeypatch.setattr(core, "Device", lambda number: SimpleNamespace(default_stream=f"of {number}"))
    k03_cluster.clusters_at_once.cache_clear()
    found = [k03_cluster.clusters_at_once(1, 8) for _ in range(2)]
    k03_cluster.clusters_at_once.cache_clear()

    assert found == [places, places]
    assert asked == [232448, ({"grid": 1, "cluster": 8, "block": 32, "shmem_size": 232448}, "of 1")]


def test_the_kernel_is_made_ready_as_its_cut_wants_it(monkeypatch):
    """On an H200, with a stand-in for the driver: shared memory, macros, grid, and when it may begin."""
    asked = []

    def prepare(path, name, **how):
        def launch(grid, *args):
            asked.append((grid, args[5] is None, how))

        return launch

    for kept in (k02_fragments._cut, k02_fragments._prepared):
        kept.cache_clear()
    monkeypatch.setattr(k02_fragments, "prepare", prepare)
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda device: SimpleNamespace(multi_processor_count=132)
    )
    k02_fragments.skinny_gemm_fp4(**given(M=1, N=4096, K=4096))
    k02_fragments.skinny_gemm_fp4(**given(M=9, N=4096, K=14336), early=True)
    (one, no_parts, how), (two, none, more) = asked
    for kept in (k02_fragments._cut, k02_fragments._prepared):
        kept.cache_clear()

    assert (one, no_parts, how["block"], how["before_the_last_grid_ended"]) == ((132, 1, 1), True, 512, False)
    assert how["defines"] == {"EIGHTS": 1, "WARPS": 16, "STAGES": 2, "HELD": 2, "BATCH": 2, "RESIDENT": 1}
    assert how["shared_bytes"] == 16 * 2 * 2 * 1152 + 2 * 2 * 16 * 512
    assert (two, none, more["block"], more["before_the_last_grid_ended"]) == ((33, 4, 1), False, 448, True)
    assert more["defines"] == {"EIGHTS": 2, "WARPS": 14, "STAGES": 2, "HELD": 2, "BATCH": 2, "RESIDENT": 1}
