"""Our kernels for chips that are not here: each record holds, its counts are those of its code, and both can fail.

No compiler is asked: `nox -s chips` did that, and this reads what it left.
"""

import ast
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch

from course_chips import __main__ as command
from course_chips import apple, counting, fpga, intel, kept, listing, ptx_on_cpu, stale, tile_languages
from course_site.records import renames

TPUS = [chip for chip, (module, _) in kept.CHIPS.items() if module == "tpu"]
AMD = [chip for chip, (module, _) in kept.CHIPS.items() if module == "amd"]
NVIDIA = [chip for chip, (module, _) in kept.CHIPS.items() if module == "nvidia"]
READ_BY_LISTING = {*TPUS, *AMD, *NVIDIA}
# What is in a line, by the module that wrote it.
NAMES = listing.NAMES | {"fpga": fpga.names, "apple": apple.names, "intel": intel.names}
RECORDS = {chip: kept.read(chip) for chip in kept.CHIPS}
KERNELS = [(chip, name) for chip, record in RECORDS.items() for name in record["kernels"]]


def counted(chip, kernel, *begins):
    return listing.beginning(RECORDS[chip]["kernels"][kernel]["counts"], *begins)


# --- a record holds -------------------------------------------------------------------------------


@pytest.mark.parametrize("chip", kept.CHIPS)
def test_a_record_holds(chip):
    assert stale.reasons(chip) == [], f"compile it anew: nox -s chips -- {chip}"


@pytest.mark.parametrize("chip", kept.CHIPS)
def test_a_record_says_what_made_it_and_names_no_machine(chip):
    record = RECORDS[chip]
    assert (record["chip"], record["title"]) == (chip, kept.CHIPS[chip][1])
    assert record["command"] == f"nox -s chips -- {chip}"
    named = {name for name in record["packages"] if name != "python"}
    assert named <= set(stale.pinned())
    named = (*record["kernels"].values(), *record.get("refused", {}).values())
    assert {one["source"] for one in named} <= set(record["sources"])
    text = kept.path_of(chip).read_text()
    text += "\n".join(
        line for one in record["kernels"].values() if one["listing"] for line in kept.unpacked(one["listing"])
    )
    assert not re.search(
        r"__hip_cuid_\w|site-packages|/tmp/|/home/|/root/|\.nox|\.py\b.*:\d",
        text.replace("k03_mma_sync.py", ""),
    )


def copied(tmp_path):
    """The files that decide records, in a folder of their own."""
    for path in {path for chip in kept.CHIPS for path in RECORDS[chip]["sources"]} | {"pyproject.toml"}:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(kept.ROOT / path, tmp_path / path)
    (tmp_path / "records").mkdir()
    shutil.copy(kept.ROOT / "records/renames.toml", tmp_path / "records")
    renamed = renames.load(kept.ROOT)
    for path in map(renamed.present, renamed.entries.values()):  # each has to be there
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        if not (tmp_path / path).exists():
            (tmp_path / path).symlink_to(kept.ROOT / path)
    return tmp_path


def test_a_change_of_meaning_is_seen_and_a_comment_is_not(tmp_path):
    root = copied(tmp_path)
    assert [stale.reasons(chip, root) for chip in kept.CHIPS] == [[]] * len(kept.CHIPS)

    def edited(path, old, new):
        text = (root / path).read_text()
        assert old in text
        (root / path).write_text(text.replace(old, new, 1))
        return {chip for chip in kept.CHIPS if stale.reasons(chip, root) != []}

    assert edited("src/course_chips/tpu_multiply.py", '"""Matrix multiply', '"""A matrix multiply') == set()
    attention = "src/course_kernels/attention/k02_teaching.cu"
    assert edited(attention, "// region setup", "// region begin") == set()
    assert edited(attention, "BLOCK_N = 16", "BLOCK_N = 32") == {*AMD, *NVIDIA}
    assert stale.reasons("sm_80", root) == [f"{attention} has changed"]
    assert edited("src/course_chips/tpu_multiply.py", "== 0", "== 1") == READ_BY_LISTING
    assert stale.reasons("tpu_7x", root) == ["src/course_chips/tpu_multiply.py has changed"]


