"""Matrix instructions on the card: sums of ones are exact, and no rate passes what a multiprocessor has."""

from statistics import median

import pytest

from course_kernels.microbenchmarks import tensor
from course_kernels.microbenchmarks.checked import WrongAnswer

# FLOPs that a multiprocessor of a Hopper card has for each cycle, by its data sheet
SHEET = {"bf16": 4096, "tf32": 2048, "e4m3": 8192}
GROUPS = ("microbenchmarks",)
ALONE = True


@pytest.mark.parametrize("kind", tensor.K)
def test_wide_tiles_come_close_to_the_sheet(kind):
    rate = median(tensor.flops_per_clock("wgmma", 3, kind=kind))

    assert 0.9 * SHEET[kind] < rate < 1.01 * SHEET[kind]


def test_a_warp_alone_has_less_than_a_warpgroup():
    assert median(tensor.flops_per_clock("mma", 3)) < median(tensor.flops_per_clock("wgmma", 3))


def test_operands_that_are_not_ones_are_noticed(monkeypatch):
    monkeypatch.setitem(tensor.ONES, "bf16", 0x3F803F00)  # 1 and 0.5

    with pytest.raises(WrongAnswer, match="a sum of ones is off by"):
        tensor.flops_per_clock("mma", 1)


def test_sums_of_8_bit_products_stop_growing_and_others_do_not():
    ones, said = tensor.sum_of_ones("e4m3")
    assert said < ones / 2

    for kind, passes in (("bf16", 256), ("tf32", 256), ("e4m3", tensor.PASSES["e4m3"])):
        ones, said = tensor.sum_of_ones(kind, passes)
        assert said == ones
