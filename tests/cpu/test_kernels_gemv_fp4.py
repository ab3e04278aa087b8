"""FP4 matrix times vector: the formats, every kernel without a card, and what its machine code spends on a byte."""

import hashlib
import re
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from compiled import decides, known, seen
from cuda_on_cpu import build
from hopper_on_cpu import prepare_in

from course_kernels.gemv_fp4 import by_rows, per_byte
from course_kernels.gemv_fp4.by_shares import BLOCKS, MOST_ROWS, MOST_WARPS, WARP_NUMBERS, Cut, cut_of
from course_kernels.gemv_fp4.formats import scales_of, unpacked, values_of
from course_kernels.gemv_fp4.problem import HACKATHON, LARGE, PROBLEM
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept

FOLDER = Path(by_rows.__file__).parent
KERNELS = {
    path.stem: import_module(f"course_kernels.gemv_fp4.{path.stem}") for path in sorted(FOLDER.glob("k*.py"))
}
BY_SHARES = ("k11_resident", "k12_ring")
STEP = {name: 256 if name == "k12_ring" else 32 for name in KERNELS}  # K is a multiple of this
ONE = 0x38  # E4M3: 1.0


def inputs_of(L, M, K, seed=0):
    w = Workload.of("float16", L=L, M=M, K=K)
    return PROBLEM.make_inputs(w, torch.Generator().manual_seed(seed), "cpu")


# --- the formats ------------------------------------------------------------------------------------------


def test_e2m1_is_what_its_definition_says():
    found = unpacked(
        torch.tensor([0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE], dtype=torch.uint8)
    ).tolist()
    assert found == [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]
    assert str(found[8]) == "-0.0"


def test_e4m3_is_that_of_torch():
    codes = torch.arange(256, dtype=torch.uint8)
    ours = scales_of(codes.view(torch.float8_e4m3fn))

    assert torch.equal(ours.nan_to_num(999), codes.view(torch.float8_e4m3fn).double().nan_to_num(999))
    assert torch.equal(ours.signbit()[[0, 128]], torch.tensor([False, True]))


def test_the_first_of_two_numbers_is_in_the_low_bits():
    assert unpacked(torch.tensor([0x21, 0xF0], dtype=torch.uint8)).tolist() == [0.5, 1, 0, -6]


def test_sixteen_numbers_share_a_scale():
    packed = torch.full((1, 16), 0x22, dtype=torch.uint8)
    scales = torch.tensor([[2.0, 0.5]]).to(torch.float8_e4m3fn)

    assert values_of(packed, scales).tolist() == [[2.0] * 16 + [0.5] * 16]


