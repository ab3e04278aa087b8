"""Formats of four bits: every code by its definition, encoder and decoder bit for bit, the Triton kernels too."""

import importlib.util
import sys
import warnings
from fractions import Fraction
from pathlib import Path

import formats_by_definition as definition
import hard_blocks
import numpy as np
import pytest
import torch

from course_kernels.cuda.four_bits import quantised, values_of
from course_kernels.nvfp4 import blocks, dequantise, formats, quantise
from course_kernels.nvfp4.blocks import MXFP4, NVFP4, Encoded
from course_kernels.nvfp4.formats import BF16, E2M1, E4M3, E8M0, FP16

pytestmark = pytest.mark.kept

FORMS = (NVFP4, MXFP4)
BY_DEFINITION = {
    E2M1: lambda code: definition.E2M1[code % 8] * (-1 if code >= 8 else 1),
    E4M3: definition.e4m3,
    E8M0: definition.e8m0,
}
by_format = pytest.mark.parametrize("form", FORMS, ids=lambda f: f.name)


# --- codes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", BY_DEFINITION, ids=lambda f: f.name)
def test_every_code_stands_for_what_its_definition_says(form):
    found = formats.decode(np.arange(1 << form.bits), form)
    for code, number in enumerate(found):
        due = BY_DEFINITION[form](code)
        assert np.isnan(number) if due is definition.NAN else Fraction(number) == due
        assert np.signbit(number) == bool(code & form.sign) or due is definition.NAN


@pytest.mark.parametrize(("form", "kind"), [(BF16, torch.bfloat16), (FP16, torch.float16)])
def test_every_code_of_16_bits_is_torch_s(form, kind):
    codes = np.arange(1 << 16)
    due = torch.from_numpy(codes.astype(np.uint16)).view(kind).double().numpy()
    np.testing.assert_array_equal(formats.decode(codes, form), due)


@pytest.mark.parametrize("form", BY_DEFINITION, ids=lambda f: f.name)
def test_a_code_is_the_code_of_what_it_stands_for(form):
    codes = np.arange(1 << form.bits)
    back = formats.encode(formats.decode(codes, form), form)
    nan = np.isnan(formats.values(form))
    assert np.array_equal(back[~nan], codes[~nan])
    assert (back[nan] == form.nan).all()


def around(form):
    """Numbers of a format, what lies midway, and the next float64 on both sides of each; also past both ends."""
    numbers = formats.magnitudes(form)
    at = np.concatenate([numbers, (numbers[1:] + numbers[:-1]) / 2, numbers[:1] / 2, numbers[-1:] * 1.5])
    return np.concatenate([at, np.nextafter(at, np.inf), np.nextafter(at, -np.inf)[at > 0], [5e-324, 1e308]])


def rounded(x, form, toward):
    """The code of a number >= 0 by its definition."""
    codes = [
        (c, v)
        for c in range(1 << form.bits - form.signed)
        if (v := BY_DEFINITION[form](c)) is not definition.NAN
    ]
    if toward == "nearest":
        return definition.nearest(x, codes, even=form is not E8M0)
    below, above = [c for c, v in codes if v <= x], [c for c, v in codes if v >= x]
    return max(below, default=0) if toward == "down" else min(above, default=codes[-1][0])


@pytest.mark.parametrize("toward", ["nearest", "down", "up"])
@pytest.mark.parametrize("form", BY_DEFINITION, ids=lambda f: f.name)
def test_numbers_between_codes_are_rounded_as_is_said(form, toward):
    x = around(form)
    x = (
        x if form is not E8M0 else x[:: 7 if toward == "nearest" else 5]
    )  # fractions of 2**-127 take their time
    due = [rounded(Fraction(number), form, toward) for number in x.tolist()]
    assert formats.encode(x, form, toward).tolist() == due
    if form.signed:
        assert formats.encode(-x, form, toward).tolist() == [code + form.sign for code in due]


def test_ties_go_to_even_and_what_has_no_code_gets_the_one_that_is_said():
    x = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, -0.0, -0.1, 7, np.inf, -np.inf, np.nan])
    assert formats.encode(x, E2M1).tolist() == [0, 2, 2, 4, 4, 6, 6, 8, 8, 7, 7, 15, 7]
    x = np.array([464, 465, 480, np.inf, -np.inf, np.nan, -0.0, 2.0**-10, 1.5 * 2.0**-9])
    assert formats.encode(x, E4M3).tolist() == [126, 126, 126, 126, 254, 127, 128, 0, 2]
    x = np.array([0.0, -0.0, 1.5, 3.0, 0.7, 1e300, np.inf, np.nan])
    assert formats.encode(x, E8M0).tolist() == [0, 0, 128, 129, 126, 254, 254, 255]