def test_an_included_header_counts(tmp_path):
    root = copied(tmp_path)
    header = root / "src/course_kernels/cuda/matrix_instructions.cuh"
    header.write_text(header.read_text().replace("volatile", "", 1))
    assert {chip for chip in kept.CHIPS if stale.reasons(chip, root)} == {*NVIDIA}


def test_another_version_of_a_compiler_is_seen(tmp_path):
    root = copied(tmp_path)
    project = root / "pyproject.toml"
    project.write_text(project.read_text().replace('"libtpu==0.0.42.1"', '"libtpu==0.0.50.1"'))
    assert stale.reasons("tpu_v5e", root) == ["libtpu 0.0.42.1, pinned 0.0.50.1"]
    assert stale.reasons("gfx942", root) == []


def test_the_compilers_of_the_tests_are_the_same_here():
    tests = (kept.ROOT / "noxfile.py").read_text()
    named = {name: version for name, version in stale.pinned().items() if f'"{name}==' in tests}
    assert {"torch", "triton", "numpy", "cuda-core", "nvidia-cuda-nvrtc", "nvidia-cuda-nvdisasm"} <= set(
        named
    )
    assert [name for name, version in named.items() if f'"{name}=={version}"' not in tests] == []


# --- its counts are those of its code -------------------------------------------------------------


def differs(chip, kernel):
    """What a record says of a kernel and its own listing does not; {} for the same."""
    kind, said = kept.CHIPS[chip][0], kernel
    lines = kept.unpacked(said["listing"])
    code = [line for line in lines if kind == "tpu" or NAMES[kind](line)]  # a bundle may be empty
    found = {"counts": counting.counts(NAMES[kind], lines), "lines": len(code)}
    if chip in READ_BY_LISTING:
        assert listing.counts(kind, lines) == found["counts"]
        found["excerpt"] = listing.excerpt(kind, lines, len(said["excerpt"]))
    else:
        found["excerpt"] = intel.excerpt(lines) if kind == "intel" else lines
    return {name: value for name, value in found.items() if said[name] != value}


@pytest.mark.parametrize(("chip", "kernel"), KERNELS)
def test_counts_lines_and_excerpt_are_those_of_the_listing(chip, kernel):
    said = RECORDS[chip]["kernels"][kernel]
    if chip in TPUS and kernel.endswith("_jax"):  # thousands of bundles: counted, and not kept
        assert said["listing"] == ""
        assert said["lines"] == sum(said["parts"].values())
    else:
        assert differs(chip, said) == {}


@pytest.mark.parametrize(
    ("chip", "kernel"),
    [
        ("tpu_v5e", "multiply_pallas"),
        ("gfx950", "multiply_hip"),
        ("sm_90", "attention_triton"),
        ("sm_100", "multiply_cute_tcgen05"),
        ("sm_120", "multiply_cutile"),
        ("fpga", "attention_hls"),
        ("apple", "attention_ios16"),
        ("intel_xe_hpc", "multiply_dpas"),
    ],
)
def test_a_count_that_was_edited_and_a_line_that_is_missing_are_seen(chip, kernel):
    said = json.loads(json.dumps(RECORDS[chip]["kernels"][kernel]))
    first = next(iter(said["counts"]))
    said["counts"][first] += 1
    assert list(differs(chip, said)) == ["counts"]
    said["counts"][first] -= 1
    assert differs(chip, said) == {}
    kind = kept.CHIPS[chip][0]
    lines = kept.unpacked(said["listing"])
    products = [
        at
        for at, line in enumerate(lines)
        if any(n.startswith((*listing.MATRIX, "nnet::einsum", "matmul")) for n in NAMES[kind](line))
    ]
    del lines[products[0]]
    said["listing"] = kept.packed(lines)
    assert {"counts", "lines"} <= set(differs(chip, said))


# --- what a chip is about is in its code ----------------------------------------------------------

MATRIX = {
    "gfx942": ("v_mfma_f32_32x32x8_bf16",),
    "gfx950": ("v_mfma_f32_32x32x16_bf16",),
    "gfx1250": ("v_wmma_f32_16x16x32_bf16",),
    "sm_80": ("HMMA.16816.F32.BF16",),
    "sm_89": ("HMMA.16816.F32.BF16",),
    "sm_90": ("HGMMA.",),
    "sm_100": ("UTCHMMA",),
    "sm_120": ("HMMA.16816.F32.BF16",),
}


