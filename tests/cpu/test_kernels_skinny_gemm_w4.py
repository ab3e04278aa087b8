"""A few rows times 4-bit weights: the packer, what rounding costs, both kernels without a card, machine code."""

import re
from collections import Counter
from types import SimpleNamespace

import pytest
import torch
from compiled import seen
from hopper_on_cpu import prepare_in

from course_judge.worker.interpreter import watched_memory
from course_kernels.cuda.four_bits import (
    GROUP,
    packed,
    place_of,
    quantised,
    scales_in_order,
    unpacked,
)
from course_kernels.cuda.includes import SHARED
from course_kernels.problem import Workload, worst_error
from course_kernels.skinny_gemm_w4 import k01_triton, k02_fragments, library
from course_kernels.skinny_gemm_w4 import problem as contract
from course_kernels.skinny_gemm_w4.k02_fragments import ROOM, Cut, cut_of
from course_kernels.skinny_gemm_w4.problem import PROBLEM, quantisation_error

pytestmark = pytest.mark.kept


def inputs_of(M, N, K, dtype="float16", seed=0):
    w = Workload.of(dtype, M=M, N=N, K=K)
    return w, PROBLEM.make_inputs(w, torch.Generator().manual_seed(seed), "cpu")


def error(out, inputs):
    return worst_error(out, PROBLEM.reference(*inputs))


# --- the packer -------------------------------------------------------------------------------------------


def some_weights(N=48, K=384, dtype=torch.float16):
    weights = torch.randn(N, K, generator=torch.Generator().manual_seed(N + K))
    return weights, *quantised(weights, dtype)


def test_packing_loses_nothing():
    _, q, scales = some_weights()
    words, in_pairs = packed(q, scales)

    assert words.shape == (3, 6, 32, 4)
    assert in_pairs.shape == (3, 3, 16)
    assert words.is_contiguous()
    assert torch.equal(unpacked(words), q)
    assert torch.equal(scales_in_order(in_pairs), scales)
    assert {int(x) for x in q.unique()} == set(range(-8, 8))


def test_every_weight_lies_where_it_is_said():
    _, q, scales = some_weights(32, 128)
    words, _ = packed(q, scales)
    places = {place_of(n, k) for n in range(32) for k in range(128)}

    assert len(places) == 32 * 128
    assert all(place.bit in range(0, 32, 4) for place in places)
    for n in range(32):
        for k in range(128):
            place = place_of(n, k)
            word = int(words[place.down, place.across, place.lane, place.word])
            assert (word >> place.bit & 15) - 8 == q[n, k]


