"""The multiply of 8-bit numbers in the interpreter; its tolerance against a model of Hopper's sums; its refusals."""

import re
from types import SimpleNamespace

import pytest
import torch

from course_kernels.gemm_fp8 import k01_triton, library
from course_kernels.gemm_fp8.problem import LARGEST, PROBLEM, rounded_to_fp8
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept

TILE = k01_triton.Tile(32, 64, 32, warps=4, stages=3, group_m=2, persistent=True)


def inputs(M, N, K):
    w = Workload.of("bfloat16", M=M, N=N, K=K)
    return w, PROBLEM.make_inputs(w, torch.Generator().manual_seed(M + N + K), "cpu")


@pytest.mark.parametrize(("M", "N", "K"), [(1, 1, 1), (33, 65, 17), (130, 72, 272), (64, 128, 64)])
def test_any_size_is_right(M, N, K):
    w, tensors = inputs(M, N, K)
    c = k01_triton.gemm_fp8(*tensors)

    assert c.dtype is torch.bfloat16
    # The interpreter cuts float32 to bfloat16 where a card rounds: up to 2**-8 more.
    assert worst_error(c, PROBLEM.reference(*tensors)) <= PROBLEM.max_error(w) + 2.0**-8


@pytest.mark.parametrize(("M", "N", "K"), [(64, 128, 64), (200, 72, 48)])
def test_the_copy_engine_cuts_at_the_edges(M, N, K):
    w, tensors = inputs(M, N, K)
    c = k01_triton.gemm_fp8(*tensors, tile=TILE)

    assert worst_error(c, PROBLEM.reference(*tensors)) <= PROBLEM.max_error(w) + 2.0**-8


def test_the_largest_element_lands_on_the_largest_number():
    for seed in range(50):
        x = torch.randn(20, 30, generator=torch.Generator().manual_seed(seed)) * 10.0 ** (seed - 25)
        numbers, scale = rounded_to_fp8(x)

        assert numbers.float().abs().max() == LARGEST  # none is NaN
        assert ((numbers.float() * scale - x).abs() <= 2.0**-4 * x.abs() + scale * 2.0**-10).all()


@pytest.mark.parametrize(
    ("capability", "columns", "offset", "by_engine"),
    [
        ((9, 0), 64, 0, True),
        ((9, 0), 16, 0, True),
        ((8, 9), 64, 0, False),
        ((10, 0), 64, 0, False),
        ((9, 0), 24, 0, False),  # a row begins between two multiples of 16 bytes
        ((9, 0), 64, 8, False),
    ],
)
def test_who_goes_by_the_copy_engine(monkeypatch, capability, columns, offset, by_engine):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)

    def on_card(offset):
        return SimpleNamespace(
            data_ptr=lambda: 4096 + offset,
            shape=(4, columns),
            element_size=lambda: 1,
            device=torch.device("cuda"),
        )

    assert k01_triton.by_copy_engine(on_card(0), on_card(offset)) is by_engine


# --- a tolerance that means something ------------------------------------------------------------


def cut(x, exponent, bits):
    """x without what lies below 2**(exponent - bits)."""
    step = torch.exp2(exponent - bits)
    return torch.trunc(x / step) * step


def hopper_like(a, b, scale_a, scale_b, bits=13, at_once=32):
    """Sums as Hopper makes them: 32 products and the sum so far, lined up with the largest, then cut."""
    a, b = a.double(), b.double()
    total = torch.zeros(a.shape[0], b.shape[0], dtype=torch.float64)
    for k in range(0, a.shape[1], at_once):
        terms = torch.cat(
            [total[None], (a[:, None, k : k + at_once] * b[None, :, k : k + at_once]).movedim(2, 0)]
        )
        exponent = torch.floor(torch.log2(terms.abs().amax(0).clamp_min(2.0**-60)))
        total = cut(terms, exponent, bits).sum(0)
    return (total * scale_a * scale_b).to(torch.bfloat16)


@pytest.mark.parametrize("K", [512, 2048])
def test_the_tolerance_covers_sums_of_14_bits_and_not_much_less(K):
    w, tensors = inputs(64, 64, K)
    truth = PROBLEM.reference(*tensors)

    assert worst_error(hopper_like(*tensors), truth) <= PROBLEM.max_error(w)
    assert not worst_error(hopper_like(*tensors, bits=9), truth) <= PROBLEM.max_error(w)


def test_numbers_rounded_once_more_are_refused():
    w, (a, b, scale_a, scale_b) = inputs(64, 64, 512)
    coarser = a.to(torch.float8_e5m2).float().to(torch.float8_e4m3fn)  # one bit of fraction less

    assert not worst_error(
        PROBLEM.reference(coarser, b, scale_a, scale_b), PROBLEM.reference(a, b, scale_a, scale_b)
    ) <= PROBLEM.max_error(w)


def test_a_forgotten_scale_is_refused():
    w, (a, b, scale_a, scale_b) = inputs(64, 64, 64)
    one = torch.ones(1)

    assert not worst_error(
        PROBLEM.reference(a, b, scale_a, one), PROBLEM.reference(a, b, scale_a, scale_b)
    ) <= PROBLEM.max_error(w)


# --- refusals ---------------------------------------------------------------------------------------


def test_what_a_launcher_refuses():
    _, (a, b, scale_a, scale_b) = inputs(4, 8, 16)

    with pytest.raises(TypeError, match="a: expected float8_e4m3fn, got bfloat16"):
        k01_triton.gemm_fp8(a.bfloat16(), b, scale_a, scale_b)
    with pytest.raises(ValueError, match=re.escape("b: expected (N, K) with K=16, got (8, 15)")):
        k01_triton.gemm_fp8(a, b[:, :15].contiguous(), scale_a, scale_b)
    with pytest.raises(TypeError, match="scale_a: expected float32, got float64"):
        k01_triton.gemm_fp8(a, b, scale_a.double(), scale_b)
    with pytest.raises(ValueError, match=re.escape("scale_b: expected (S,) with S=1, got (2,)")):
        k01_triton.gemm_fp8(a, b, scale_a, torch.ones(2))


def test_the_library_says_what_it_takes():
    taken = [
        library.supports(Workload.of("bfloat16", M=1, N=n, K=k)) for n, k in ((16, 32), (8, 16), (16, 17))
    ]

    assert taken == [True, False, False]
