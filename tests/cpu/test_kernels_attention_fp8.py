"""Attention of 8-bit numbers in the interpreter, rounding, the race beside 16 bits; faults; refusals."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from planted import planted

from course_judge.worker.card_arithmetic import as_on_a_card
from course_judge.worker.interpreter import watched_memory
from course_kernels.attention_fp8 import arguments, beside, k01_triton, round_blocks
from course_kernels.attention_fp8.problem import (
    BLOCK,
    LARGEST,
    PROBLEM,
    exact,
    in_8_bits,
    normal,
    rounded_to_fp8,
    stands_for,
)
from course_kernels.measure.check import checked_error
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept

BY_TMA = replace(k01_triton.HOPPER, stages=1)


@pytest.fixture(autouse=True)
def _as_on_a_card():
    """The interpreter halves what rounds up to a power of two in 8 bits; a card does not."""
    with as_on_a_card():
        yield


def workload(N, *, H=1, causal=False, D=128):
    return Workload.of("bfloat16", B=1, H=H, N=N, D=D, causal=causal)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator().manual_seed(seed), "cpu")


def error(out, inputs, causal):
    return worst_error(out, PROBLEM.reference(*inputs, causal=causal), rows_apart=True)


# --- the answer -------------------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("N", "D", "tile"), [(1, 128, None), (70, 64, None), (130, 128, None), (144, 64, BY_TMA)]
)
def test_any_length_is_right(N, D, tile, causal):
    w = workload(N, H=2, causal=causal, D=D)
    inputs = inputs_of(w)
    with watched_memory(shuffle=1) as memory:
        o = k01_triton.attention_fp8(*inputs, causal=causal, tile=tile)

    assert memory.findings == []
    assert o.dtype is torch.bfloat16
    assert error(o, inputs, causal) <= PROBLEM.max_error(w)


def test_one_key_is_answered_by_its_value():
    inputs = inputs_of(workload(1))
    o = k01_triton.attention_fp8(*inputs)

    torch.testing.assert_close(o.double(), PROBLEM.reference(*inputs), rtol=2.0**-7, atol=0)


def test_normal_numbers_are_off_by_what_week_17_says():
    """The kernel's error is that of the contract's rounding, and close to that of the page's sums in NumPy."""
    rows = normal(workload(192), torch.Generator().manual_seed(17), "cpu")
    inputs = in_8_bits(*rows)
    q, k, v = (
        stands_for(x, s) for x, s in zip((inputs[0], inputs[1], inputs[2].mT), inputs[3:], strict=True)
    )
    s = q @ k.mT / 128**0.5
    p = torch.exp(s - s.amax(-1, keepdim=True))
    page = (p.float() * LARGEST).to(torch.float8_e4m3fn).double() / LARGEST @ v / p.sum(-1, keepdim=True)
    truth = exact(*rows)

    def off(o):
        return float((o.double() - truth).square().mean().sqrt())

    found = off(k01_triton.attention_fp8(*inputs))
    assert found == pytest.approx(off(PROBLEM.reference(*inputs)), rel=0.01)
    assert found == pytest.approx(off(page), rel=0.1)


# --- a tolerance that means something ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("start // BLOCK)  # [BLOCK_M]", "0)"),  # one block's scale of K for all
        ("step * tl.load(scale_v_ptr + blocks + start // BLOCK)", "step * tl.load(scale_v_ptr + blocks)"),
        ("acc * repair[:, None] + step", "acc + step"),
        ("l = l * repair + tl.sum(p, 1)", "l = l + tl.sum(p, 1)"),
        ("p.to(v_t.dtype)", "p.to(tl.float8e5).to(v_t.dtype)"),  # one bit of fraction less
        ("tl.ceil(tl.max(s, 1))", "tl.max(s, 1)"),  # rounded another way, whenever the largest changes
        ("seen = col[None, :] <= row[:, None] if CAUSAL", "seen = col[None, :] < row[:, None] + 2 if CAUSAL"),
    ],
)
def test_a_planted_fault_is_refused(tmp_path, old, new):
    wrong = planted(tmp_path, k01_triton, old, new)
    w = workload(130, causal=True)
    inputs = inputs_of(w)
    # Blocks that differ by much, so that whose scale is whose shows.
    q, k, v = normal(w, torch.Generator().manual_seed(1), "cpu")
    grows = torch.where(torch.arange(130) < BLOCK, 0.25, 2.0)[:, None]
    inputs = in_8_bits(q, k * grows, v * grows)

    assert not error(wrong.attention_fp8(*inputs, causal=True), inputs, True) <= PROBLEM.max_error(w)
    assert error(k01_triton.attention_fp8(*inputs, causal=True), inputs, True) <= PROBLEM.max_error(w)


