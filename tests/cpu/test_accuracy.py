"""Rounding errors: tiny cases by hand, the choices that a format leaves, and a model whose weights are rounded."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from course_kernels.nvfp4 import accuracy, blocks
from course_kernels.nvfp4.accuracy import (
    NAMES,
    Rounding,
    block_errors,
    errors,
    normal_weights,
    outlier_weights,
    rotated,
    rounded,
)
from course_kernels.nvfp4.formats import BF16
from course_models.config import Config
from course_models.model import Model
from course_models.rounded_weights import matrices, rounded_model, weight_errors

pytestmark = pytest.mark.kept

SEVEN = {"query", "key", "value", "output", "gate", "up", "down"}
SIZES = Config(layers=2, width=128, heads=2, kv_heads=1, head_dim=64, hidden=256, vocab=16, max_tokens=8)


def a_row(*numbers, length):
    return np.array([[*numbers, *[0.0] * (length - len(numbers))]], np.float32)


# --- by hand -----------------------------------------------------------------------------------------

# What a row becomes. Each has a largest number that makes its block's scale a round one.
BY_HAND = {
    # 448 is E4M3's largest, so the scale is 1. Between 16 and 32 its steps are 2: 17 is a tie, and 16 is even.
    "FP8": (Rounding("FP8"), (448.0, 17.0, -0.3), (448.0, 16.0, -0.3125)),
    # 2688 = 6 * 448: the second scale is 1, the block's 448. 1344 is 3 steps, 1120 is 2.5, which goes to 2.
    "NVFP4": (Rounding("NVFP4"), (2688.0, 1344.0, 1120.0, -100.0), (2688.0, 1344.0, 896.0, 0.0)),
    # 7 / 6 lies between E4M3's 1.125 and 1.25, nearer to the first: 7 becomes 6.75, and 1 is a step of 0.888.
    "NVFP4 nearest": (Rounding("NVFP4", second=False), (7.0, 1.0), (6.75, 1.125)),
    "NVFP4 up": (Rounding("NVFP4", rule="up", second=False), (7.0, 1.0), (7.5, 1.25)),
    # A largest of 7 has the scale 2**(2 - 2) = 1 by the specification, and saturates; up gives 2.
    "MXFP4": (Rounding("MXFP4"), (7.0, 5.0, 0.3), (6.0, 4.0, 0.5)),
    "MXFP4 up": (Rounding("MXFP4", rule="up"), (7.0, 5.0, 0.3), (8.0, 4.0, 0.0)),
    # The largest becomes -8: a scale of -1.
    "INT4": (Rounding("INT4"), (8.0, -7.0, 2.5, 1.5), (8.0, -7.0, 2.0, 2.0)),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_rows_become_what_they_do_by_hand(case):
    how, numbers, due = BY_HAND[case]
    found = rounded(a_row(*numbers, length=128), how)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, a_row(*due, length=128))


def test_an_error_by_hand():
    # 7, 5 and 0.3 become 6, 4 and 0.5: the errors' squares add up to 2.04, the numbers' to 74.09.
    x, how = a_row(7.0, 5.0, 0.3, length=64), Rounding("MXFP4")
    x[0, 32:34] = 3.0, 1.2  # 3 and 1.2 have the scale 1/2: 6, and 2.4, which becomes 2. One block does worse
    back = rounded(x, how)
    np.testing.assert_array_equal(back[0, 32:34], np.float32([3.0, 1.0]))
    of_blocks = block_errors(x, back)
    assert of_blocks[0] == pytest.approx([math.sqrt(2.04 / 74.09), math.sqrt(0.04 / 10.44)])
    found = errors(x, back)
    assert found.relative == pytest.approx(math.sqrt(2.08 / 84.53))
    assert found.worst == of_blocks[0, 0]


def test_a_block_of_zeros_has_no_error_unless_it_was_changed():
    x, back = np.zeros((1, 64), np.float32), np.zeros((1, 64), np.float32)
    back[0, 40] = 1.0
    assert block_errors(x, back).tolist() == [[0.0, math.inf]]
    for name in NAMES:
        assert not rounded(np.zeros((1, 128), np.float32), Rounding(name)).any()


def test_bits_and_multiples():
    assert [Rounding(name).bits_per_number for name in NAMES] == [8.0, 4.5, 4.25, 4.125]
    assert [Rounding(name).multiple for name in NAMES] == [1, 16, 32, 128]
    assert Rounding("NVFP4", rotation=128).multiple == 128
    assert Rounding("INT4", rotation=16).multiple == 128


def test_the_encoders_are_those_of_the_formats():
    x = normal_weights(4, 256)
    np.testing.assert_array_equal(rounded(x, Rounding("NVFP4")), blocks.decode(blocks.encode(x)))
    np.testing.assert_array_equal(
        rounded(x, Rounding("MXFP4", rule="error")),
        blocks.decode(blocks.encode(x, blocks.MXFP4, rule="error"), blocks.MXFP4),
    )
    np.testing.assert_array_equal(
        rounded(x, Rounding("INT4")), blocks.decode_int4(blocks.encode_int4(x, BF16))
    )
    # E4M3 of a tensor whose largest is 448, as torch has it.
    scale = np.abs(x).max() / np.float32(448)
    due = torch.from_numpy(x / scale).to(torch.float8_e4m3fn).float().numpy() * scale
    np.testing.assert_array_equal(rounded(x, Rounding("FP8")), due)


# --- rotation ----------------------------------------------------------------------------------------


def test_a_rotation_by_hand():
    # Sums and differences of 1, 2, 3, 4: 10, -2, -4, 0, over the root of 4.
    np.testing.assert_array_equal(rotated(np.float32([1, 2, 3, 4]), 4), [5.0, -1.0, -2.0, 0.0])
    outlier = np.zeros(16)
    outlier[5] = 8.0
    assert set(np.abs(rotated(outlier, 16))) == {2.0}  # one number becomes sixteen of a quarter
    np.testing.assert_array_equal(
        rotated(np.ones(16), 16), [4.0, *[0.0] * 15]
    )  # and back: the worst that can happen


@pytest.mark.parametrize("block", accuracy.ROTATIONS)
def test_a_rotation_is_its_own_inverse_and_keeps_lengths_and_products(block):
    x, w = outlier_weights(8, 256, seed=3), normal_weights(8, 256, seed=4)
    there = rotated(x, block)
    np.testing.assert_array_equal(rotated(there, block).astype(np.float32), x)  # every bit
    assert np.square(there).sum() == pytest.approx(np.square(x.astype(np.float64)).sum(), rel=1e-12)
    product = (rotated(x, block) * rotated(w, block)).sum(axis=-1)
    assert product == pytest.approx((x.astype(np.float64) * w).sum(axis=-1), rel=1e-9, abs=1e-12)
    # Blocks know nothing of each other.
    alone = rotated(x[:, block : 2 * block], block)
    np.testing.assert_array_equal(alone, there[:, block : 2 * block])


def test_a_rotation_of_16_is_exact():
    x = np.random.default_rng(0).integers(-(2**24), 2**24, (4, 64)).astype(np.float64)
    np.testing.assert_array_equal(rotated(rotated(x, 16), 16), x)


# --- what the choices bring --------------------------------------------------------------------------


def error_of(x, name, **choices):
    return errors(x, rounded(x, Rounding(name, **choices))).relative


def test_the_scale_with_the_least_error_has_the_least_error():
    x = normal_weights(32, 256)
    for name in ("NVFP4", "MXFP4"):
        rules = ["nearest", "up", *(["power"] if name == "MXFP4" else [])]
        assert error_of(x, name, rule="error") < min(error_of(x, name, rule=rule) for rule in rules)


def test_the_second_scale_matters_where_the_numbers_are_small():
    x = normal_weights(32, 256)
    small = x * np.float32(2.0**-10)  # scales of blocks would be among E4M3's smallest
    assert error_of(small, "NVFP4", second=False) > 1.5 * error_of(small, "NVFP4")
    assert error_of(x * 4, "NVFP4", second=False) < 1.1 * error_of(x * 4, "NVFP4")


def test_a_rotation_saves_whole_numbers_from_outliers_and_not_every_format():
    outliers, normal = outlier_weights(64, 512), normal_weights(64, 512)
    assert error_of(outliers, "INT4", rotation=128) < 0.5 * error_of(outliers, "INT4")
    assert error_of(outliers, "MXFP4", rotation=32) < error_of(outliers, "MXFP4")
    # Short blocks and steps that grow with the number: there an outlier costs only its neighbours, and few of them.
    assert error_of(outliers, "NVFP4", rotation=16) > error_of(outliers, "NVFP4")
    for name, rotation in (("NVFP4", 16), ("MXFP4", 32), ("INT4", 128)):  # normal numbers stay normal
        assert error_of(normal, name, rotation=rotation) == pytest.approx(error_of(normal, name), rel=0.03)


def test_weights_are_of_their_seed():
    x, y = normal_weights(16, 512, seed=1), outlier_weights(16, 512, seed=1, share=1 / 64, times=20.0)
    assert x.dtype == y.dtype == np.float32
    np.testing.assert_array_equal(x, normal_weights(16, 512, seed=1))
    assert (x != normal_weights(16, 512, seed=2)).all()
    assert x.std() == pytest.approx(512**-0.5, rel=0.03)
    large = x != y
    assert x[large].std() == pytest.approx(x.std(), rel=0.25)  # whichever they are
    np.testing.assert_array_equal(y[large], x[large] * np.float32(20))
    assert large.mean() == pytest.approx(1 / 64, rel=0.25)


# --- a model -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_model_s_seven_matrices_are_rounded_and_nothing_else(name):
    model = Model.random(SIZES, dtype=torch.float32)
    before = {key: weight.clone() for key, weight in model.named_parameters()}
    twin = rounded_model(model, Rounding(name))
    assert len(dict(matrices(model))) == 7 * SIZES.layers
    for key, weight in twin.named_parameters():
        assert torch.equal(model.get_parameter(key), before[key])  # the model itself stays
        if key.rpartition(".")[2] in SEVEN:
            due = rounded(before[key].detach().numpy(), Rounding(name))
            np.testing.assert_array_equal(weight.detach().numpy(), due)
            assert not torch.equal(weight, before[key])
        else:
            assert torch.equal(weight, before[key])
    found = weight_errors(model, twin)
    assert found.keys() == dict(matrices(model)).keys()
    query = before["layers.1.query"].detach().numpy()
    assert found["layers.1.query"] == errors(query, rounded(query, Rounding(name)))
    assert not any(weight_errors(model, model)["layers.0.up"])


def test_a_short_type_rounds_once_more_and_stays():
    model = Model.random(SIZES, dtype=torch.bfloat16)
    twin = rounded_model(model, Rounding("NVFP4"))
    assert twin.dtype == torch.bfloat16
    due = torch.from_numpy(rounded(model.layers[0].up.float().detach().numpy(), Rounding("NVFP4")))
    assert torch.equal(twin.layers[0].up, due.bfloat16())


# --- refusals ----------------------------------------------------------------------------------------

X = np.zeros((2, 48), np.float32)
NARROW = dataclasses.replace(SIZES, hidden=160)
REFUSED = [
    (lambda: Rounding("FP4"), ValueError, "name: expected one of FP8, NVFP4, MXFP4, INT4, got 'FP4'"),
    (lambda: Rounding("FP8", rule="up"), ValueError, "rule: expected None for FP8, got 'up'"),
    (lambda: Rounding("MXFP4", second=False), ValueError, "second: expected True for MXFP4, got False"),
    (lambda: Rounding("NVFP4", rotation=64), ValueError, "rotation: expected 0, 16, 32, 128, got 64"),
    (lambda: rounded(X.astype(float), Rounding("FP8")), TypeError, "x: expected float32, got float64"),
    (
        lambda: rounded(X, Rounding("MXFP4")),
        ValueError,
        "x: expected (…, K) with K a multiple of 32, got (2, 48)",
    ),
    (
        lambda: rounded(X + np.inf, Rounding("FP8")),
        ValueError,
        "x: expected finite numbers: an error of others is no number",
    ),
    (lambda: rotated(X, 12), ValueError, "block: expected a power of two, got 12"),
    (lambda: rotated(X, 32), ValueError, "x: expected (…, K) with K a multiple of 32, got (2, 48)"),
    (
        lambda: block_errors(X, X[:1]),
        ValueError,
        "back: expected the shape of x, (2, 48), got (1, 48)",
    ),
    (lambda: errors(X, X), ValueError, "x: expected (…, K) with K a multiple of 32, got (2, 48)"),
    (
        lambda: rounded_model(Model.random(NARROW), Rounding("INT4")),
        ValueError,
        "layers.0.down: expected rows of a multiple of 128 for INT4, got 160",
    ),
]


@pytest.mark.parametrize(("call", "error", "line"), REFUSED)
def test_what_cannot_be_rounded_is_refused(call, error, line):
    with pytest.raises(error) as refused:
        call()
    assert str(refused.value) == line