def test_the_truth_goes_in_strips(monkeypatch):
    inputs = inputs_of(2, 7, 64)
    a, scales_a, b, scales_b = inputs
    expected = torch.einsum("lmk,lk->lm", values_of(a, scales_a), values_of(b, scales_b))
    monkeypatch.setattr("course_kernels.gemv_fp4.problem.NUMBERS_AT_ONCE", 3 * 64)

    torch.testing.assert_close(PROBLEM.reference(*inputs), expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize(("w", "mb"), list(zip((*HACKATHON, LARGE), (66, 132, 33, 528), strict=True)))
def test_the_bytes_of_the_announced_sizes(w, mb):
    assert PROBLEM.reads_bytes(w) == pytest.approx(mb * 1e6, rel=0.01)


def test_the_tolerance_sees_one_wrong_number_and_a_neighbour_s_scale():
    w = HACKATHON[2]
    a, scales_a, b, scales_b = inputs_of(1, 4, w.K)
    truth = PROBLEM.reference(a, scales_a, b, scales_b)
    turned = a.clone()
    turned[0, 0, :] = a[0, 0, :] >> 4 | a[0, 0, :] << 4  # nibbles swapped, in one row
    for wrong in ((turned, scales_a), (a, scales_a.view(torch.uint8).roll(1, -1).view(scales_a.dtype))):
        assert worst_error(PROBLEM.reference(*wrong, b, scales_b), truth) > PROBLEM.max_error(w)
    assert worst_error(truth.half(), truth) <= PROBLEM.max_error(w) / 2


# --- every kernel, without a card -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(kernel, *inputs, changed=(right, wrong), **options) -> c, full of NaN before; on three multiprocessors."""
    made = {}

    def text_of(source, changed):
        text = source.read_text()
        if changed:
            bytes_cuh = (FOLDER / "bytes.cuh").read_text().replace("#pragma once", "")
            text = text.replace('#include "bytes.cuh"', bytes_cuh)
            assert text.count(changed[0]) == 1, changed
            text = text.replace(*changed)
        return text

    def run(kernel, *inputs, changed=None, **options):
        def once(make, key):
            if key not in made:
                made[key] = make()
            return made[key]

        def load_kernel(source, name, defines=None):
            folder = tmp_path_factory.mktemp(name)
            return once(
                lambda: build(folder, source, name, defines, text_of(source, changed)), (name, changed)
            )

        def prepare(path, name, **how):
            make = prepare_in(tmp_path_factory.mktemp(name))
            key = name, changed, str(sorted(how.items()))
            return once(lambda: make(path, name, text=text_of(path, changed), **how), key)

        def launch(kernel, grid, block, *args, shared_bytes=0):
            kernel(grid, block, *args, shared_bytes=shared_bytes)

        module = KERNELS[kernel]
        forget(module)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(by_rows, "load_kernel", load_kernel)
            patch.setattr(by_rows, "launch", launch)
            patch.setattr(by_rows, "allow_shared_memory", lambda *args: None)
            patch.setattr(module, "prepare", prepare, raising=False)
            card = SimpleNamespace(multi_processor_count=3)
            patch.setattr(torch.cuda, "get_device_properties", lambda device: card)
            patch.setattr(torch, "empty", full_of_nan)
            return module.gemv_fp4(*inputs, **options)

    yield run
    for module in KERNELS.values():
        forget(module)


def full_of_nan(size, **how):
    return torch.full(size if isinstance(size, tuple) else (size,), torch.nan, **how)


def forget(module):
    for function in vars(module).values():
        getattr(function, "cache_clear", lambda: None)()


# A lane without work and one with two vectors; rows that come out even nowhere.
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_is_right(run, kernel):
    for L, M, K in ((2, 19, 256), (1, 5, 1280)) if STEP[kernel] > 32 else ((2, 19, 96), (1, 5, 1056)):
        inputs = inputs_of(L, M, K)

        assert worst_error(run(kernel, *inputs), PROBLEM.reference(*inputs)) <= 2.0**-11


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_byte_is_decoded_and_the_sum_of_a_block_is_exact(run, kernel):
    """Row r has byte r alone, then any numbers: all of it comes out as the truth, rounded once."""
    a, scales_a, b, scales_b = inputs_of(1, 288, STEP[kernel])
    a[0, :256] = 0
    rows = torch.arange(256)
    a[0, rows, rows % 16] = rows.to(torch.uint8)
    a[0, 256:258], a[0, 258:260] = 0x77, 0xF7  # the largest sum there is, and numbers that cancel
    b[0, :] |= 0x11  # no zeros
    b[0, 9:] = 0x77
    scales_a.view(torch.uint8).fill_(ONE)
    scales_b.view(torch.uint8).fill_(ONE)

    assert torch.equal(
        run(kernel, a, scales_a, b, scales_b), PROBLEM.reference(a, scales_a, b, scales_b).half()
    )


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_scale_is_decoded(run, kernel):
    """All codes of E4M3, with signs and NaN, times 2, which float16 holds."""
    a, scales_a, b, scales_b = inputs_of(1, 128, STEP[kernel])
    a.fill_(0), b.fill_(0)
    a[..., 0], a[..., 8] = 0x02, 0x04  # 1 in the first block, 2 in the second
    b[..., 0], b[..., 8] = 0x02, 0x02
    scales_a.view(torch.uint8)[0, :, 0] = torch.arange(128, dtype=torch.uint8)
    scales_a.view(torch.uint8)[0, :, 1] = torch.arange(255, 127, -1, dtype=torch.uint8)
    scales_b.view(torch.uint8).fill_(ONE)
    truth = PROBLEM.reference(a, scales_a, b, scales_b).half()

    assert int(truth.isnan().sum()) == 2
    assert torch.equal(run(kernel, a, scales_a, b, scales_b).nan_to_num(9999), truth.nan_to_num(9999))


@pytest.mark.parametrize("kernel", BY_SHARES)
def test_any_cut_is_right(run, kernel):
    inputs = inputs_of(2, 37, 2048 + STEP[kernel])  # a vector or eight more than one walk takes
    first = run(kernel, *inputs, cut=Cut(1, 2, 2))

    assert worst_error(first, PROBLEM.reference(*inputs)) <= 2.0**-11
    for cut in (Cut(3, 2, 2), Cut(37, 2, 2), Cut(50, 2, 2)):
        assert torch.equal(run(kernel, *inputs, cut=cut), first)


FAULTS = {
    "a sign is left out": (
        "constexpr unsigned SIGNS = 0x88888888u;",
        "constexpr unsigned SIGNS = 0x88888880u;",
    ),
    "one entry of the table": ("0x0c080604u;", "0x0c080704u;"),
    "nobody waits for a copy": ("wait_for_all_but<HALVES - 1>();", ""),
    "one group too many may be missing": ("wait_for_all_but<HALVES - 1>();", "wait_for_all_but<HALVES>();"),
    "scales are read before others have waited": ("__syncwarp();  // scales are copied by other lanes", ""),
    "scales are overwritten before others have read": ("__syncwarp();  // and read by them", ""),
    "halves of the ring stay where they are": ("words = next_words, next_words = used, ", ""),
    "scales of the wrong half": (", scales = next_scales, next_scales = used_scales;", ";"),
    "rows change places in the fold": ("folded(sums[0], sums[2], 16)", "folded(sums[0], sums[1], 16)"),
    "the parts are read before they are there": ("  __syncthreads();\n  for", "  for"),
    "the second walk forgets the first": ("start ? *part + sum : sum", "sum"),
    "scales past the end of K": ("part_v < vectors ? rows", "true ? rows"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(run, fault):
    inputs = inputs_of(1, 37, 2304)
    try:
        c = run("k12_ring", *inputs, changed=FAULTS[fault], cut=Cut(1, 2, 2))
        wrong = not worst_error(c, PROBLEM.reference(*inputs)) <= 2.0**-11
    except RuntimeError:
        wrong = True
    assert wrong


# --- refusals, and how the work is shared out -------------------------------------------------------------


@pytest.fixture
def names():
    a, scales_a, b, scales_b = inputs_of(2, 3, 256)
    return {"a": a, "scales_a": scales_a, "b": b, "scales_b": scales_b}


@pytest.mark.parametrize("kernel", ["k01_thread_a_row", *BY_SHARES])
@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"a": torch.zeros(2, 3, 128)}, TypeError, "a: expected uint8, got float32"),
        (
            {"a": torch.zeros(2, 3, 24, dtype=torch.uint8)},
            ValueError,
            "a: expected (L, M, K/2) with K a multiple of 32, got K=48",
        ),
        (
            {"scales_b": torch.zeros(2, 16, dtype=torch.uint8)},
            TypeError,
            "scales_b: expected float8_e4m3fn, got uint8",
        ),
        (
            {"b": torch.zeros(2, 48, dtype=torch.uint8)},
            ValueError,
            "b: expected (L, K/2) with K/2=128, got (2, 48)",
        ),
        (
            {"scales_a": torch.zeros(2, 16, 3).to(torch.float8_e4m3fn).transpose(1, 2)},
            ValueError,
            "scales_a: expected contiguous (L, M, K/16), got strides (48, 1, 3)",
        ),
        (
            {"b": torch.zeros(258, dtype=torch.uint8)[2:].view(2, 128)},
            ValueError,
            "b: expected an address divisible by 16, got one 2 bytes past it",
        ),
    ],
)
def test_what_no_kernel_takes(kernel, names, changes, error, says):
    with pytest.raises(error, match=f"^{re.escape(says)}$"):
        KERNELS[kernel].gemv_fp4(**names | changes)