@pytest.mark.parametrize("chip", MATRIX)
@pytest.mark.parametrize("kernel", ["multiply_triton", "attention_triton"])
def test_triton_multiplies_by_what_the_chip_has_and_by_nothing_else(chip, kernel):
    assert counted(chip, kernel, *MATRIX[chip]) > 0
    assert counted(chip, kernel, *MATRIX[chip]) == counted(chip, kernel, *listing.MATRIX)


@pytest.mark.parametrize("chip", [*AMD, *NVIDIA])
@pytest.mark.parametrize("kernel", ["multiply_plain", "attention_plain"])
def test_a_plain_kernel_multiplies_no_matrices(chip, kernel):
    assert counted(chip, kernel, *listing.MATRIX) == 0
    assert counted(chip, kernel, "FFMA", "v_fma", "v_pk_fma", "v_dual_fma", "v_fmac") > 0


def test_in_hip_a_wave_asks_for_as_many_products_as_its_tile_has():
    # 4 x 4 squares of 16 x 16 sums, 32 numbers along K; gfx950 takes all 32 at once.
    assert counted("gfx942", "multiply_hip", "v_mfma_f32_16x16x16_bf16") == 4 * 4 * 32 // 16
    assert counted("gfx950", "multiply_hip", "v_mfma_f32_16x16x32_bf16") == 4 * 4 * 32 // 32


@pytest.mark.parametrize("chip", AMD)
def test_a_wave_has_64_threads_and_on_gfx12_half_of_them(chip):
    found = {one["resources"]["wavefront_size"] for one in RECORDS[chip]["kernels"].values()}
    assert found == {32 if chip == "gfx1250" else 64}
    block = RECORDS[chip]["kernels"]["multiply_triton"]["resources"]["max_flat_workgroup_size"]
    assert block == 8 * found.pop()  # eight warps, whatever a warp is


@pytest.mark.parametrize("chip", NVIDIA)
def test_the_warp_wide_multiply_is_the_same_instruction_on_every_card(chip):
    assert counted(chip, "multiply_mma", "HMMA.16816.F32.BF16") == counted(
        chip, "multiply_mma", *listing.MATRIX
    )


@pytest.mark.parametrize("chip", NVIDIA)
@pytest.mark.parametrize("kernel", ["multiply_cutile", "attention_cutile"])
def test_cutile_multiplies_by_what_the_chip_has_and_fetches_by_what_it_has(chip, kernel):
    assert counted(chip, kernel, *MATRIX[chip]) == counted(chip, kernel, *listing.MATRIX) > 0
    engine, threads = counted(chip, kernel, "UTMALDG"), counted(chip, kernel, "LDGSTS")
    assert (engine > 0, threads > 0) == ((False, True) if chip in ("sm_80", "sm_89") else (True, False))


@pytest.mark.parametrize("chip", NVIDIA)
def test_in_cute_a_warp_asks_for_as_many_products_as_its_tile_has_on_every_card(chip):
    # 64 x 64 sums of a warp, 32 numbers along K; a product is 16 x 8, and 16 along K.
    assert counted(chip, "multiply_cute", "HMMA.16816.F32.BF16") == 64 // 16 * 64 // 8 * 32 // 16
    assert counted(chip, "multiply_cute", *listing.MATRIX) == counted(chip, "multiply_cute", "HMMA.16816.")
    # Both tiles, in vectors of eight numbers, by 128 threads.
    assert counted(chip, "multiply_cute", "LDGSTS") == 32 * (128 + 128) // 8 // 128


@pytest.mark.parametrize(
    ("chip", "kernel", "product"),
    [
        ("sm_90", "multiply_cute_wgmma", "HGMMA.64x256x16.F32.BF16"),
        ("sm_90", "attention_cute_wgmma", "HGMMA."),
        ("sm_100", "multiply_cute_tcgen05", "UTCHMMA"),
    ],
)
def test_in_cute_a_source_of_one_generation_has_its_product_and_no_other(chip, kernel, product):
    assert counted(chip, kernel, product) == counted(chip, kernel, *listing.MATRIX) > 0
    assert counted(chip, kernel, "UTMALDG") > 0 == counted(chip, kernel, "LDGSTS")


