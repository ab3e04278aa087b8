"""The microbenchmark of matrix instructions, as far as it goes without a card: what it compiles to, what it refuses."""

import re

import pytest
from compiled import seen

from course_kernels.microbenchmarks import tensor

pytestmark = pytest.mark.kept


def multiplies(code):
    return re.findall(r"\b((?:H|Q)G?MMA\.[\w.]*)", code.text)


def instructions(*how, **more):
    return seen(multiplies, tensor.SOURCE, "sm_90a", tensor.defines(*how, **more))


@pytest.mark.parametrize("columns", tensor.COLUMNS)
@pytest.mark.parametrize("a_in", ["shared", "registers"])
def test_a_pass_is_one_wgmma_sixteen_times(columns, a_in):
    assert instructions("wgmma", "bf16", columns, a_in) == [f"HGMMA.64x{columns}x16.F32.BF16"] * tensor.UNROLL


@pytest.mark.parametrize(
    ("how", "name"),
    [
        (("mma", "bf16"), "HMMA.16816.F32.BF16"),
        (("mma", "tf32"), "HMMA.1688.F32.TF32"),
        (("wgmma", "tf32"), "HGMMA.64x256x8.F32.TF32"),
        (("wgmma", "e4m3"), "QGMMA.64x256x32.F32.E4M3.E4M3"),
    ],
)
def test_every_kind_has_its_instruction(how, name):
    assert instructions(*how) == [name] * tensor.UNROLL


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (("dot", "bf16"), "instruction: expected one of mma, wgmma, got 'dot'"),
        (("mma", "fp16"), "kind: expected one of bf16, tf32, e4m3, got 'fp16'"),
        (("mma", "e4m3"), "kind: mma has no e4m3 of its own"),
        (("wgmma", "bf16", 24), "columns: expected one of 8, 16, 32, 64, 128, 256, got 24"),
        (("wgmma", "bf16", 64, "l2"), "a_in: expected one of shared, registers, got 'l2'"),
    ],
)
def test_what_there_is_not_is_refused(how, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        tensor.defines(*how)


def test_no_launch_is_refused_before_the_card_is_looked_for():
    with pytest.raises(ValueError, match="n: expected at least 1, got 0"):
        tensor.flops_per_clock("mma", 0)
    with pytest.raises(ValueError, match="passes: expected at least 1, got 0"):
        tensor.sum_of_ones("bf16", 0)


def test_sums_of_ones_stay_exact_in_the_bits_that_a_hopper_keeps():
    """8-bit products are added to 14 bits: ones are lost from 2**14 on. Others go to fp32, which has 24."""
    for kind, passes in tensor.PASSES.items():
        assert tensor.K[kind] * tensor.UNROLL * passes <= (2**14 if kind == "e4m3" else 2**24)