# --- blocks ------------------------------------------------------------------------------------------


def by_definition(x, form, second):
    """Codes and scales of (M, K), with fractions."""
    rows = [
        [
            definition.block(tuple(block.tolist()), tuple(np.signbit(block).tolist()), form.name, second)
            for block in row.reshape(-1, form.block)
        ]
        for row in x
    ]
    codes = [[code for codes, _ in row for code in codes] for row in rows]
    return np.array(codes), np.array([[scale for _, scale in row] for row in rows])


@pytest.fixture(scope="module")
def due():
    """For each format: (x, second scale or None, codes, scales), by the definition, worked out once."""
    found = {}
    for form in FORMS:
        hard = hard_blocks.blocks()
        some = np.random.default_rng(1).standard_normal((16, 32)).astype(np.float32)
        cases = [(hard, np.float32(1)), (some, np.float32(1))]
        if form.has_second:
            cases += [(x, None) for x in hard_blocks.tensors().values()]
            cases += [(some, np.float32(2.0**-126)), (some, np.float32(3e37)), (some, np.float32(1 / 3))]
        found[form] = []
        for x, second in cases:
            used = definition.second_scale(x.ravel().tolist()) if second is None else Fraction(float(second))
            found[form].append((x, second, used, *by_definition(x, form, used)))
    return found


def wrong_in(due, form, encode):
    """Which of the cases an encoder (x, form, second) -> (codes, scales, second) gets wrong."""
    wrong = []
    for number, (x, second, used, codes, scales) in enumerate(due[form]):
        found = encode(x, form, second)
        if not (
            np.array_equal(found[0], codes)
            and np.array_equal(found[1], scales)
            and Fraction(float(found[2])) == used
        ):
            wrong.append(number)
    return wrong


def numpy_encode(x, form, second):
    return blocks.encode(x, form, second=second)


@by_format
def test_the_encoder_is_the_definition_bit_for_bit(due, form):
    with warnings.catch_warnings(action="error"):
        assert wrong_in(due, form, numpy_encode) == []