def test_a_ring_wants_whole_vectors_of_scales():
    says = "a: expected (L, M, K/2) with K a multiple of 256, got K=96"
    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
        KERNELS["k12_ring"].gemv_fp4(*inputs_of(1, 2, 96))
    assert all(KERNELS["k12_ring"].supports(w) == (w.K % 256 == 0) for w in PROBLEM.check_on)
    assert all(KERNELS["k12_ring"].supports(w) for w in PROBLEM.time_on)


@pytest.mark.parametrize("letter", ["L", "M", "K"])
def test_sizes_that_no_kernel_takes(letter):
    most = {"L": 2**16 - 1, "M": 2**30, "K": 2**16}[letter]
    L, M, K = {"L": 1, "M": 1, "K": 32, letter: 2**17 if letter == "K" else most + 1}.values()
    shapes = ((L, M, K // 2), (L, M, K // 16), (L, K // 2), (L, K // 16))
    dtypes = (torch.uint8, torch.float8_e4m3fn) * 2
    inputs = [torch.empty(s, dtype=d, device="meta") for s, d in zip(shapes, dtypes, strict=True)]
    with pytest.raises(ValueError, match=rf"^a: expected {letter} <= {most}, got {letter}="):
        KERNELS["k12_ring"].gemv_fp4(*inputs)


@pytest.mark.parametrize("cut", [Cut(1, 16, 2), Cut(1, 0, 1), Cut(0, 1, 1), Cut(1, 1, 1)])
def test_a_cut_without_room_is_refused(cut):
    with pytest.raises(
        ValueError, match=r"^cut: expected 1 to 16 warps and at most 256 rows a block, got Cut"
    ):
        KERNELS["k12_ring"].gemv_fp4(*inputs_of(1, 257, 256), cut=cut)


@pytest.mark.parametrize(
    ("sizes", "cut"),
    [
        ((1, 7168, 16384), Cut(264, 16, 1)),
        ((8, 4096, 7168), Cut(33, 7, 2)),
        ((4, 7168, 2048), Cut(66, 2, 8)),
        ((8, 7168, 16384), Cut(33, 16, 1)),
        ((1, 1, 32), Cut(1, 1, 16)),
        ((70, 3, 64), Cut(1, 1, 16)),
        ((1, 100, 65536), Cut(100, 16, 1)),
        ((500, 5000, 1024), Cut(20, 1, 16)),
    ],
)
def test_how_an_h200_shares_out_the_work(sizes, cut):
    L, M, K = sizes
    found = cut_of(L, M, K, 132)

    assert found == cut
    assert found.warps * found.groups <= MOST_WARPS
    assert found.blocks * MOST_ROWS >= M
    assert found.warps * WARP_NUMBERS >= K or found.warps == MOST_WARPS
    # A card's blocks are all there at once, unless a block has no room for more rows; shared memory holds two.
    assert found.blocks * L <= BLOCKS * 132 or found.blocks == max(-(-M // MOST_ROWS), 1)
    shared = KERNELS["k12_ring"].LANE_BYTES * found.threads + 4 * MOST_ROWS * found.warps
    assert BLOCKS * (shared + 1024) <= 228 * 1024


# --- machine code -----------------------------------------------------------------------------------------

# Instructions of a thread for each byte of a and its scales, at most; less by more than 0.3 is worth a look, too.
PER_BYTE = {
    "k01_thread_a_row": 86.3, "k02_warp_a_row": 87.2, "k03_vectors": 53.4, "k04_block_sums": 50.0,
    "k05_table": 14.4, "k06_bits": 21.0, "k07_pairs": 10.5, "k08_decoded_once": 6.5, "k09_in_flight": 5.6,
    "k10_bytes": 3.6, "k11_resident": 3.8, "k12_ring": 4.5,
}  # fmt: skip


def loop_of(kernel, w):
    """As per_byte.loop_of; looked at anew where the kernel, or who counts, has changed."""
    source = FOLDER / f"{kernel}.cu"
    counted_by = hashlib.sha256(Path(per_byte.__file__).read_bytes()).hexdigest()

    def make():
        loop = per_byte.loop_of(kernel, w)
        return [dict(sorted(loop.instructions.items())), loop.a_bytes]

    instructions, a_bytes = known([decides(source), counted_by, w.label], make)
    return instructions, a_bytes


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_a_byte_costs(kernel):
    for w in HACKATHON if kernel in BY_SHARES else HACKATHON[:1]:
        instructions, a_bytes = loop_of(kernel, w)
        per = sum(instructions.values()) / a_bytes

        assert per <= PER_BYTE[kernel]
        assert per > PER_BYTE[kernel] - 0.3


def test_what_the_loops_are_made_of():
    pairs, fours, resident, ring = (
        loop_of(kernel, HACKATHON[0])[0]
        for kernel in ("k09_in_flight", "k10_bytes", "k11_resident", "k12_ring")
    )

    assert pairs["LOP3"] == 8 * 16 * 2  # eight vectors, sixteen pairs: two for each
    assert pairs["HFMA2"] + pairs["HMUL2"] == 8 * 16
    assert "IDP" not in pairs
    assert fours["IDP"] == fours["PRMT"] == 8 * 16  # four words: two registers above zero, two below
    assert resident["IDP"] == resident["PRMT"] == ring["IDP"] == 4 * 16
    assert resident["LDG"] == 2 * 4
    assert resident["SHFL"] == ring["SHFL"] == 6
    assert (ring["LDGSTS"], ring["LDGDEPBAR"], ring.get("LDG", 0)) == (4 + 1, 1, 0)


def room(code, name):
    """Registers, stack and shared memory of the kernel; and whether vectors of a pass L1 by."""
    found = code.resources[name]
    return [found.registers, found.stack, found.shared, code.text.count("LDG.E.NA.128")]


@pytest.mark.parametrize("w", HACKATHON, ids=lambda w: w.label)
@pytest.mark.parametrize("kernel", BY_SHARES)
def test_two_blocks_fit_on_a_multiprocessor_and_nothing_is_spilled(kernel, w):
    cut = cut_of(w.L, w.M, w.K, 132)
    name = f"gemv_{kernel.partition('_')[2]}"
    registers, stack, shared, past_l1 = seen(room, FOLDER / f"{kernel}.cu", "sm_90a", cut.defines, name)

    assert stack == 0
    assert registers * cut.threads * BLOCKS <= 65536
    assert shared == 1024 + 4 * MOST_ROWS * cut.warps
    assert (past_l1 > 0) == (kernel == "k11_resident")


@pytest.mark.parametrize("kernel", [name for name in KERNELS if name not in BY_SHARES])
def test_nothing_is_spilled(kernel):
    name = f"gemv_{kernel.partition('_')[2]}"

    assert seen(room, FOLDER / f"{kernel}.cu", "sm_90a", None, name)[1] == 0


def test_a_listing_without_a_loop_is_refused():
    with pytest.raises(ValueError, match=r"^machine code: expected a loop that loads"):
        per_byte.loop_in("        /*0000*/                   EXIT ;\n", loads_b=False)


def test_of_two_loops_in_each_other_the_inner_one_counts():
    lines = [
        "S2R R0, SR_TID.X",
        ".L_x_1:",
        "MOV R1, R2",
        ".L_x_0:",
        "LDG.E.128 R4, [R2]",
        "@P0 FFMA R1, R1, R1, R1",
    ]
    lines += ["@P0 BRA `(.L_x_0)", "@!P1 BRA `(.L_x_1)", "EXIT"]
    places = iter(range(0, 1000, 16))
    text = "\n".join(
        line if line.startswith(".L") else f"        /*{next(places):04x}*/    {line} ;" for line in lines
    )
    loop = per_byte.loop_in(text, loads_b=False)

    assert loop.instructions == {"LDG": 1, "FFMA": 1, "BRA": 1}
    assert (loop.a_bytes, loop.per_byte) == (18, 3 / 18)
    assert per_byte.loop_in(text, loads_b=True).a_bytes == 9
