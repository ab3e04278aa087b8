"""The Triton kernels compiled for cards that are not here: the right instructions, room enough, no spills."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from who_does_it import PAGE, faults_of_counts

from course_kernels.decode_attention import k01_one_program, k02_split
from course_kernels.nvfp4 import quantise
from course_kernels.paged_attention.k01_gather import LARGE, OF_8
from course_kernels.qkv_rope import k02_fused
from course_kernels.rms_norm import k03_ahead
from course_kernels.sampling import k01_gumbel, k02_threshold
from course_kernels.skinny_gemm import k01_one_program as k01_few_rows
from course_kernels.sparse_attention import k02_in_pieces, parts
from course_kernels.speculative_sampling import k02_one_launch as accept

COMPILER = Path(__file__).with_name("triton_compiler.py")
SHARED_BYTES = {80: 163 * 1024, 86: 99 * 1024, 89: 99 * 1024, 90: 227 * 1024, 100: 227 * 1024, 120: 99 * 1024}
CAPABILITIES = tuple(SHARED_BYTES)
WIDE = "LDGSTS.E.BYPASS.128"  # 16 bytes from memory to shared memory, past L1

# All is compiled by one process, whatever is asked of it.
pytestmark = pytest.mark.kept(PAGE, together=True)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    environment = {n: v for n, v in os.environ.items() if n != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path_factory.mktemp("triton"))
    done = subprocess.run([sys.executable, str(COMPILER)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_everything_fits_the_card(compiled, capability):
    alike = {86: 89}.get(capability, capability)  # 86 gets the same tiles, and has as much shared memory
    mine = {n: r for n, r in compiled.items() if n.endswith(f"-{alike}")}

    assert len(mine) >= 2
    assert {n: r["shared"] for n, r in mine.items() if r["shared"] > SHARED_BYTES[capability]} == {}


def test_hopper_multiplies_by_warpgroup_and_copies_by_tma(compiled):
    for name in ("2-128-causal", "2-128-full", "2-64-causal", "2-64-full"):
        result = compiled[f"attention-{name}-90"]

        assert result["HGMMA"] > 0
        assert result["UTMALDG"] > 0
        assert result["UTMASTG"] > 0
        assert "LDG" not in result  # K and V come by TMA alone


def test_hopper_spills_nothing(compiled):
    spills = {
        name: sum(compiled[f"attention-{name}-90"].get(n, 0) for n in ("LDL", "STL"))
        for name in ("2-128-causal", "2-128-full", "2-64-causal", "2-64-full")
    }

    assert set(spills.values()) == {0}


def test_attention_of_8_bits_multiplies_by_warpgroup_and_spills_nothing(compiled):
    for mask in ("causal", "full"):
        result = compiled[f"attention_fp8-{mask}-90"]

        assert result["QGMMA"] == 12  # 128 of K in four, 64 keys in two; with a mask and without
        assert result["UTMALDG"] > 0
        assert {"HGMMA", "LDL", "STL"}.isdisjoint(result)
        assert 65536 // (128 * result["registers"]) == 3  # programs on a multiprocessor
    for turned in (False, True):  # V comes out in vectors, turned or not
        result = compiled[f"round_blocks-{turned}-90"]
        assert result["128"] >= 8
        assert {"LDL", "STL"}.isdisjoint(result)


def test_fp32_on_hopper_keeps_to_the_tensor_cores(compiled):
    for D in (64, 128):
        assert compiled[f"attention-4-{D}-full-90"]["HGMMA"] > 0


def test_older_cards_copy_ahead_without_tma(compiled):
    for capability in (80, 89):
        result = compiled[f"attention-2-128-causal-{capability}"]

        assert result["HMMA"] > 0
        assert result["LDGSTS"] > 0
        assert "UTMALDG" not in result
        assert result.get("STL", 0) < 20  # a few, outside the loop or cheap; a tile too large has hundreds


def test_blackwell_uses_its_own_multiply(compiled):
    assert compiled["attention-2-128-causal-100"]["UTCHMMA"] > 0
    assert compiled["attention-2-128-causal-120"]["HMMA"] > 0


def test_the_specialised_kernel_gives_its_warps_roles(compiled):
    for D in (64, 128):
        for mask in ("causal", "full"):
            result = compiled[f"specialised-{D}-{mask}-90"]

            assert result["HGMMA"] > 0
            assert result["UTMALDG"] > 0
            assert result["USETMAXREG"] > 0
            assert result.get("LDL", 0) <= 2  # one value may wait outside of the loops


def test_multiplies_use_what_the_card_has(compiled):
    for element_bytes in (2, 4):
        hopper = compiled[f"gemm-{element_bytes}-90"]

        assert min(hopper[n] for n in ("HGMMA", "UTMALDG", "UTMASTG")) > 0
        assert "LDG" not in hopper
        for capability in (80, 89, 120):
            assert compiled[f"gemm-{element_bytes}-{capability}"]["HMMA"] > 0
    assert compiled["gemm-2-80"]["LDGSTS"] > 0
    assert compiled["gemm_fp8-90"]["QGMMA"] > 0
    assert compiled["gemm_fp8-90"]["UTMALDG"] > 0
    for form in ("contiguous", "masked"):
        result = compiled[f"gemm_grouped-{form}-90"]
        assert result["QGMMA"] == 4  # 128 of K, then their sums leave the tensor cores
        assert result[WIDE] > 0


def test_multiplies_spill_nothing(compiled):
    spills = {n: r.get("LDL", 0) + r.get("STL", 0) for n, r in compiled.items() if n.startswith("gemm")}

    assert {n: count for n, count in spills.items() if count} == {}


@pytest.mark.parametrize("rung", ["triton", "gluon"])
def test_rungs_of_w3_do_in_machine_code_what_its_page_says(compiled, rung):
    text, counts = PAGE.read_text(encoding="utf-8"), compiled[f"rung-{rung}"]
    assert faults_of_counts(text, rung, counts) == []
    assert faults_of_counts(text, rung, counts | {"LDG": 1})
    if rung == "triton":  # what the compiler does unasked, and what it does not
        assert faults_of_counts(text, rung, counts | {"SYNCS": 0})
        assert faults_of_counts(text, rung, counts | {"USETMAXREG": 2})


DECODE = ("k01-2-4-128", "k02-2-4-128", "k02-2-1-128", "k02-2-8-128", "k02-2-32-128", "k02-2-4-64")


@pytest.mark.parametrize("name", DECODE)
def test_a_step_of_decoding_copies_ahead_in_wide_loads_and_spills_nothing(compiled, name):
    result = compiled[f"decode_attention-{name}-90"]

    assert result["LDGSTS"] == result["LDGSTS.E.BYPASS.128"] > 0
    assert result["HMMA"] > 0
    assert result.get("LDL", 0) + result.get("STL", 0) == 0


def test_as_many_programs_of_a_step_of_decoding_are_resident_as_is_said(compiled):
    for name in DECODE:
        result = compiled[f"decode_attention-{name}-90"]
        shared = result["shared"] + 1024  # what the driver keeps for itself in every block
        if name != "k02-2-32-128":  # exchanges more between its warps
            assert (SHARED_BYTES[90] + 1024) // shared == k02_split.RESIDENT
        assert 65536 // (result["registers"] * 32 * k01_one_program.WARPS) >= k02_split.RESIDENT


def test_the_last_program_is_found_by_one_atomic(compiled):
    for capability in (80, 89, 90, 100, 120):
        assert compiled[f"decode_attention-k02-2-4-128-{capability}"]["ATOMG"] == 1
        assert "ATOMG" not in compiled[f"decode_attention-k01-2-4-128-{capability}"]


@pytest.mark.parametrize("name", ["one_program_kernel-128", "split_kernel-128", "split_kernel-16"])
def test_one_row_for_all_heads_spills_nothing_and_fits(compiled, name):
    result = compiled[f"mla_decode-{name}-90"]

    assert result["LDGSTS"] > 0
    # 16 heads are too few rows for a warpgroup's product.
    assert ("HGMMA" in result) == name.endswith("128")
    assert result.get("LDL", 0) + result.get("STL", 0) == 0
    assert result["shared"] <= SHARED_BYTES[90]


BACKWARD = [("keys", 2, 128), ("rows", 2, 128), ("one_pass", 2, 128), ("one_pass", 2, 64)]


@pytest.mark.parametrize(("which", "element_bytes", "D"), BACKWARD)
def test_attention_backward_on_hopper_multiplies_by_warpgroup_and_spills_little(
    compiled, which, element_bytes, D
):
    result = compiled[f"attention_backward-{which}-{element_bytes}-{D}-90"]

    assert result["HGMMA"] > 0
    assert "HMMA" not in result  # no tile that a warpgroup is too large for
    # Two sums of 128 x 128, and S, dP and a part of dQ beside them, are more than 255 registers of 256 threads.
    assert result.get("LDL", 0) <= (80 if which == "one_pass" and D == 128 else 16)


def test_hopper_adds_to_dq_by_the_copy_engine_and_older_cards_by_atomics(compiled):
    for D in (64, 128):
        hopper = compiled[f"attention_backward-one_pass-2-{D}-90"]

        assert hopper["UTMAREDG"] == 2  # on the diagonal, and past it
        assert hopper["UTMALDG"] > 0
        assert {"LDG", "RED", "REDG", "ATOMG"}.isdisjoint(hopper)
    older = compiled["attention_backward-one_pass-4-128-89"]

    assert older["RED"] > 0
    assert older["HMMA"] > 0


def test_nobody_shares_a_sum_in_the_teaching_kernel(compiled):
    for which in ("keys", "rows"):
        assert {"RED", "REDG", "ATOMG", "UTMAREDG"}.isdisjoint(
            compiled[f"attention_backward-{which}-2-128-90"]
        )


def test_attention_over_packed_sequences_copies_ahead_and_spills_nothing(compiled):
    hopper, widest = (compiled[f"attention_general-{name}"] for name in ("2-96-90", "4-256-89"))

    assert hopper["HGMMA"] > 0
    assert hopper["LDGSTS"] == hopper["LDGSTS.E.BYPASS.128"] > 0
    assert hopper.get("LDL", 0) + hopper.get("STL", 0) == 0
    assert widest["HMMA"] > 0
    assert widest.get("LDL", 0) < 60  # 256 columns of float32, each split in two


def test_wider_groups_and_fp32_fit_a_step_of_decoding(compiled):
    for name in ("k02-2-64-128", "k02-4-4-128"):
        result = compiled[f"decode_attention-{name}-90"]

        assert result.get("HMMA", 0) + result.get("HGMMA", 0) > 0
        assert result.get("STL", 0) < 20


@pytest.mark.parametrize("bits", [16, 8])
@pytest.mark.parametrize("rows", k01_few_rows.TILES)
def test_few_rows_are_the_narrow_side_of_a_warpgroup_s_multiply_and_copies_are_wide(compiled, rows, bits):
    result = compiled[f"skinny_gemm-{bits}-k02-{rows}-90"]
    tile = k01_few_rows.TILES[rows]

    assert result["HGMMA" if bits == 16 else "QGMMA"] > 0
    assert "HMMA" not in result
    assert result["LDGSTS"] == result["LDGSTS.E.BYPASS.128"] > 0
    assert result.get("LDL", 0) + result.get("STL", 0) == 0
    assert result["ATOMG"] == 1
    # As many programs as are said fit on a multiprocessor, and enough bytes of the weights are then under way.
    assert (SHARED_BYTES[90] + 1024) // (result["shared"] + 1024) >= tile.resident
    assert 65536 // (-(-result["registers"] // 8) * 8 * 32 * tile.warps) >= tile.resident
    assert tile.block_n * tile.block_k * 2 * (tile.stages - 1) * tile.resident >= 64 * 1024


def test_dot_products_load_wide_and_spill_nothing(compiled):
    for rows in (1, 2, 4):
        result = compiled[f"skinny_gemm-16-k03-{rows}-90"]

        assert result["LDG"] > 0
        assert {"LDGSTS", "HMMA", "HGMMA", "LDL", "STL"}.isdisjoint(result)


@pytest.mark.parametrize("weights", ["4", "nvfp4"])
def test_four_bits_in_triton_are_multiplied_by_a_warpgroup(compiled, weights):
    result = compiled[f"skinny_gemm-{weights}-k01-16-90"]

    assert result["HGMMA"] > 0
    assert result.get("LDL", 0) + result.get("STL", 0) == 0


def test_blocks_of_four_bits_move_whole_vectors_and_spill_nothing(compiled):
    """Of a tensor of 16 bits: two vectors of 16 bytes for each thread, into codes and out of them."""
    for name in ("quantise-NVFP4", "quantise-MXFP4", "dequantise-NVFP4", "largest"):
        result = compiled[f"{name}-90"]

        assert result["128"] == 2
        assert spilled(result) == 0
        assert (
            65536 // (result["registers"] * 32 * quantise.WARPS) >= 8
        )  # half of the threads a multiprocessor takes
    assert [compiled[f"quantise-{name}-90"]["LDG"] for name in ("NVFP4", "MXFP4")] == [
        3,
        2,
    ]  # and the second scale
    assert compiled["largest-90"]["ATOMG"] == 1


def spilled(result):
    return result.get("LDL", 0) + result.get("STL", 0)


def test_a_norm_asks_for_all_of_its_row_in_vectors_before_it_waits(compiled):
    """x, r and g in vectors of 16 bytes, all asked for before the first barrier; y and s so, too."""
    for name, vectors in (("k02", 4), ("k02-pdl", 1)):  # of a thread, of one matrix
        result = compiled[f"rms_norm-{name}-90"]

        assert (result["asked"], result["LDG"], result["STG"]) == (3 * vectors, 3 * vectors, 2 * vectors)
        assert result["128"] == result["LDG"] + result["STG"]
        assert spilled(result) == 0


def test_a_part_of_a_row_comes_in_vectors_and_a_step_asks_for_four(compiled):
    result = compiled["layer_norm-part-90"]

    assert (result["LDG"], result["128"]) == (8, 8)  # of a step, and of the last numbers
    assert spilled(result) == 0


def test_a_row_that_is_kept_is_asked_for_at_once_and_four_fit_beside_one_another(compiled):
    """Four vectors each of x, g and b before the first barrier, and 64 registers or fewer a thread."""
    result = compiled["layer_norm-kept-0-90"]

    assert (result["asked"], result["LDG"], result["STG"], result["128"]) == (12, 12, 4, 16)
    assert spilled(result) == 0
    assert 65536 // (result["registers"] * 256) >= 4


def test_two_buffers_are_filled_by_cp_async_and_two_blocks_fit(compiled):
    one, two = compiled["layer_norm-kept-1-90"], compiled["layer_norm-kept-2-90"]

    assert "LDGSTS" not in one
    assert two[WIDE] == two["LDGSTS"] == 3 * 2  # two rows before the loop and one in it, two vectors a thread
    assert two["LDG"] == 2 * 2  # g and b
    assert 2 * 4 * 4096 <= two["shared"] < 2.1 * 4 * 4096
    assert spilled(one) == spilled(two) == 0
    assert 65536 // (512 * max(one["registers"], two["registers"])) >= 2


def test_a_convolution_is_on_tensor_cores_in_tf32_alone(compiled):
    rough, exact = compiled["conv2d-tf32-90"], compiled["conv2d-ieee-90"]

    assert rough["HGMMA"] > 0
    assert exact.get("HGMMA", 0) + exact.get("HMMA", 0) == 0
    assert spilled(rough) == spilled(exact) == 0


def test_a_norm_that_looks_ahead_asks_for_the_next_row_before_it_adds_up_this_one(compiled):
    result = compiled["rms_norm-k03-90"]

    assert result["asked"] == result["LDG"] == 5 * 2  # two vectors each of two rows of x and of r, and of g
    assert result["128"] == result["LDG"] + result["STG"]
    assert spilled(result) == 0
    assert 65536 // (result["registers"] * 32) >= k03_ahead.RESIDENT_WARPS


def test_silu_moves_whole_vectors(compiled):
    result = compiled["silu-90"]

    assert (result["LDG"], result["STG"], result["128"]) == (2, 2, 4)
    assert spilled(result) == 0


def test_a_gate_moves_whole_vectors(compiled):
    result = compiled["swiglu-90"]

    assert (result["LDG"], result["STG"], result["128"]) == (4, 2, 6)
    assert spilled(result) == 0
    assert spilled(compiled["swiglu-pdl-90"]) == 0


QKV = ("2-1-1", "2-32-2", "4-32-2")


@pytest.mark.parametrize("name", QKV)
def test_the_beginning_of_a_layer_streams_its_weights_and_spills_nothing(compiled, name):
    result = compiled[f"qkv_rope-{name}-90"]

    # g comes in narrower pieces: one copy for each step that is on its way, and one in the loop.
    assert result["LDGSTS"] - result[WIDE] <= k02_fused.STAGES["-32-" in name]
    assert result[WIDE] > 0
    assert result["HMMA"] > 0
    assert spilled(result) == 0
    assert result.get("ATOMG", 0) == (name != "2-1-1")


def test_turned_it_is_a_product_of_a_warpgroup(compiled):
    result = compiled["qkv_rope-turned-90"]

    assert result["HGMMA"] > 0
    assert "HMMA" not in result
    assert spilled(result) == 0


def test_all_programs_of_the_beginning_of_a_layer_fit_on_the_card_at_once(compiled):
    """192 of them on 132 multiprocessors: each must hold two."""
    for name in ("2-1-1", "2-32-2"):
        result = compiled[f"qkv_rope-{name}-90"]

        assert (SHARED_BYTES[90] + 1024) // (result["shared"] + 1024) >= 2
        assert 65536 // (result["registers"] * 32 * k02_fused.WARPS) >= 2


def test_who_may_begin_early_waits_before_it_reads_what_others_wrote(compiled):
    """PREEXIT lets the next kernel begin, ACQBULK waits for the one before; weights alone are asked for in between."""
    norm, gate, layer = (
        compiled[f"{name}-pdl-90"]["order"] for name in ("rms_norm-k02", "swiglu", "qkv_rope")
    )

    assert norm[:3] == ["PREEXIT", "LDG", "ACQBULK"]  # g
    assert gate[:3] == ["PREEXIT", "ACQBULK", "LDG"]
    assert layer[:4] == ["PREEXIT", "CCTL", "ACQBULK", "LDGSTS"]
    for name in ("rms_norm-k02", "swiglu", "qkv_rope-2-1-1"):
        assert not {"PREEXIT", "ACQBULK", "CCTL"} & set(compiled[f"{name}-90"]["order"])


PAGED = (
    "gather_kernel-2-4-128-16",
    "split_kernel-2-4-128-16",
    "split_kernel-2-8-64-256",
    "split_kernel-2-32-128-8",
)
PAGED += ("even_kernel-2-4-128-16",)


@pytest.mark.parametrize("name", PAGED)
def test_pages_of_16_tokens_are_read_in_wide_loads_ahead_of_their_turn(compiled, name):
    """Whatever a page is, sixteen bytes at a time, past L1; and two steps ahead, where the table holds nothing up."""
    result = compiled[f"paged_attention-{name}-90"]

    assert result["LDGSTS.E.BYPASS.128"] > 0
    assert result["HMMA"] > 0
    assert result.get("LDL", 0) + result.get("STL", 0) <= (16 if "-32-" in name else 0)
    if "-2-4-" in name and not name.startswith("gather"):
        assert result["LDGSTS"] == result["LDGSTS.E.BYPASS.128"]
        # Two steps of keys and of values lie there, and little else.
        of_steps = 2 * 2 * LARGE.step_bytes
        assert of_steps <= result["shared"] < 1.1 * of_steps
        assert resident(result, LARGE.warps) == LARGE.resident
        assert result["ATOMG"] == 1


def resident(result, warps):
    """How many programs of so many warps a multiprocessor has shared memory and registers for."""
    by_memory = (SHARED_BYTES[90] + 1024) // (result["shared"] + 1024)
    return min(by_memory, 65536 // (result["registers"] * 32 * warps))


@pytest.mark.parametrize(("name", "spilled"), [("split", 0), ("even", 24)])
def test_three_programs_over_pages_of_8_bits_fit(compiled, name, spilled):
    result = compiled[f"paged_attention-{name}_kernel-1-4-128-16-90"]

    assert result["LDGSTS.E.BYPASS.128"] > 0
    assert result.get("LDL", 0) + result.get("STL", 0) <= spilled  # most of it outside of the loop
    assert resident(result, OF_8.warps) == OF_8.resident


def test_many_new_tokens_take_the_product_of_a_warpgroup(compiled):
    for cache_bytes in (2, 1):
        result = compiled[f"paged_prefill-{cache_bytes}-90"]

        assert result["HGMMA"] > 0
        assert result["LDGSTS"] == result["LDGSTS.E.BYPASS.128"] > 0
        assert result.get("LDL", 0) + result.get("STL", 0) == 0
    assert compiled["paged_prefill-2-89"]["HMMA"] > 0


@pytest.mark.parametrize("kernel", ["dense", "gathered"])
def test_64_heads_multiply_by_warpgroup_with_two_steps_on_chip(compiled, kernel):
    result = compiled[f"sparse_attention-{kernel}_kernel-64-90"]
    of_queries, of_steps = 2 * 64 * 576, 2 * 2 * parts.WIDE.step * 576

    assert result["HGMMA"] > 0
    assert result["LDGSTS"] == result[WIDE] > 0  # rows of the cache, sixteen bytes at a time, past L1
    assert of_queries + of_steps <= result["shared"] < 1.01 * (of_queries + of_steps)
    assert result.get("LDL", 0) + result.get("STL", 0) == 0
    assert resident(result, parts.WIDE.warps) == parts.WIDE.resident


def test_the_small_kernels_of_sparse_attention_find_room(compiled):
    narrow = compiled["sparse_attention-gathered_kernel-16-90"]
    scores = compiled["sparse_attention-scores_kernel-0-90"]

    assert narrow["HMMA"] > 0
    assert scores["HGMMA"] > 0
    for result in (narrow, scores):
        assert result["LDGSTS"] == result[WIDE] > 0
    assert resident(narrow, parts.NARROW.warps) == parts.NARROW.resident
    assert resident(scores, k02_in_pieces.WARPS) == k02_in_pieces.RESIDENT
    for name in ("gathered_kernel-16", "scores_kernel-0", "merge_kernel-0", "place_kernel-0", "digit_kernel"):
        result = compiled[f"sparse_attention-{name}-90"]
        assert result.get("LDL", 0) + result.get("STL", 0) == 0, name


def test_experts_are_multiplied_by_warpgroup_where_they_have_rows_and_spill_nothing(compiled):
    """The weights come by TMA in all of them; rows of x that lie scattered by copies of 16 bytes."""
    mine = {name: result for name, result in compiled.items() if name.startswith("moe-")}
    for name, result in mine.items():
        assert result.get("LDL", 0) + result.get("STL", 0) == 0, name
        if name.endswith("-90") and "router" not in name:
            assert result["UTMALDG"] > 0, name
            assert ("HGMMA" in result) == ("-128-" in name), (
                name
            )  # below 64 rows there is no warpgroup's multiply
        if "gate_up" in name or "router" in name:
            assert result["LDGSTS"] == result[WIDE] > 0, name
        else:
            assert "LDGSTS" not in result, name
    for rows in (16, 128):
        shared = mine[f"moe-gate_up-{rows}-90"]["shared"] + 1024
        assert (SHARED_BYTES[90] + 1024) // shared == {16: 3, 128: 1}[rows]
    assert mine["moe-gate_up-128-89"]["HMMA"] > 0


@pytest.mark.parametrize("short", ["bf16", "fp32"])
def test_sampling_reads_in_wide_loads_and_spills_nothing(compiled, short):
    gumbel, threshold = (compiled[f"sampling-{name}_kernel-{short}-90"] for name in ("gumbel", "threshold"))

    for result in (gumbel, threshold):
        assert result["LDG"] > 0
        assert result.get("LDL", 0) + result.get("STL", 0) == 0
    assert gumbel["ATOMG"] == 1
    assert 65536 // (gumbel["registers"] * 32 * k01_gumbel.WARPS) >= k01_gumbel.RESIDENT
    assert threshold["registers"] * 32 * k02_threshold.WARPS <= 65536
    assert gumbel["shared"] < 1024  # words find their tokens in registers, and cross no shared memory


def test_accepting_reads_ahead_in_wide_copies_and_spills_nothing(compiled):
    large, small = (compiled[f"speculative_sampling-{V}-90"] for V in (128256, 264))

    for result in (large, small):
        assert result.get("LDL", 0) + result.get("STL", 0) == 0
    assert large["registers"] * 32 * accept.WARPS <= 65536
    assert large["LDGSTS"] == large["LDGSTS.E.BYPASS.128"] > 0
    # Two rows of every block but the one that is added up.
    ahead = (accept.AHEAD.value - 1) * 2 * 4 * accept.BLOCK
    assert ahead <= large["shared"] < ahead + 4096


def multiplied_by(compiled, form, capability):
    """The multiply in the PTX of `tl.dot_scaled`."""
    found = compiled[f"dot_scaled-{form}-{capability}"]
    multiplies = [name for name in found if "mma" in name]
    assert len(multiplies) == 1, found
    return multiplies[0]


@pytest.mark.parametrize(
    ("form", "on_a_b200", "on_an_rtx_50"),
    [
        ("nvfp4", "mxf4nvf4.block_scale.scale_vec::4X", "mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"),
        ("mxfp4", "mxf4.block_scale.scale_vec::2X", "mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0"),
        ("mxfp8", "mxf8f6f4.block_scale.scale_vec::1X", "mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0"),
    ],
)  # fmt: skip
def test_a_scaled_product_is_one_instruction_on_blackwell(compiled, form, on_a_b200, on_an_rtx_50):
    assert multiplied_by(compiled, form, 100) == f"tcgen05.mma.cta_group::1.kind::{on_a_b200}"
    depth = 64 if form != "mxfp8" else 32
    wanted = f"mma.sync.aligned.m16n8k{depth}.row.col.kind::{on_an_rtx_50}"
    assert multiplied_by(compiled, form, 120) == wanted
    # Scales go to tensor memory from registers: scaled.cu copies them there from shared memory.
    assert not [name for name in compiled[f"dot_scaled-{form}-100"] if "tcgen05.cp" in name]
    assert [name for name in compiled[f"dot_scaled-{form}-100"] if "tcgen05.st" in name]


def test_triton_tells_a_b200_what_our_kernels_tell_it(compiled):
    """The numbers of descriptors.cuh for 128 x 128, bit by bit in test_blackwell.py, as another compiler has them."""
    sizes = 128 // 8 << 17 | 128 // 16 << 24
    by_k = 1 << 16  # B as Triton has it in shared memory; ours lies along k, as numbers of four bits have to
    assert compiled["dot_scaled-nvfp4-100"]["how"] == [1 << 7 | 1 << 10 | sizes]
    assert compiled["dot_scaled-mxfp8-100"]["how"] == [
        1 << 23 | which << 4 | which << 29 | by_k | sizes for which in range(4)
    ]


def test_hopper_multiplies_what_was_scaled_in_bfloat16_or_not_at_all(compiled):
    for form in ("mxfp4", "mxfp8"):
        assert multiplied_by(compiled, form, 90).endswith(".f32.bf16.bf16")
        assert multiplied_by(compiled, form, 90).startswith("wgmma.mma_async.")
    assert compiled["dot_scaled-nvfp4-90"]["error"] == "PassManager::run failed"
