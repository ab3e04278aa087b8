"""Blackwell's instructions and kernels: right on the CPU's machine, faults are seen, and the SASS is Blackwell's."""

import re

import numpy as np
import pytest
import torch
from blackwell_on_cpu import prepare_in, tensor_map
from cuda_on_cpu import build

from course_kernels.blackwell import bf16, decode, one_block, pair, scaled
from course_kernels.blackwell.scaled import MXFP8, NVFP4, in_blocks, values_of
from course_kernels.nvfp4.formats import E2M1, values

pytestmark = pytest.mark.kept("tests/cpu/stand_ins")  # g++ opens those where nobody sees it

KERNELS = {"one_block": one_block, "pair": pair}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(what) -> a context in which launchers build for the CPU; `text` replaces a source's own."""
    built = {}

    def prepare_for(text):
        def prepare(path, name, **how):
            key = (name, text, tuple(how["defines"].items()))
            if key not in built:
                built[key] = prepare_in(tmp_path_factory.mktemp(name))(path, name, text=text, **how)
            return built[key]

        return prepare

    def run(call, *args, text=None, **more):
        for module in (bf16, scaled):
            module._prepared.cache_clear()
        with pytest.MonkeyPatch.context() as patch:
            for module in (bf16, scaled):
                patch.setattr(module, "prepare", prepare_for(text))
                patch.setattr(module, "tensor_map", tensor_map)
                patch.setattr(module, "check_card", lambda kernel: None)
            patch.setattr(
                "course_kernels.arguments.interpreted", lambda: True
            )  # tensors on the CPU are taken
            found = call(*args, **more)
        for module in (bf16, scaled):
            module._prepared.cache_clear()
        return found

    return run


def drawn(M, N, K, dtype=torch.bfloat16):
    draw = torch.Generator().manual_seed(M + N + K)
    return [torch.randn(size, generator=draw).to(dtype) for size in ((M, K), (K, N))]


def worst(c, truth):
    return float((c.double() - truth).abs().max() / truth.abs().max())


# Less than a tile; one tile; ragged tiles each way with more steps than stages.
SIZES = [(1, 8, 8), (128, 256, 64), (130, 264, 456)]


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("M", "N", "K"), SIZES)
def test_a_product_is_right(run, name, M, N, K):
    a, b = drawn(M, N, K)
    assert worst(run(KERNELS[name].gemm, a, b), a.double() @ b.double()) <= 2.0**-8


def test_float16_too(run):
    a, b = drawn(33, 264, 72, torch.float16)
    assert worst(run(one_block.gemm, a, b), a.double() @ b.double()) <= 2.0**-11


# --- block scales ---------------------------------------------------------------------------------