@pytest.mark.parametrize("chip", NVIDIA)
def test_on_the_cpu_the_multiply_in_cute_was_right_and_exchanged_matrices_were_seen(chip):
    right, planted = RECORDS[chip]["checked"].values()
    assert right["error"] <= right["allowed"] == 2**-8
    assert planted["error"] > 0.1
    assert list(RECORDS[chip]["checked"])[1].startswith("planted: ")


PTX = """
.visible .entry kernel(
	.param .align 8 .b8 kernel_param_0[24]
)
{
	.reg .b32 	%r<9>;
	ld.param.b64 	%rd1, [kernel_param_0];
	mov.u32 	%r1, %tid.x;
	setp.lt.s32 	%p1, %r1, 0;
	shl.b32 	%r2, %r1, 2;
	cvt.u64.u32 	%rd2, %r2;
	add.s64 	%rd3, %rd1, %rd2;
	@%p1 bra 	$L__BB0_2;
	mov.u32 	%r3, %ctaid.x;
	add.s32 	%r1, %r1, -5;
	shr.s32 	%r4, %r1, 1;
	mad.lo.s32 	%r5, %r3, 100, %r4; // a comment; with a semicolon
$L__BB0_2:
	st.global.b32 	[%rd3+4], %r5;
	ret;
}
"""


def by_ptx(text, threads=32):
    array = np.zeros(256, np.uint8)
    ptx_on_cpu.run(text, [ptx_on_cpu.matrix_parameter(0, 1, 1, 1)], [array], (2, 1), threads, 0)
    return array.view(np.int32)


def test_ptx_is_run_and_what_a_card_would_refuse_is_refused():
    found = by_ptx(PTX)
    assert found[:33].tolist() == [0, *(100 + (i - 5) // 2 for i in range(32))]
    for offset, message in (("2", "at a multiple"), ("132", "at a multiple")):
        with pytest.raises(
            ptx_on_cpu.PtxError, match=f"expected 4 bytes of an array, {message} of as many, got 0x1"
        ):
            by_ptx(PTX.replace("%rd3+4", f"%rd3+{offset}"))
    with pytest.raises(ptx_on_cpu.PtxError, match=r"known here, got mul\.hi\.s32"):
        by_ptx(PTX.replace("shl.b32", "mul.hi.s32"))
    with pytest.raises(ptx_on_cpu.PtxError, match="expected a branch that all threads take, or none"):
        by_ptx(PTX.replace("%r1, 0;", "%r1, 7;"))


def test_bfloat16_is_rounded_to_even():
    numbers = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, -(2.0**-130), 1 + 2**-8 + 2**-20])
    ours = ptx_on_cpu.float32(ptx_on_cpu.bfloat16(numbers))
    assert ours.tolist() == torch.tensor(numbers).float().bfloat16().float().tolist()


def untold(chip, record):
    """What of CuTe-DSL's sources a record is silent about, or says twice or without the card; [] where all is told."""
    kernels, refused = record["kernels"], record["refused"]
    twice = [name for name in tile_languages.CUTE if (name in kernels) == (name in refused)]
    return twice + [
        name
        for name, one in refused.items()
        if not re.fullmatch(rf"error: expects arch to be .*, but got {chip}a?", one["said"])
        or one["source"] != tile_languages.CUTE[name]
    ]


@pytest.mark.parametrize("chip", NVIDIA)
def test_a_source_that_names_another_generation_is_refused_in_the_languages_words(chip):
    record = json.loads(json.dumps(RECORDS[chip]))
    assert untold(chip, record) == []
    of_one = {"sm_90": {"multiply_cute_wgmma", "attention_cute_wgmma"}, "sm_100": {"multiply_cute_tcgen05"}}
    assert set(record["refused"]) == set(tile_languages.CUTE) - {"multiply_cute"} - of_one.get(chip, set())
    # Silence is seen, and the words of another card.
    gone = record["refused"].popitem()[0]
    assert untold(chip, record) == [gone]
    record["refused"][gone] = {
        "source": tile_languages.CUTE[gone],
        "said": "error: expects arch to be sm_90a, but got sm_70",
    }
    assert untold(chip, record) == [gone]