def test_a_lane_has_the_fragments_that_the_instruction_wants():
    """PTX ISA, mma.m16n8k16: of A lane l holds rows l / 4 and l / 4 + 8, in registers 0 and 2, and 1 and 3."""
    of_lane = {}
    for n in range(16):
        for k in range(64):
            place = place_of(n, k)
            of_lane.setdefault((place.lane, place.word, place.bit % 16 // 4), []).append(
                (n, k, place.bit // 16)
            )
    for (lane, word, register), two in of_lane.items():
        (n, k, first), (same_n, next_k, second) = sorted(two, key=lambda it: it[2])
        assert (first, second) == (0, 1)
        assert n == same_n == lane // 4 + 8 * (register % 2)
        assert next_k == k + 1
        # Of x lane l holds, for this multiply, the columns of the same two vectors of 16 bytes.
        assert k == 32 * (word // 2) + 8 * (lane % 4) + 4 * (word % 2) + 2 * (register // 2)


def test_the_largest_of_a_group_is_minus_8_and_nothing_is_off_by_more_than_a_step():
    weights, q, scales = some_weights(64, 512, torch.bfloat16)
    step = scales.float().abs().repeat_interleave(GROUP, dim=1)
    back = q * scales.float().repeat_interleave(GROUP, dim=1)
    within = (q > -8) & (q < 7)

    assert (q.view(64, -1, GROUP).amin(-1) == -8).all()
    assert ((back - weights).abs() <= step * 1.04).all()  # the other end of a group is cut off at 7
    assert ((back - weights).abs()[within] <= step[within] * 0.501).all()


def test_a_group_of_zeros_stays_zeros():
    q, scales = quantised(torch.zeros(16, 128), torch.float16)

    assert not q.any()
    assert (scales == 1).all()


@pytest.mark.parametrize(
    ("size", "says"),
    [((16, 100), "weights: expected (N, K) with K a multiple of 128, got K=100")],
)
def test_what_cannot_be_rounded(size, says):
    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
        quantised(torch.zeros(size), torch.float16)


@pytest.mark.parametrize(
    ("size", "says"),
    [
        ((24, 128), "q: expected (N, K) with N a multiple of 16, got N=24"),
        ((16, 64), "q: expected (N, K) with K a multiple of 128, got K=64"),
    ],
)
def test_what_cannot_be_packed(size, says):
    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
        packed(torch.zeros(size, dtype=torch.int8), torch.ones(size[0], 1))


# --- what four bits cost ----------------------------------------------------------------------------------


def test_what_four_bits_cost_is_a_tenth_and_zero_points_change_little():
    generator = torch.Generator().manual_seed(0)
    x, weights = torch.randn(16, 1024, generator=generator), torch.randn(512, 1024, generator=generator)
    costs = quantisation_error(x, weights)

    assert 0.09 < costs["weights"] < 0.11
    assert costs["product"] == pytest.approx(costs["weights"], rel=0.1)
    assert 0.95 < costs["with_zero_points"] / costs["weights"] < 1


def test_zero_points_are_worth_it_for_weights_of_one_sign():
    weights = torch.rand(64, 256, generator=torch.Generator().manual_seed(0))
    costs = quantisation_error(torch.ones(1, 256), weights)

    assert costs["with_zero_points"] < 0.6 * costs["weights"]


def test_the_tolerance_sees_one_wrong_weight_and_not_the_scales_rounded_into_the_weights():
    for dtype in ("bfloat16", "float16"):
        w, inputs = inputs_of(16, 32, 1024, dtype)
        assert error(library.unpacked_first(*inputs), inputs) <= PROBLEM.max_error(w)
        x, words, scales = inputs
        wrong = words.clone()
        wrong[0, 0, 0, 0] ^= 15 << 28
        assert error(PROBLEM.reference(x, wrong, scales), inputs) > PROBLEM.max_error(w)
        turned = scales.view(-1, 2).flip(1).reshape(scales.shape).contiguous()
        assert error(PROBLEM.reference(x, words, turned), inputs) > PROBLEM.max_error(w)


def test_the_truth_goes_in_strips(monkeypatch):
    monkeypatch.setattr(contract, "ROWS_AT_ONCE", 64)
    _, inputs = inputs_of(2, 96, 128)
    x, words, scales = inputs
    q, s = unpacked(words).double(), scales_in_order(scales).double()

    torch.testing.assert_close(PROBLEM.reference(*inputs), x.double() @ (q * s).t())


# --- kernel 1 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("M", "N", "K"), [(1, 16, 128), (3, 80, 384), (17, 64, 256), (100, 112, 128)])
def test_triton_is_right(M, N, K):
    _, inputs = inputs_of(M, N, K)

    assert error(k01_triton.skinny_gemm_w4(*inputs), inputs) <= 2.0**-11


def test_triton_reads_and_writes_nothing_outside():
    _, inputs = inputs_of(3, 80, 256)  # five tiles, and a program takes four
    with watched_memory(dict(zip(("x", "words", "scales"), inputs, strict=True))) as memory:
        k01_triton.skinny_gemm_w4(*inputs)

    assert memory.findings == []


# --- kernel 2 ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(*inputs, text=…, **options) -> y, its memory full of NaN before; on a card of three multiprocessors."""
    made = {}

    def run(*inputs, text=None, **options):
        def prepare(path, name, **how):
            key = text, str(sorted(how.items(), key=str))
            if key not in made:
                made[key] = prepare_in(tmp_path_factory.mktemp(name))(path, name, text=text, **how)
            return made[key]

        for kept in (k02_fragments._cut, k02_fragments._prepared):
            kept.cache_clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(k02_fragments, "prepare", prepare)
            patch.setattr(
                torch.cuda, "get_device_properties", lambda device: SimpleNamespace(multi_processor_count=3)
            )
            patch.setattr(
                torch,
                "empty",
                lambda size, **how: torch.full(
                    size if isinstance(size, tuple) else (size,), torch.nan, **how
                ),
            )
            return k02_fragments.skinny_gemm_w4(*inputs, **options)

    yield run
    for kept in (k02_fragments._cut, k02_fragments._prepared):
        kept.cache_clear()


# One warp and several, an odd number of groups, one more than a block takes; rows of x in one, two and four eights.
SIZES = [(1, 16, 128), (3, 80, 384), (16, 112, 512), (2, 32, 4224), (29, 48, 640)]


@pytest.mark.parametrize(
    ("M", "N", "K", "dtype"), [(*size, "float16") for size in SIZES] + [(9, 48, 640, "bfloat16")]
)
def test_fragments_are_right(run, M, N, K, dtype):
    _, inputs = inputs_of(M, N, K, dtype)

    # Products are exact and sums in float32, so that only the last rounding is seen.
    assert error(run(*inputs), inputs) <= {"bfloat16": 2.0**-8, "float16": 2.0**-11}[dtype]


@pytest.mark.parametrize(
    "cut", [Cut(1, 1, 4, 2), Cut(2, 2, 2, 3), Cut(3, 3, 2, 1), Cut(2, 4, 1, 16), Cut(5, 1, 5, 4)], ids=str
)
def test_any_cut_is_right_and_leaves_the_tickets_at_zero(run, cut):
    _, inputs = inputs_of(11, 80, 896)  # seven groups: an odd one at the end
    tickets = torch.zeros(5, dtype=torch.int32)
    first = run(*inputs, cut=cut, tickets=tickets)

    assert error(first, inputs) <= 2.0**-11
    assert not tickets.any()
    assert torch.equal(run(*inputs, cut=cut, tickets=tickets), first)


FAULTS = {
    "a multiply takes the next columns of x": ("[eight][2 * j]", "[eight][2 * j ^ 2]"),
    "rows of the weights change places": ("scale[i % 4 / 2]", "scale[1 - i % 4 / 2]"),
    "nobody waits for a copy": ("wait_for_all_but<STAGES - 1>();", ""),
    "one copy too many may be missing": ("wait_for_all_but<STAGES - 1>();", "wait_for_all_but<STAGES>();"),
    "sums are read before they are there": ("    __syncthreads();  // the sums of all warps", "    //"),
    "both sides are one": ("side ^= 1;", ""),
    "rows that x has not": ("if (m < M && group < mine)", "if (group < mine)"),
    "a group past the end": ("const int mine = groups - first;", "const int mine = HELD;"),
    "parts lie on those of another tile": ("(tile) * splits * SUMS", "(tile) * SUMS"),
    "one part too few": ("split < splits; split++", "split < splits - 1; split++"),
    "a nibble too far": ("word >> 4 * i", "word >> 4 * (i ^ 1)"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(run, fault):
    right, wrong = FAULTS[fault]
    text = k02_fragments.SOURCE.read_text()
    unpack = (SHARED / "four_bits.cuh").read_text().replace("#pragma once", "")
    text = text.replace('#include "four_bits.cuh"', unpack)
    assert text.count(right) == 1
    _, inputs = inputs_of(9, 80, 896)
    # Where K is cut, the ticket has barriers of its own.
    cut = Cut(1, 1, 4, 2) if fault == "both sides are one" else Cut(2, 2, 2, 2)
    try:
        out = run(*inputs, cut=cut, text=text.replace(right, wrong))
        seen = not error(out, inputs) <= 2.0**-11
    except RuntimeError:
        seen = True
    assert seen


@pytest.mark.parametrize(
    ("N", "K", "eights", "cut"),
    [
        (28672, 4096, 1, Cut(132, 1, 16, 3)),
        (4096, 4096, 2, Cut(132, 1, 16, 3)),
        (6144, 4096, 1, Cut(132, 1, 16, 3)),
        (128256, 4096, 2, Cut(132, 1, 16, 3)),
        (4096, 14336, 1, Cut(33, 4, 14, 3)),
        (28672, 4096, 4, Cut(44, 3, 11, 8)),
        (1024, 4096, 1, Cut(64, 2, 8, 6)),  # fewer tiles than multiprocessors
        (16, 128, 1, Cut(1, 1, 1, 16)),
        (16, 65536, 1, Cut(1, 64, 4, 12)),
    ],
)
def test_how_an_h200_shares_out_the_work(N, K, eights, cut):
    found, held = cut_of(N, K, eights, 132), ROOM[eights].held

    assert found == cut
    assert found.blocks * found.splits <= 132
    assert (found.splits - 1) * found.warps * held * GROUP < K <= found.splits * found.warps * held * GROUP
    shared = found.warps * (found.stages * held * k02_fragments.GROUP_BYTES + 2 * eights * 4 * 128)
    assert shared <= 226 * 1024


# --- its machine code -------------------------------------------------------------------------------------


def sorts_of(code):
    """How many of each instruction: from the wait for a tile's copies to the barrier behind its sums; and in all."""
    all_of_it = re.findall(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", code.text, re.M)
    start = next(i for i, name in enumerate(all_of_it) if name.startswith("DEPBAR.LE"))
    end = next(i for i, name in enumerate(all_of_it) if i > start and name.startswith("BAR.SYNC"))
    return Counter(name.split(".")[0] for name in all_of_it[start:end]), Counter(all_of_it)


def loop_of(weights, eights, held=2, warps=16, arch="sm_90a"):
    defines = {"WEIGHTS": weights, "EIGHTS": eights, "WARPS": warps, "STAGES": 3, "HELD": held}
    loop, all_of_it = seen(sorts_of, k02_fragments.SOURCE, arch, defines)
    return Counter(loop), all_of_it


@pytest.mark.parametrize(("weights", "takes_away"), [("Bf16Weights", "HFMA2"), ("Fp16Weights", "HADD2")])
@pytest.mark.parametrize("eights", [1, 2, 4])
def test_a_word_costs_eleven_instructions_and_a_multiply(weights, takes_away, eights):
    room = ROOM[eights]
    loop, all_of_it = loop_of(weights, eights, room.held, room.warps)
    words = 8 * room.held  # of a lane

    assert loop["HMMA"] == words * eights
    assert 4 * words <= loop["LOP3"] <= 4 * words + 10
    assert 3 * words <= loop["SHF"] <= 3 * words + 4
    assert 4 * words <= loop[takes_away] <= 4 * words + 4
    assert loop["LDGSTS"] == 3 * room.held
    assert loop["LDS"] - loop["LDSM"] <= 6 + 6  # ptxas puts idle ones before asynchronous copies
    assert loop.total() <= (11 + eights) * words + 110
    assert not [name for name in all_of_it if name.split(".")[0] in ("LDL", "STL")]
    assert [name for name in all_of_it if name.startswith("LDGSTS.E.BYPASS.128")]


def test_older_cards_have_these_instructions_too():
    loop, _ = loop_of("Bf16Weights", 2, arch="sm_80")

    assert loop["HMMA"] == 32


# --- what launchers refuse --------------------------------------------------------------------------------


def given(M=2, N=32, K=256, dtype=torch.float16):
    return {
        "x": torch.zeros(M, K, dtype=dtype),
        "words": torch.zeros(N // 16, K // 64, 32, 4, dtype=torch.int32),
        "scales": torch.ones(N // 16, K // 128, 16, dtype=dtype),
    }


REFUSED = [
    (TypeError, "x: expected bfloat16 or float16, got float32", {"x": torch.zeros(2, 256)}),
    (TypeError, "words: expected int32, got int8", {"words": torch.zeros(2, 4, 32, 4, dtype=torch.int8)}),
    (TypeError, "scales: expected float16, got bfloat16", {"scales": torch.ones(2, 2, 16).bfloat16()}),
    (ValueError, "x: expected (M, K) with K a multiple of 128, got K=192", {"x": torch.zeros(2, 192).half()}),
    (
        ValueError,
        "words: expected (N/16, K/64, 32, 4) with K/64=4, got (2, 2, 32, 4)",
        {"words": torch.zeros(2, 2, 32, 4, dtype=torch.int32)},
    ),
    (
        ValueError,
        "words: expected (N/16, K/64, 32, 4) with 32=32, got (2, 4, 16, 8)",
        {"words": torch.zeros(2, 4, 16, 8, dtype=torch.int32)},
    ),
    (
        ValueError,
        "scales: expected (N/16, K/128, 16) with N/16=2, got (3, 2, 16)",
        {"scales": torch.ones(3, 2, 16).half()},
    ),
    (
        ValueError,
        "scales: expected contiguous (N/16, K/128, 16), got strides (16, 32, 1)",
        {"scales": torch.ones(2, 2, 16).half().transpose(0, 1)},
    ),
    (
        ValueError,
        "x: expected an address divisible by 16, got one 2 bytes past it",
        {"x": torch.zeros(513).half()[1:].view(2, 256)},
    ),
]


@pytest.mark.parametrize(("refusal", "says", "other"), REFUSED, ids=[says for _, says, _ in REFUSED])
@pytest.mark.parametrize("kernel", [k01_triton, k02_fragments], ids=["k01", "k02"])
def test_what_a_launcher_refuses(kernel, refusal, says, other):
    with pytest.raises(refusal, match=f"^{re.escape(says)}$"):
        kernel.skinny_gemm_w4(**given() | other)


@pytest.mark.parametrize(("kernel", "most"), [(k01_triton, 128), (k02_fragments, 32)])
def test_rows_past_the_most(kernel, most):
    with pytest.raises(ValueError, match=f"^x: expected M <= {most}, got M={most + 1}$"):
        kernel.skinny_gemm_w4(**given(M=most + 1))


def test_other_tickets_are_refused():
    for refusal, says, tickets in (
        (TypeError, "tickets: expected int32, got float32", torch.zeros(2)),
        (ValueError, "tickets: expected (T,) with T=2, got (3,)", torch.zeros(3, dtype=torch.int32)),
    ):
        with pytest.raises(refusal, match=f"^{re.escape(says)}$"):
            k02_fragments.skinny_gemm_w4(**given(), tickets=tickets)


def test_the_kernel_is_made_ready_as_its_cut_wants_it(monkeypatch):
    """On an H200, with a stand-in for the driver: shared memory, macros, grid, and when it may begin."""
    asked = []

    def prepare(path, name, **how):
        def launch(grid, *args):
            asked.append((grid, args[4] is None, how))

        return launch

    for kept in (k02_fragments._cut, k02_fragments._prepared):
        kept.cache_clear()
    monkeypatch.setattr(k02_fragments, "prepare", prepare)
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda device: SimpleNamespace(multi_processor_count=132)
    )
    k02_fragments.skinny_gemm_w4(**given(M=1, N=4096, K=4096))
    k02_fragments.skinny_gemm_w4(**given(M=9, N=4096, K=14336, dtype=torch.bfloat16), early=True)
    (one, no_parts, how), (two, none, more) = asked
    for kept in (k02_fragments._cut, k02_fragments._prepared):
        kept.cache_clear()

    assert (one, no_parts, how["block"], how["before_the_last_grid_ended"]) == ((132, 1, 1), True, 512, False)
    assert how["defines"] == {"WEIGHTS": "Fp16Weights", "EIGHTS": 1, "WARPS": 16, "STAGES": 3, "HELD": 2}
    assert how["shared_bytes"] == 16 * 3 * 2304 + 2 * 16 * 512
    assert (two, none, more["block"], more["before_the_last_grid_ended"]) == ((33, 4, 1), False, 448, True)
    assert more["defines"] == {"WEIGHTS": "Bf16Weights", "EIGHTS": 2, "WARPS": 14, "STAGES": 3, "HELD": 2}