# --- rounding ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("N", "dtype"), [(1, torch.bfloat16), (64, torch.float32), (150, torch.float16)])
def test_blocks_are_rounded_as_the_contract_says(N, dtype, turned):
    x = torch.randn(1, 2, N, 64, generator=torch.Generator().manual_seed(N)).to(dtype)
    x[:, :, : BLOCK // 2] *= 30
    with watched_memory(shuffle=1) as memory:
        numbers, scale = round_blocks.round_blocks(x, turned=turned)
    numbers = numbers.mT if turned else numbers
    expected, scales = rounded_to_fp8(x)

    assert memory.findings == []
    torch.testing.assert_close(scale, scales, rtol=1e-6, atol=0)
    assert numbers.float().abs().max() == LARGEST
    # The same number, or its neighbour.
    torch.testing.assert_close(numbers.float(), expected.float(), rtol=2.0**-3, atol=2.0**-9)
    assert (numbers.float() == expected.float()).double().mean() > 0.99
    off = stands_for(numbers, scale) - x.double()
    of_row = scale.double().repeat_interleave(BLOCK, -1)[..., :N, None]
    assert (off.abs() <= 2.0**-4 * x.double().abs() + 2.0**-10 * of_row).all()


def test_a_block_of_zeros_and_a_block_with_nan():
    x = torch.zeros(1, 1, 2 * BLOCK, 64)
    x[0, 0, BLOCK + 3, 5] = torch.nan
    numbers, scale = round_blocks.round_blocks(x)

    assert scale[0, 0, 0] == 1
    assert scale[0, 0, 1].isnan()
    assert not numbers[:, :, :BLOCK].float().any()


def test_the_largest_element_of_each_block_lands_on_the_largest_number():
    x = (
        torch.randn(2, 1, 200, 64, generator=torch.Generator().manual_seed(0))
        * torch.logspace(-9, 9, 200)[:, None]
    )
    numbers, scale = rounded_to_fp8(x)
    padded = torch.nn.functional.pad(numbers.float(), (0, 0, 0, 56)).reshape(2, 1, 4, -1)

    assert scale.shape == (2, 1, 4)
    assert (padded.abs().amax(-1) == LARGEST).all()


# --- beside 16 bits ---------------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
def test_everybody_in_the_race_is_held_against_the_16_bits(causal):
    w = workload(96, causal=causal)

    def plain(q, k, v, *, causal):
        return exact(q, k, v, causal=causal).to(torch.bfloat16)

    field = {
        "plain": beside.of_16_bits(plain),
        "fp8": beside.of_8_bits(k01_triton.attention_fp8),
        "rounded": beside.with_rounding(k01_triton.attention_fp8),
    }
    found = {
        name: checked_error(Competitor(name, beside.BESIDE, function), w, 0, device="cpu")
        for name, function in field.items()
    }

    assert found["plain"] < 2.0**-7
    assert 2.0**-4 < found["fp8"] < 0.5
    assert found["rounded"] == pytest.approx(found["fp8"], rel=0.5)


# --- refusals ---------------------------------------------------------------------------------------


def test_what_a_launcher_refuses(monkeypatch):
    q, k, v_t, *scales = inputs_of(workload(70))

    with pytest.raises(TypeError, match="q: expected float8_e4m3fn, got bfloat16"):
        k01_triton.attention_fp8(q.bfloat16(), k, v_t, *scales)
    with pytest.raises(
        ValueError, match=re.escape("v_t: expected (B, H, D, N) with D=128, got (1, 1, 70, 128)")
    ):
        k01_triton.attention_fp8(q, k, v_t.mT.contiguous(), *scales)
    with pytest.raises(ValueError, match=re.escape("scale_v: expected (B, H, S) with S=2, got (1, 1, 1)")):
        k01_triton.attention_fp8(q, k, v_t, *scales[:2], scales[2][:, :, :1].contiguous())
    small = inputs_of(workload(3, D=32))
    with pytest.raises(ValueError, match="q: expected D = 64 or 128, got D=32"):
        k01_triton.attention_fp8(*small)
    with pytest.raises(ValueError, match="x: expected D = 64 or 128, got D=32"):
        round_blocks.round_blocks(torch.ones(1, 1, 1, 32))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    with pytest.raises(
        ValueError, match=r"x: expected a GPU of compute capability 8\.9 or above .*, got 8\.0"
    ):
        arguments.refuse_older_cards("x", torch.device("cuda", 0))


@pytest.mark.parametrize(
    ("capability", "columns", "offset", "by_engine"),
    [((9, 0), 64, 0, True), ((8, 9), 64, 0, False), ((9, 0), 72, 0, False), ((9, 0), 64, 8, False)],
)
def test_who_goes_by_the_copy_engine(monkeypatch, capability, columns, offset, by_engine):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    on_card = SimpleNamespace(
        data_ptr=lambda: 4096 + offset,
        shape=(1, 1, 128, columns),
        element_size=lambda: 1,
        device=torch.device("cuda"),
    )

    assert k01_triton.by_copy_engine(on_card) is by_engine


def test_what_it_takes():
    assert k01_triton.supports(workload(1))
    assert not k01_triton.supports(workload(1, D=32))
    assert not k01_triton.supports(Workload.of("float16", B=1, H=1, N=1, D=128))