def test_of_a_refusal_the_first_line_is_kept_without_its_colours():
    said = (
        "\n\x1b[91m\x1b[1merror:\x1b[0m expects arch to be sm_90a, but got sm_80\n   --> /a/folder/k.py:278\n"
    )
    assert tile_languages.first_line(said) == "error: expects arch to be sm_90a, but got sm_80"
    with pytest.raises(ValueError, match=r"^refusal: expected a line, got none$"):
        tile_languages.first_line("\n \x1b[0m\n")


@pytest.mark.parametrize("chip", TPUS)
def test_on_a_tpu_a_step_of_the_multiply_has_as_many_products_as_its_tile(chip):
    # A product is 16 rows of A times what an MXU holds of B: 128 x 128 numbers, from v6e on 256 x 256.
    held = 128 if chip in ("tpu_v5e", "tpu_v5p") else 256
    due = 256 // 16 * (256 // held) ** 2
    assert counted(chip, "multiply_pallas", "vmatmul") == due
    # B fills it 16 rows at a time, on either half of what it is wide.
    assert counted(chip, "multiply_pallas", "vmatpush") == 256 // 16 * (256 // 128)


@pytest.mark.parametrize("chip", TPUS)
def test_on_a_tpu_tiles_come_by_copies_and_lie_in_tiles(chip):
    record = RECORDS[chip]["kernels"]["multiply_pallas"]
    assert "bf16[1024,1024]{1,0:T(8,128)(2,1)}" in record["layouts"]
    assert (
        counted(chip, "multiply_pallas", "dma.hbm_to_vmem")
        + counted(chip, "multiply_pallas", "dma.done.wait")
        > 0
    )
    assert record["bytes"]["argument"] == 2 * 2 * 1024 * 1024
    assert record["bytes"]["output"] == 2 * 1024 * 1024


@pytest.mark.parametrize("chip", TPUS)
def test_on_the_cpu_both_pallas_kernels_were_right_and_both_faults_were_seen(chip):
    checked = RECORDS[chip]["checked"]
    planted = {name for name in checked if name.startswith("planted: ")}
    assert set(checked) - planted == {"multiply", "attention"}
    assert len(planted) == 2
    for name in set(checked) - planted:
        assert checked[name]["error"] <= checked[name]["allowed"]
        assert not checked[name]["races"]
    early, unrepaired = sorted(planted)
    assert checked[early]["races"]
    assert checked[unrepaired]["error"] > checked[unrepaired]["allowed"]


@pytest.mark.parametrize("chip", TPUS)
def test_the_compilers_estimate_counts_the_loop_over_keys_once(chip):
    made = RECORDS[chip]["kernels"]["attention_jax"]
    H, N, D = (made["sizes"][name] for name in "HND")
    turns = N // 256
    assert made["compilers_estimate"]["flops"] == pytest.approx(4 * H * N * N * D / turns, rel=0.05)


@pytest.mark.parametrize("chip", ["tpu_v6e", "tpu_7x"])
def test_plain_jax_attends_in_float32_where_pallas_attends_in_bfloat16(chip):
    def types(kernel):
        counts = RECORDS[chip]["kernels"][kernel]["counts"]
        return {name.split(".")[2] for name in counts if name.startswith("vmatmul")}

    assert types("attention_jax") == {"f32"}
    assert types("attention_pallas") == {"bf16"}


def test_without_a_launch_bound_amds_compiler_keeps_registers_for_1024_threads():
    for chip in AMD:
        plain = RECORDS[chip]["kernels"]["attention_plain"]["resources"]
        bound = RECORDS[chip]["kernels"]["multiply_plain"]["resources"]
        assert plain["max_flat_workgroup_size"] == 1024 > bound["max_flat_workgroup_size"] == 256
        assert plain["vgpr_spill_count"] > bound["vgpr_spill_count"] == 0


# --- what was run on the CPU ----------------------------------------------------------------------


def test_on_the_cpu_both_circuits_were_right_and_both_wrong_indices_were_seen():
    checked = RECORDS["fpga"]["checked"]
    planted = {name for name in checked if name.startswith("planted: ")}
    assert set(checked) - planted == {"multiply", "attention"}
    assert len(planted) == 2
    for name, one in checked.items():
        assert (one["error"] > one["allowed"]) == (name in planted)
    # A sum of 16 products, each cut off to a step of 1/1024.
    assert checked["multiply"]["allowed"] == 16 / 1024