def scaled_inputs(form, R, K, seed):
    """Numbers, scales that differ from row to row and from block to block, and what both stand for."""
    draw = torch.Generator().manual_seed(seed)
    if form is NVFP4:
        numbers = torch.randint(0, 256, (R, K // 2), generator=draw, dtype=torch.uint8)
        scales = torch.randint(40, 80, (R, K // 16), generator=draw, dtype=torch.uint8).view(form.scales)
    else:
        numbers = torch.randn(R, K, generator=draw).to(form.numbers)
        scales = torch.randint(123, 131, (R, K // 32), generator=draw, dtype=torch.uint8).view(form.scales)
    return numbers, scales, values_of(numbers, scales, form)


# One product; a whole step; a step and a bit, ragged tiles; more steps than stages.
SCALED = [(NVFP4, 8, 8, 64), (NVFP4, 128, 128, 256), (NVFP4, 130, 136, 320), (NVFP4, 16, 24, 1344)]
SCALED += [(MXFP8, 8, 8, 32), (MXFP8, 130, 136, 160), (MXFP8, 16, 24, 672)]


@pytest.mark.parametrize(("form", "M", "N", "K"), SCALED, ids=lambda x: getattr(x, "name", x))
def test_a_scaled_product_is_right(run, form, M, N, K):
    (a, sa, true_a), (b, sb, true_b) = scaled_inputs(form, M, K, 1), scaled_inputs(form, N, K, 2)
    c = run(scaled.gemm, a, in_blocks(sa), b, in_blocks(sb), 0.5, form=form)
    assert worst(c, 0.5 * true_a @ true_b.T) <= 2.0**-8


def test_scales_of_a_block_are_where_the_copy_looks():
    """Byte 16 * (r % 32) + 4 * (r / 32) + j of block [i, k]: row 128 * i + r, scale 4 * k + j; zero past the edges."""
    R, S = 200, 6
    scales = torch.arange(R * S).remainder(251).add(1).to(torch.uint8).view(R, S)
    blocks = in_blocks(scales)
    assert blocks.shape == (2, 2, 512)
    for row in range(256):
        for s in range(8):
            at = 16 * (row % 32) + 4 * (row % 128 // 32) + s % 4
            due = int(scales[row, s]) if row < R and s < S else 0
            assert blocks[row // 128, s // 4, at] == due, (row, s)
    with pytest.raises(ValueError, match=r"^scales: expected \(R, S\), got shape \(4,\)$"):
        in_blocks(scales.flatten()[:4])
    with pytest.raises(TypeError, match=r"^scales: expected one byte each, got float32$"):
        in_blocks(scales.float())


# --- planted faults -------------------------------------------------------------------------------

ELSEWHERE = "outside of the allocated tensor memory"
# In which kernel, what is changed, and what must be said; nothing where the answer is wrong.
FAULTS = {
    "the multiplying thread waits for the wrong phase": (
        "one_block",
        r"wait\(&full\[s\], step / STAGES & 1\)",
        "wait(&full[s], step / STAGES & 1 ^ 1)",
        "",
    ),
    "no wait for an empty stage": ("one_block", r"wait\(&empty.*?\);", "", ""),
    "too few bytes announced": ("one_block", r"&full\[s\], STAGE_BYTES\)", "&full[s], A_BYTES)", ""),
    "a stage that nobody says is free": (
        "one_block",
        r"tcgen05_commit<1>\(&empty\[s\]\);",
        "",
        "deadlock: thread.* 0 to 0 wait for parity 0",
    ),
    "sums that nobody says are done": ("one_block", r"tcgen05_commit<1>\(done\);", "", "deadlock"),
    "sums read at once": ("one_block", r"wait\(done, 0\);", "", "sums are read while a product writes them"),
    "no constant in the descriptor": (
        "one_block",
        r"in_shared\((advance\(k_major.*?32\))\)",
        r"\1",
        "without the constant in its bits 46",
    ),
    "A of another swizzle": ("one_block", r"k_major\(a\)", "k_major<64>(a)", ""),
    "the next panel of B where it is not": (
        "one_block",
        r"mn_major\(b, PANEL_BYTES\)",
        "mn_major(b, 1024)",
        "",
    ),
    "B taken to lie along k": ("one_block", r"\(!FLOAT16, false, true\)", "(!FLOAT16, false, false)", ""),
    "numbers taken for the other type": ("one_block", r"\(!FLOAT16, false", "(FLOAT16, false", ""),
    "the first product added to what was there": ("one_block", r"step \+ k > 0", "true", ""),
    "fewer columns than sums": (
        "one_block",
        r"tmem_allocate<1>\(where, BN\)",
        "tmem_allocate<1>(where, BN / 2)",
        ELSEWHERE,
    ),
    "an address guessed": ("one_block", r"sums = \*where", "sums = 0", ELSEWHERE),
    "tensor memory that is kept": (
        "one_block",
        r"if \(warp == 2\) tmem_give_back<1>\(sums, BN\);",
        "",
        "not given back",
    ),
    "given back while others read": (
        "one_block",
        r"__syncthreads\(\);  // everybody has read",
        "",
        ELSEWHERE,
    ),
    "barriers that the copy engine does not see": (
        "one_block",
        r"fence_barrier_init\(\);",
        "",
        "before fence_barrier_init",
    ),
    "the second block asks as well": ("pair", r" && rank == 0 && ", " && ", "deadlock"),
    "only one block's bytes announced": ("pair", r"2 \* STAGE_BYTES\)", "STAGE_BYTES)", ""),
    "both blocks fetch the same columns": ("pair", r"tile\.n \+ rank \* MINE \+ p", "tile.n + p", ""),
    "both blocks write the same rows": ("pair", r"tile\.m \+ rank \* BM, tile\.n\);", "tile.m, tile.n);", ""),
    "a product of one block's rows": (
        "pair",
        r"<2 \* BM, BN>",
        "<BM, BN>",
        "a product of 128 rows by 2 blocks",
    ),
    "a stage released at home only": (
        "pair",
        r"tcgen05_commit<2>\(&empty",
        "tcgen05_commit<1>(&empty",
        "deadlock",
    ),
    "scales of the stage before": (
        "scaled",
        r"sums \+ BN \+ s \* 2",
        "sums + BN + 0 * 2",
        "copied over what a product may not have read",
    ),
    "A's scales for B": ("scaled", r"of_a \+ SCALES \+ i", "of_a + i", ""),
    "the scales of the next product": (
        "scaled",
        r"scales_a \+ 4 \* k, scales_b",
        "scales_a + 4 * (3 - k), scales_b",
        "",
    ),
    "no scales copied": ("scaled", r"copy_scales\(scales_a.*?;", "", ""),
    "a step's last products of nothing": ("scaled", r"if \(step \* BK \+ k \* DEEP >= K\) break;", "", ""),
    "the wrong kind of scales": (
        "scaled",
        r"scale_bytes\);\n(\s+load_tile\(a)",
        r"scale_bytes - 16);\n\1",
        "",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_shows(run, fault):
    name, pattern, replacement, says = FAULTS[fault]
    source = {**KERNELS, "scaled": scaled}[name].SOURCE
    text, count = re.subn(pattern, replacement, source.read_text())
    assert count >= 1
    error, said = float("inf"), ""
    try:
        if name == "scaled":
            (a, sa, true_a), (b, sb, true_b) = (scaled_inputs(NVFP4, 16, 320, seed) for seed in (1, 2))
            error = worst(run(scaled.gemm, a, in_blocks(sa), b, in_blocks(sb), text=text), true_a @ true_b.T)
        else:
            a, b = drawn(136, 264, 520)
            error = worst(run(KERNELS[name].gemm, a, b, text=text), a.double() @ b.double())
    except RuntimeError as caught:
        said = str(caught)

    assert re.search(says, said), said
    assert not error <= 0.02


# --- bit by bit -----------------------------------------------------------------------------------

# PTX ISA, tcgen05, tables of the shared memory descriptor and of the instruction descriptor: first bit, last bit.
SHARED = {"address": (0, 13), "14": (14, 15), "leading": (16, 29), "30": (30, 31), "stride": (32, 45)}
SHARED |= {"constant": (46, 48)}
SHARED |= {"base offset": (49, 51), "leading mode": (52, 52), "zero": (53, 60), "swizzle": (61, 63)}
F16 = {
    "sparsity selector": (0, 1),
    "sparse": (2, 2),
    "saturate": (3, 3),
    "sums": (4, 5),
    "6": (6, 6),
    "a": (7, 9),
}
F16 |= {"b": (10, 12), "-a": (13, 13), "-b": (14, 14), "a transposed": (15, 15), "b transposed": (16, 16)}
F16 |= {"N / 8": (17, 22), "23": (23, 23), "M / 16": (24, 28), "29": (29, 29), "shift": (30, 31)}
MXFP8_BITS = {
    "0": (0, 1),
    "sparse": (2, 2),
    "3": (3, 3),
    "b scale": (4, 5),
    "6": (6, 6),
    "a": (7, 9),
    "b": (10, 12),
}
MXFP8_BITS |= {
    "-a": (13, 13),
    "-b": (14, 14),
    "a transposed": (15, 15),
    "b transposed": (16, 16),
    "N / 8": (17, 22),
}
MXFP8_BITS |= {"scales": (23, 23), "24": (24, 26), "M / 128": (27, 28), "a scale": (29, 30), "31": (31, 31)}
NVFP4_BITS = {n: f for n, f in MXFP8_BITS.items() if n not in ("b", "31")}
NVFP4_BITS |= {"b": (10, 11), "12": (12, 12), "K": (31, 31)}
DESCRIBED = {
    "in_shared(k_major(0x12345 & ~1023u))": (
        SHARED,
        {"address": 0x12000 >> 4, "leading": 1, "stride": 64, "swizzle": 2},
    ),
    "in_shared(k_major<64>(512))": (SHARED, {"address": 32, "leading": 1, "stride": 32, "swizzle": 4}),
    "in_shared(k_major<32>(256))": (SHARED, {"address": 16, "leading": 1, "stride": 16, "swizzle": 6}),
    "in_shared(mn_major(1024, 8192))": (SHARED, {"address": 64, "leading": 512, "stride": 64, "swizzle": 2}),
    "in_shared(advance(k_major(1024), 96))": (
        SHARED,
        {"address": 70, "leading": 1, "stride": 64, "swizzle": 2},
    ),
    "scales_in_shared(0x20200)": (SHARED, {"address": 0x20200 >> 4, "stride": 8}),
    "scales_in_shared(0x3fff0)": (SHARED, {"address": 0x3FFF, "stride": 8}),
    "(f16_instruction<128, 256>(true, false, true))": (
        F16,
        {"sums": 1, "a": 1, "b": 1, "b transposed": 1, "N / 8": 32, "M / 16": 8},
    ),
    "(f16_instruction<256, 32>(false, true, false))": (
        F16,
        {"sums": 1, "a transposed": 1, "N / 8": 4, "M / 16": 16},
    ),
    "(nvfp4_instruction<128, 256>())": (NVFP4_BITS, {"a": 1, "b": 1, "N / 8": 32, "M / 128": 1}),
    "(nvfp4_instruction<128, 8>())": (NVFP4_BITS, {"a": 1, "b": 1, "N / 8": 1, "M / 128": 1}),
    "(mxfp8_instruction<128, 136>(0))": (MXFP8_BITS, {"scales": 1, "N / 8": 17, "M / 128": 1}),
    "(mxfp8_instruction<128, 8>(3))": (
        MXFP8_BITS,
        {"scales": 1, "N / 8": 1, "M / 128": 1, "a scale": 3, "b scale": 3},
    ),
}


def test_every_field_of_every_descriptor_has_its_documented_place(tmp_path):
    told = "\n".join(f"  to[{i}] = {what};" for i, what in enumerate(DESCRIBED))
    text = f"#include <descriptors.cuh>\n__global__ void describe(unsigned long long *to) {{\n{told}\n}}\n"
    made = torch.zeros(len(DESCRIBED), dtype=torch.int64)
    build(tmp_path, one_block.SOURCE, "describe", text=text)(1, 1, made)
    for (what, (fields, due)), number in zip(DESCRIBED.items(), made.tolist(), strict=True):
        width = 64 if fields is SHARED else 32
        assert sorted(bit for first, last in fields.values() for bit in range(first, last + 1)) == list(
            range(width)
        )
        due = due | ({"constant": 1} if fields is SHARED else {})
        found = {
            name: number >> first & (1 << last - first + 1) - 1 for name, (first, last) in fields.items()
        }
        assert {name: value for name, value in found.items() if value} == due, what


# --- four bits ------------------------------------------------------------------------------------


def decoded(folder, codes, text=None):
    numbers = torch.full((2 * codes.numel(),), float("nan"), dtype=torch.float16)
    # The only instruction in it: two float16 multiplied by two others.
    text = decode.SOURCE.read_text() if text is None else text
    text, count = re.subn(r"asm\(\"mul.*\);", "both = times(signs | rest, TO_THE_14);", text)
    assert count == 1
    kernel = build(folder, decode.SOURCE, "decode", text=TIMES + text)
    words = codes.numel() // 4
    kernel(-(-words // 256), 256, codes.view(torch.int32), numbers, np.int64(words))
    return numbers


TIMES = """
inline unsigned times(unsigned x, unsigned y) {
  unsigned both = 0;
  for (int i = 0; i < 32; i += 16) {
    const _Float16 z = same_bits<_Float16>((unsigned short)(x >> i)) * same_bits<_Float16>((unsigned short)(y >> i));
    both |= unsigned(same_bits<unsigned short>(z)) << i;
  }
  return both;
}
"""


def test_software_decodes_every_byte_exactly(tmp_path_factory):
    codes = torch.arange(256, dtype=torch.uint8)
    table = torch.tensor(values(E2M1))
    due = torch.stack([table[codes.long() & 15], table[codes.long() >> 4]], dim=-1).flatten().half()
    assert torch.equal(
        decoded(tmp_path_factory.mktemp("right"), codes).view(torch.int16), due.view(torch.int16)
    )  # -0 too
    swapped = decode.SOURCE.read_text().replace("byte << 9 &", "byte << 5 &")
    assert not torch.equal(decoded(tmp_path_factory.mktemp("wrong"), codes, swapped), due)


def test_the_truth_reads_the_lower_half_first():
    numbers, scales = (
        torch.tensor([[0x2F] + [0] * 7], dtype=torch.uint8),
        torch.tensor([[2.0]]).to(NVFP4.scales),
    )
    assert values_of(numbers, scales, NVFP4)[0, :3].tolist() == [-12.0, 2.0, 0.0]
