"""Attention of 8-bit numbers on the card: timed sizes, any length, normal numbers, rounding, the same bits."""

import pytest
import torch

from course_kernels.attention_fp8 import beside, k01_triton, round_blocks
from course_kernels.attention_fp8.problem import PROBLEM, exact, in_8_bits, normal, rounded_to_fp8
from course_kernels.measure.check import checked_error
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Workload, worst_error

GROUPS = ("attention_fp8",)


def workload(N, *, B=1, H=2, D=128, causal=False):
    return Workload.of("bfloat16", B=B, H=H, N=N, D=D, causal=causal)


def generator(seed=0):
    return torch.Generator("cuda").manual_seed(seed)


@pytest.mark.parametrize("w", PROBLEM.time_on, ids=lambda w: w.label)
def test_the_sizes_that_are_timed_are_right(w):
    assert checked_error(k01_triton, w, generator()) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("D", [64, 128])
@pytest.mark.parametrize("tile", [k01_triton.HOPPER, k01_triton.GENERIC], ids=["by TMA", "by pointers"])
def test_both_ways_of_loading_are_right(tile, D, causal):
    w = workload(1008, H=3, D=D, causal=causal)
    inputs = PROBLEM.make_inputs(w, generator(), "cuda")
    o = k01_triton.attention_fp8(*inputs, causal=causal, tile=tile)

    truth = PROBLEM.reference(*inputs, causal=causal)
    assert worst_error(o, truth, rows_apart=True) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("N", [64, 1000, 4096])
def test_normal_numbers_are_off_as_rounding_says(N, causal):
    """No fault hides among whole numbers: of normal ones too the error is the contract's, as a root mean square."""
    rows = normal(workload(N, H=8), generator(), "cuda")
    truth = exact(*rows, causal=causal)

    def off(o):
        return float((o.double() - truth).square().mean().sqrt())

    inputs = in_8_bits(*rows)
    found = off(k01_triton.attention_fp8(*inputs, causal=causal))
    assert found == pytest.approx(off(PROBLEM.reference(*inputs, causal=causal)), rel=0.05)


@pytest.mark.parametrize("way", [beside.of_8_bits, beside.with_rounding])
@pytest.mark.parametrize("causal", [False, True])
def test_the_race_beside_16_bits_accepts_it(way, causal):
    competitor = Competitor("fp8", beside.BESIDE, way(k01_triton.attention_fp8))
    w = workload(4096, H=16, causal=causal)

    assert checked_error(competitor, w, generator()) <= beside.BESIDE.max_error(w)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("N", [1, 65, 4096])
def test_blocks_are_rounded_as_the_contract_says(N, dtype, turned):
    x = torch.randn(2, 3, N, 128, generator=generator(N), device="cuda").to(dtype)
    numbers, scale = round_blocks.round_blocks(x, turned=turned)
    numbers = numbers.mT if turned else numbers
    expected, scales = rounded_to_fp8(x)

    torch.testing.assert_close(scale, scales, rtol=1e-6, atol=0)
    # The same number; or its neighbour, where a quotient lies between two.
    torch.testing.assert_close(numbers.float(), expected.float(), rtol=2.0**-3, atol=2.0**-9)
    assert (numbers.float() == expected.float()).double().mean() > 0.999


def test_a_block_with_nan_shows_it():
    x = torch.ones(1, 1, 128, 128, device="cuda")
    x[0, 0, 70, 3] = torch.nan
    numbers, scale = round_blocks.round_blocks(x)

    assert scale[0, 0].isnan().tolist() == [False, True]
    assert (numbers[:, :, :64].float() == 448).all()


def test_the_same_call_gives_the_same_bits():
    inputs = PROBLEM.make_inputs(workload(2000, H=16), generator(), "cuda")
    first = k01_triton.attention_fp8(*inputs)

    assert all(torch.equal(k01_triton.attention_fp8(*inputs), first) for _ in range(100))