def test_a_circuit_has_a_multiplier_for_each_product_and_calls_what_the_module_has():
    kernels = RECORDS["fpga"]["kernels"]
    assert kernels["multiply_hls"]["resources"]["multipliers"] == 16**3
    assert kernels["attention_hls"]["resources"]["multipliers"] == 2 * 16 * 16
    assert kernels["multiply_hls"]["counts"]["nnet::einsum"] == 1
    calls = {name: n for name, n in kernels["attention_hls"]["counts"].items() if name.startswith("nnet::")}
    assert calls == {"nnet::einsum": 2, "nnet::softmax": 1}
    reuse = RECORDS["fpga"]["ran"]["reuse"]
    assert {name: one["multipliers"] for name, one in reuse.items()} == {
        "by_1": 4096,
        "by_4": 1024,
        "by_16": 256,
    }
    assert {one["different"] for one in reuse.values()} == {0}


def test_fixed_point_wraps_or_stays_and_cutting_off_goes_down():
    ran = RECORDS["fpga"]["ran"]
    assert ran["fits"] == {"default": -32.0, "saturating": 32 - 1 / 1024}
    types = ran["types"]
    assert types["default"]["mean"] == pytest.approx(-16 / 2 / 1024, rel=0.1)
    assert abs(types["saturating"]["mean"]) < types["saturating"]["worst"] / 10
    assert types["narrow"]["far_off"] > types["default"]["far_off"] == 0


def test_what_of_hls4ml_goes_wrong_went_wrong():
    ran = RECORDS["fpga"]["ran"]
    assert 1.1 < ran["softmax"]["of_1024"]["largest_sum"] < 1.25  # a sum is read to a quarter
    assert ran["softmax"]["of_16384"]["largest_sum"] < 1.02
    assert ran["all_rows"]["softmax_over"] == 16 * 16  # and not 16
    assert ran["all_rows"]["all_sums"] < 1.1  # of 16 rows together


def test_in_mlx_ours_and_its_own_were_right_and_both_wrong_tiles_were_seen():
    checked = RECORDS["apple"]["checked"]
    planted = {name for name in checked if name.startswith("planted: ")}
    assert set(checked) - planted == {"multiply", "multiply by mlx", "attention", "attention by mlx"}
    assert len(planted) == 2
    for name, one in checked.items():
        assert (one["error"] > one["allowed"]) == (name in planted)
        if name not in planted:
            assert RECORDS["apple"]["ran"]["errors"][name.replace(" ", "_")] == one["error"]


def test_what_of_mlx_surprises_happened():
    special = RECORDS["apple"]["ran"]["special"]
    assert special["with_nan"] == special["with_inf"] == {"zeros": 32, "nans": 0, "infs": 0}
    assert special["tiny"] == special["scale_255"] == {"zeros": 0, "nans": 0, "infs": 32}
    formats = RECORDS["apple"]["ran"]["formats"]
    assert {name: one["bits"] for name, one in formats.items()} == {
        "mxfp4": 4 + 8 / 32,
        "mxfp8": 8 + 8 / 32,
        "nvfp4": 4 + 8 / 16,
        "nvfp4_whole": 4 + 8 / 16,
    }
    assert formats["nvfp4"]["five_hundredth"]["zeros"] > 0.9
    assert formats["nvfp4_whole"]["five_hundredth"]["zeros"] < 0.1


def test_a_graph_is_in_half_precision_and_ios_18_has_attention_in_one():
    kernels = RECORDS["apple"]["kernels"]
    assert set(kernels) == {f"{name}_ios{n}" for name in ("multiply", "attention") for n in (16, 18)}
    for one in kernels.values():
        assert one["resources"]["halves"] == one["lines"]
    assert kernels["attention_ios16"]["counts"] == {"matmul": 2, "mul": 1, "softmax": 1}
    assert kernels["attention_ios18"]["counts"] == {"scaled_dot_product_attention": 1}


INTEL = [chip for chip, (module, _) in kept.CHIPS.items() if module == "intel"]