@by_format
def test_the_decoder_is_the_definition_for_every_code_and_scale(form):
    codes = np.tile(np.arange(16, dtype=np.uint8), (256, form.block // 16))
    for second in (1.0, 2.0**-126, 1 / 3) if form.has_second else (1.0,):
        second = np.float32(second)
        found = blocks.decode(Encoded(codes, np.arange(256, dtype=np.uint8)[:, None], second), form)
        exact = [
            [definition.decoded(code, scale, form.name, Fraction(float(second))) for code in range(16)]
            for scale in range(256)
        ]
        due = np.float32(exact)
        np.testing.assert_array_equal(found[:, :16], due)
        np.testing.assert_array_equal(
            np.signbit(found[:, :16]) & ~np.isnan(due), np.signbit(due) & ~np.isnan(due)
        )


# Edits of blocks.py, each a slip that somebody makes.
SLIPS = {
    "the scale is rounded up": ('else "nearest")', 'else "up")'),
    "a scale may be zero": ("np.uint8(0 if formats.values(form.scale)[0] else 1)", "np.uint8(0)"),
    "the second scale is forgotten": ("astype(np.float32) * np.float32(second)", "astype(np.float32)"),
    "the second scale divides": (
        "astype(np.float32) * np.float32(second)",
        "astype(np.float32) / np.float32(second)",
    ),
    "the second scale is the largest over 448": (
        "form.element.largest * form.scale.largest)",
        "form.scale.largest)",
    ),
    "the second scale counts infinities": ("np.abs(x[np.isfinite(x)])", "np.abs(x)"),
    "the second scale is not held above zero": (
        "max(largest / range_of_both, SMALLEST_SECOND)",
        "largest / range_of_both",
    ),
    "infinities are numbers": ("np.isfinite(blocks).all(axis=-1)", "~np.isnan(blocks).any(axis=-1)"),
    "the largest without its sign is forgotten": (
        "largest = np.abs(blocks).max(axis=-1)",
        "largest = blocks.max(axis=-1)",
    ),
    "the scale of the neighbour": (
        "scales = _scales(blocks, form, second, rule)",
        "scales = np.roll(_scales(blocks, form, second, rule), 1, -1)",
    ),
    "seven is the largest": ("np.float32(form.element.largest) * second", "np.float32(7) * second"),
}


def edited(tmp_path, module, right, wrong):
    """A module with one edit."""
    text = Path(module.__file__).read_text()
    assert text.count(right) == 1
    file = tmp_path / f"edited_{module.__name__.rpartition('.')[2]}.py"
    file.write_text(text.replace(right, wrong))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    found = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, file.stem, found)
        spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize(("right", "wrong"), SLIPS.values(), ids=SLIPS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_slip_of_the_encoder_is_seen(due, tmp_path, right, wrong):
    slip = edited(tmp_path, blocks, right, wrong)

    def encode(x, form, second):
        try:
            return slip.encode(x, slip.NVFP4, second=second)
        except ValueError:  # a scale that there is not
            return x, x, np.float32(0)

    assert wrong_in(due, NVFP4, encode)


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.name)
def test_other_rules_choose_other_scales_as_is_said(form):
    x = np.random.default_rng(2).standard_normal((64, 64)).astype(np.float32)
    errors, scales = {}, {}
    for rule in ("nearest", "up", "error"):
        encoded = blocks.encode(x, form, rule=rule)
        errors[rule] = (
            np.square(blocks.decode(encoded, form).astype(float) - x).reshape(-1, form.block).sum(axis=1)
        )
        scales[rule] = formats.decode(encoded.scales, form.scale)
        wanted = np.abs(x).reshape(64, -1, form.block).max(axis=-1) / (6 * float(encoded.second))
    assert (scales["up"] >= wanted * (1 - 2.0**-23)).all()
    assert (scales["up"] > scales["nearest"]).any()
    assert (errors["error"] <= errors["nearest"]).all()
    assert errors["error"].sum() < min(errors["nearest"].sum(), errors["up"].sum())


def test_two_codes_share_a_byte_the_first_in_the_low_bits():
    codes = np.uint8([[1, 2, 15, 0]])
    assert blocks.pack(codes).tolist() == [[0x21, 0x0F]]
    every = np.stack(np.meshgrid(np.arange(16), np.arange(16)), -1).reshape(1, -1).astype(np.uint8)
    assert np.array_equal(blocks.unpack(blocks.pack(every)), every)


def test_bits_of_a_number():
    assert (NVFP4.bits_per_number, MXFP4.bits_per_number) == (4.5, 4.25)


X = np.zeros((2, 32), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "line"),
    [
        (lambda: blocks.encode(X.astype(float)), TypeError, "x: expected float32, got float64"),
        (
            lambda: blocks.encode(X[:, :15]),
            ValueError,
            "x: expected (…, K) with K a multiple of 16, got (2, 15)",
        ),
        (lambda: blocks.encode(X, MXFP4, second=2.0), ValueError, "second: expected 1, got 2.0"),
        (
            lambda: blocks.encode(X, second=0.0),
            ValueError,
            "second: expected a normal float32 above zero, got 0.0",
        ),
        (
            lambda: blocks.encode(X, second=np.nan),
            ValueError,
            "second: expected a normal float32 above zero, got nan",
        ),
        (
            lambda: blocks.encode(X, rule="power"),
            ValueError,
            "rule: expected one that NVFP4 has, got 'power'",
        ),
        (lambda: blocks.encode(X, rule="down"), ValueError, "rule: expected one that NVFP4 has, got 'down'"),
        (
            lambda: blocks.decode(
                Encoded(np.zeros((2, 32), np.uint8), np.zeros((2, 1), np.uint8), np.float32(1))
            ),
            ValueError,
            "scales: expected one for each 16 of codes (2, 32), got (2, 1)",
        ),
        (
            lambda: blocks.pack(np.uint8([[1, 2, 3]])),
            ValueError,
            "codes: expected an even number in each row, got 3",
        ),
        (lambda: blocks.pack(np.uint8([[1, 16]])), ValueError, "codes: expected 0 to 15, got 16"),
        (lambda: formats.decode(np.array([16]), E2M1), ValueError, "codes: expected 0 to 15, got 16 to 16"),
        (
            lambda: formats.decode(np.array([1.0]), E2M1),
            TypeError,
            "codes: expected whole numbers, got float64",
        ),
        (
            lambda: formats.encode(np.array([1]), E2M1),
            TypeError,
            "x: expected a floating-point type, got int64",
        ),
        (
            lambda: formats.encode(np.array([-2.0]), E8M0),
            ValueError,
            "x: expected no number below zero, since E8M0",
        ),
        (
            lambda: formats.encode(X, E2M1, "even"),
            ValueError,
            "toward: expected nearest, down or up, got 'even'",
        ),
        (
            lambda: blocks.encode_int4(X),
            ValueError,
            "x: expected (…, K) with K a multiple of 128, got (2, 32)",
        ),
        (lambda: blocks.encode_int4(X / X, group=32), ValueError, "x: expected finite numbers"),
        (
            lambda: blocks.encode_int4(X + 1e6, FP16, 32),
            ValueError,
            "x: expected at most 524032.0, got 1000000.0",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_cannot_be_encoded_is_refused(call, error, line):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(line)


# --- whole numbers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("scale", "kind"), [(BF16, torch.bfloat16), (FP16, torch.float16)])
def test_int4_is_what_the_kernels_of_four_bits_take(scale, kind):
    draw = np.random.default_rng(4)
    x = (draw.standard_normal((64, 256)) * np.exp2(draw.integers(-20, 12, (64, 1)))).astype(np.float32)
    x[3], x[4, :128], x[5] = 0, -0.0, np.float32(1e-30)
    x[6] = np.arange(256) % 16 - 8  # a scale of 1, and halves
    x[7] = x[6] / 2 - 0.25
    q, scales = quantised(torch.from_numpy(x), kind)
    ours = blocks.encode_int4(x, scale)

    assert np.array_equal(ours.q, q.numpy())
    assert np.array_equal(ours.scales, scales.view(torch.uint16).numpy())
    assert np.array_equal(blocks.decode_int4(ours), values_of(q, scales).float().numpy())


# --- Triton ------------------------------------------------------------------------------------------


def in_triton(module):
    def encode(x, form, second):
        second = None if second is None or not form.has_second else torch.tensor([second])
        packed, scales, used = module.quantise(torch.from_numpy(x), form, second=second)
        return blocks.unpack(packed.numpy()), scales.numpy(), used.item()

    return encode


@by_format
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_kernel_rounds_as_the_definition_bit_for_bit(due, form):
    assert wrong_in(due, form, in_triton(quantise)) == []


@by_format
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_kernel_takes_short_numbers(form, dtype):
    x = torch.randn(3, 96, generator=torch.Generator().manual_seed(0)).to(dtype)
    x[1, 4] = torch.inf
    due = blocks.encode(x.float().numpy(), form)
    packed, scales, second = quantise.quantise(x, form)

    assert np.array_equal(blocks.unpack(packed.numpy()), due.codes)
    assert np.array_equal(scales.numpy(), due.scales)
    assert second.item() == due.second


@by_format
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_kernel_decodes_every_code_and_scale_bit_for_bit(form, dtype):
    codes = np.tile(np.arange(16, dtype=np.uint8), (256, form.block // 16))
    scales = np.arange(256, dtype=np.uint8)[:, None]
    for second in (np.float32(1), np.float32(1 / 3)) if form.has_second else (np.float32(1),):
        due = torch.from_numpy(blocks.decode(Encoded(codes, scales, second), form)).to(dtype)
        found = dequantise.dequantise(
            torch.from_numpy(blocks.pack(codes)),
            torch.from_numpy(scales),
            torch.tensor([second]),
            form,
            dtype=dtype,
        )
        nan = due.isnan()
        assert torch.equal(found.isnan(), nan)
        assert torch.equal(found[~nan], due[~nan])
        assert torch.equal(found[~nan].signbit(), due[~nan].signbit())


def test_more_than_one_program_each_writes_its_own():
    x = torch.randn(
        5, 1264, generator=torch.Generator().manual_seed(0)
    )  # 395 blocks, of which a program takes 128
    due = blocks.encode(x.numpy())
    packed, scales, second = quantise.quantise(x)

    assert np.array_equal(blocks.unpack(packed.numpy()), due.codes)
    assert np.array_equal(scales.numpy(), due.scales)
    back = dequantise.dequantise(packed, scales, second, dtype=torch.float32)
    assert np.array_equal(back.numpy(), blocks.decode(due))


BACK = {
    "the nibbles are swapped": ("tl.join(two & 15, two >> 4)", "tl.join(two >> 4, two & 15)"),
    "a half is lost": ("tl.where(size < 2, size * 0x3F000000, bits)", "bits"),
    "the sign is lost": ("(code & 8) << 28", "0"),
    "the second scale is forgotten": (" * tl.load(second_ptr)", ""),
    "cut to bfloat16": ("bits + 0x7FFF + (bits >> 16 & 1) >> 16", "bits >> 16"),
    "a tie goes up to bfloat16": ("0x7FFF + (bits >> 16 & 1)", "0x8000"),
}


@pytest.mark.parametrize(("right", "wrong"), BACK.values(), ids=BACK)
def test_a_fault_of_the_decoding_kernel_is_seen(tmp_path, right, wrong):
    """With a second scale whose products lie midway between two numbers of bfloat16, and with others."""
    slip = edited(tmp_path, dequantise, right, wrong)
    codes, scales = np.tile(np.arange(16, dtype=np.uint8), (120, 1)), np.arange(120, dtype=np.uint8)[:, None]
    for second in np.float32([1 / 3, 1 + 2.0**-8]):
        given = torch.from_numpy(blocks.pack(codes)), torch.from_numpy(scales), torch.tensor([second])
        due = torch.from_numpy(blocks.decode(Encoded(codes, scales, second))).bfloat16()
        assert torch.equal(dequantise.dequantise(*given), due)
        if not torch.equal(slip.dequantise(*given), due):
            return
    pytest.fail("not seen")


FAULTS = {
    "a tie of codes goes up": ("y > 0.25", "y >= 0.25"),
    "a tie of codes goes down": ("y >= 1.75", "y > 1.75"),
    "a tie of scales goes up": ("0x7FFFF + (bits >> 20 & 1)", "0x80000"),
    "a scale is cut off": ("bits + 0x7FFFF + (bits >> 20 & 1) >> 20", "bits >> 20"),
    "subnormal scales are lost": ("tl.where(bits < 0x3C800000, subnormal, normal)", "normal"),
    "a scale may be zero": ("tl.maximum(code, 1)", "tl.maximum(code, 0)"),
    "a scale overflows to NaN": ("1), 0x7E)", "1), 0x7F)"),
    "the second scale is forgotten": ("e4m3_to_float(scale) * second", "e4m3_to_float(scale)"),
    "the nibbles are swapped": ("first | other << 4", "other | first << 4"),
    "the sign is lost": ("code |= bits >> 28 & 8", "code |= 0"),
    "NaN does not spread": ("largest >= 0x7F800000", "largest > 0x7F800000"),
    "the second scale counts infinities": ("size < 0x7F800000, size, 0", "size < 0x7F800001, size, 0"),
}


@pytest.mark.parametrize(("right", "wrong"), FAULTS.values(), ids=FAULTS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_fault_of_the_kernel_is_seen(due, tmp_path, right, wrong):
    assert wrong_in(due, NVFP4, in_triton(edited(tmp_path, quantise, right, wrong)))


def bytes_of(*shape):
    return torch.zeros(*shape, dtype=torch.uint8)


ONE = torch.ones(1)


@pytest.mark.parametrize(
    ("call", "error", "line"),
    [
        (
            lambda: quantise.quantise(bytes_of(2, 32)),
            TypeError,
            "x: expected float32 or bfloat16 or float16, got uint8",
        ),
        (
            lambda: quantise.quantise(torch.zeros(32)),
            ValueError,
            "x: expected (M, K) with no empty dimension, got (32,)",
        ),
        (
            lambda: quantise.quantise(torch.zeros(2, 24)),
            ValueError,
            "x: expected (M, K) with K a multiple of 16, got K=24",
        ),
        (
            lambda: quantise.quantise(torch.zeros(2, 48), MXFP4),
            ValueError,
            "x: expected (M, K) with K a multiple of 32, got K=48",
        ),
        (
            lambda: quantise.quantise(torch.zeros(32, 32).t()[:16]),
            ValueError,
            "x: expected contiguous (M, K), got strides",
        ),
        (
            lambda: quantise.quantise(torch.zeros(2, 32), MXFP4, second=ONE),
            ValueError,
            "second: expected None, since MXFP4 has no second scale, got a tensor",
        ),
        (
            lambda: quantise.quantise(torch.zeros(2, 32), second=torch.ones(2)),
            ValueError,
            "second: expected (1,) with 1=1",
        ),
        (
            lambda: dequantise.dequantise(bytes_of(2, 16), bytes_of(2, 2), ONE, dtype=torch.float64),
            TypeError,
            "dtype: expected float32, bfloat16 or float16, got float64",
        ),
        (
            lambda: dequantise.dequantise(bytes_of(2, 16), bytes_of(2, 1), ONE),
            ValueError,
            "scales: expected (M, S) with S=2, got (2, 1)",
        ),
        (
            lambda: dequantise.dequantise(bytes_of(2, 12), bytes_of(2, 1), ONE),
            ValueError,
            "packed: expected (M, K/2) with K a multiple of 16, got K=24",
        ),
    ],
)
def test_what_a_launcher_cannot_take_is_refused(call, error, line):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(line)