@pytest.mark.parametrize("chip", INTEL)
def test_in_opencl_all_kernels_were_right_and_all_wrong_indices_were_seen(chip):
    checked = RECORDS[chip]["checked"]
    planted = {name for name in checked if name.startswith("planted: ")}
    assert set(checked) - planted == set(RECORDS[chip]["kernels"]) == set(intel.KERNELS)
    assert {name.split(",")[0].removeprefix("planted: ") for name in planted} == set(intel.KERNELS)
    for name, one in checked.items():
        assert (one["error"] > one["allowed"]) == (name in planted)


def test_a_product_of_a_sub_group_is_there_for_xe_hpc_and_left_out_for_xe_hpg():
    assert counted("intel_xe_hpc", "multiply_dpas", "dpas.8x8:f") == 1
    assert counted("intel_xe_hpg", "multiply_dpas", "dpas") == 0
    for chip in INTEL:
        assert RECORDS[chip]["kernels"]["multiply_dpas"]["resources"]["lanes"] == 16
        for kernel in ("multiply_plain", "attention_plain"):
            assert counted(chip, kernel, *listing.MATRIX) == 0
            assert counted(chip, kernel, "mad:f") > 0


def test_on_xe_hpc_a_register_has_64_bytes_and_on_xe_hpg_half_of_them_and_no_add_of_64_bits():
    for chip, size in (("intel_xe_hpc", 64), ("intel_xe_hpg", 32)):
        found = [one["resources"] for one in RECORDS[chip]["kernels"].values()]
        assert {(one["registers"], one["register_bytes"]) for one in found} == {(128, size)}
    assert (
        counted("intel_xe_hpg", "multiply_dpas", "add:q")
        == 0
        < counted("intel_xe_hpc", "multiply_dpas", "add:q")
    )
    assert (
        counted("intel_xe_hpc", "multiply_dpas", "addc")
        == 0
        < counted("intel_xe_hpg", "multiply_dpas", "addc")
    )


def test_another_build_of_a_program_is_seen_and_refused(tmp_path, monkeypatch):
    root = copied(tmp_path)
    project = root / "pyproject.toml"
    project.write_text(project.read_text().replace('"22.43.24595.41-1"', '"25.1.0-1"'))
    assert stale.reasons("intel_xe_hpc", root) == ["ocloc 22.43.24595.41, pinned 25.1.0"]
    assert stale.reasons("gfx942", root) == []
    program = tmp_path / "libocloc.so"
    lines = [
        f'{name} = {{ package = "p", version = "1-1", file = "{program}", sha256 = "{"0" * 64}" }}'
        for name in ("ocloc",)
    ]
    project.write_text("[tool.chips.programs]\n" + "\n".join(lines))
    monkeypatch.setattr(kept, "ROOT", root)
    with pytest.raises(FileNotFoundError, match="ocloc is not installed: apt-get install p=1-1"):
        intel.programs()
    program.write_text("another one")
    with pytest.raises(ValueError, match=r"ocloc: expected version 1-1, and libocloc\.so is of another"):
        intel.programs()


# --- reading what compilers print -----------------------------------------------------------------

BUNDLES = """
= control target key start
LH: loop header
= control target key end

     0   :  { %s1 = inlined_call_operand.hbm [shape: bf16[8,128]] /* window /* of */ one */  ;;  %v2_v0 = vld [%s1] }
  0x10 LB: > { %7 = dma.hbm_to_vmem [thread:$0]  (!%p8), /*step
bounds: (1, 2) */ %s3 }
  0x2f : > { %9 = vmatmul.bf16.gmra.mxu0 %v2_v0 } /* exit bundle */
"""


def test_bundles_are_read_one_a_line():
    lines = listing.lines_of_tpu(BUNDLES)
    assert len(lines) == 3
    assert [listing.names_of_tpu(line) for line in lines] == [
        ["inlined_call_operand.hbm", "vld"],
        ["dma.hbm_to_vmem"],
        ["vmatmul.bf16.gmra.mxu0"],
    ]
    assert lines[1] == "0x10 LB: > { %7 = dma.hbm_to_vmem [thread:$0] (!%p8), %s3 }"


@pytest.mark.parametrize("text", ["", "LH: loop header", "  0x2f : > { %9 = vmatmul"])
def test_what_is_no_whole_bundle_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011
        listing.lines_of_tpu(text)


def test_of_amds_text_instructions_and_labels_are_left():
    text = '\t.file\t1 "/a/folder" "k.py"\n.LBB0_1:   ; =>loop\n'
    text += "\tv_mfma_f32_16x16x16_bf16 v[0:3], v4, v5, v[0:3] ; k.py:3\n"
    lines = listing.lines_of_amd(text)
    assert lines == [".LBB0_1:", "v_mfma_f32_16x16x16_bf16 v[0:3], v4, v5, v[0:3]"]
    assert [listing.names_of_amd(line) for line in lines] == [[], ["v_mfma_f32_16x16x16_bf16"]]


def test_of_a_circuit_calls_and_orders_are_left():
    text = "// a comment\n#include <x>\n    #pragma HLS PIPELINE\n  layer4_t layer4_out[4];\n"
    lines = fpga.lines_of(text + "    nnet::einsum<a_t, b_t, c_t, config3>(a, b, c); // einsum\n")
    assert lines == ["#pragma HLS PIPELINE", "nnet::einsum<a_t, b_t, c_t, config3>(a, b, c);"]
    assert [fpga.names(line) for line in lines] == [["PIPELINE"], ["nnet::einsum"]]
    with pytest.raises(ValueError, match="no call of nnet in 0 characters"):
        fpga.lines_of("")


def test_of_a_graph_operations_are_left():
    text = "main[CoreML6](%a: (2, 2, fp16)(Tensor)) {\n  block0() {\n"
    text += "    %v_3: (2, 2, fp16)(Tensor) = matmul(x=%a, y=%a)\n  } -> (%v_3)\n}"
    assert apple.lines_of(text) == ["%v_3: (2, 2, fp16)(Tensor) = matmul(x=%a, y=%a)"]
    assert apple.names(apple.lines_of(text)[0]) == ["matmul"]
    with pytest.raises(ValueError, match="no operation in 0 characters"):
        apple.lines_of("")


def test_of_intels_text_instructions_with_their_type_and_labels_are_left():
    text = "//.instCount 3\n\n_0_007:\n(W&f0.0) jmpi  _0_007  // $5\n"
    text += "        dpas.8x8 (16|M0)  r2:f  r2:f  r17:bf  r12.0:bf  {Compacted,$1} // $40\n"
    text += "        load.ugm.d32x16t.a32.ca.ca (1|M0)  r1:1 bti[255][r127:1]   {A@1,$0} // desc:0x6218D500\n"
    lines = intel.lines_of(text)
    assert [intel.names(line) for line in lines] == [
        [],
        ["jmpi"],
        ["dpas.8x8:f"],
        ["load.ugm.d32x16t.a32.ca.ca"],
    ]
    assert lines[2] == "dpas.8x8 (16|M0) r2:f r2:f r17:bf r12.0:bf {Compacted,$1}"
    with pytest.raises(ValueError, match="no instruction in 0 characters"):
        intel.lines_of("")


def test_a_guard_is_no_instruction():
    assert listing.names_of_nvidia("@!P0 HMMA.16816.F32.BF16 R4, R8") == ["HMMA.16816.F32.BF16"]
    assert listing.names_of_nvidia("EXIT") == ["EXIT"]


# --- the package and its command ------------------------------------------------------------------


def test_it_stands_on_kernels_and_on_the_hash_of_a_source():
    found = set()
    for file in (kept.ROOT / kept.HERE).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [name.name for name in node.names] if isinstance(node, ast.Import) else []
            found |= {name for name in names if name and name.startswith("course_")}
    above = {name for name in found if not name.startswith(("course_kernels", "course_chips"))}
    assert above == {"course_site.records.digest"}


def test_what_a_reader_imports_needs_no_compiler():
    code = (
        "import sys, course_chips.kept as k; k.read('gfx942'); "
        "print(*{m.split('.')[0] for m in sys.modules} - set(sys.stdlib_module_names))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(kept.ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert set(done.stdout.split()) <= {"__main__", "course_chips"}, done.stderr


def test_the_command_lists_and_refuses(capsys):
    assert command.main(["--list", "amd"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == AMD
    assert {line.split()[-1] for line in lines} == {"holds"}
    with pytest.raises(SystemExit) as stopped:
        command.main(["sm_91"])
    assert stopped.value.code == 2
    assert "sm_91: expected one of tpu_v5e" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"^chip: expected one of tpu_v5e, .*, got 'mi300'$"):
        kept.read("mi300")
