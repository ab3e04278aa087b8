"""The grouped multiply: its groups, scales and tolerance; the kernel in the interpreter; libraries; refusals."""

import re
import sys
from types import SimpleNamespace

import pytest
import torch

from course_kernels.grouped_gemm import k01_triton, library
from course_kernels.grouped_gemm.problem import (
    BLOCK,
    LARGEST,
    PROBLEM,
    places_of,
    quantised_blocks,
    quantised_rows,
    rows_of,
)
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept

# The interpreter cuts float32 to bfloat16 where a card rounds: up to 2**-8 more.
INTERPRETED = PROBLEM.max_error(PROBLEM.check_on[0]) + 2.0**-8


def inputs(G, M, N, K, **flags):
    w = Workload.of("bfloat16", G=G, M=M, N=N, K=K, **flags)
    return w, PROBLEM.make_inputs(w, torch.Generator().manual_seed(M + N + K), "cpu")


def error(c, truth):
    return worst_error(c, truth, rows_apart=True)


# --- groups, scales, truth ------------------------------------------------------------------------


@pytest.mark.parametrize("even", [False, True])
def test_every_row_has_a_group(even):
    for G in (1, 2, 3, 5, 32):
        for M in (1, 2, 7, 130, 4096):
            rows = rows_of(Workload.of("bfloat16", G=G, M=M, N=8, K=128, even=even))

            assert len(rows) == G
            assert sum(rows) == M
            assert min(rows) >= 0
            if even:
                assert max(rows) - min(rows) <= 1
            elif G > 2:
                assert rows[:2] == [0, 1]


def test_contiguous_groups_begin_at_whole_tiles():
    w, (a, _, scale_a, _, groups) = inputs(5, 420, 16, 256)
    counts = [int((groups == g).sum()) for g in range(5)]

    assert sorted(counts) == sorted(rows_of(w))
    assert len(a) == len(groups) == places_of(w)
    for tile in groups.view(-1, BLOCK):
        rows = int((tile >= 0).sum())  # of one group, the padding behind them
        assert (tile[:rows] == tile[0]).all()
        assert (tile[rows:] == -1).all()
    assert (a.float()[groups < 0] == 0).all()
    assert scale_a.isfinite().all()


def test_scales_take_the_largest_of_each_block_to_448():
    x = torch.randn(200, 384, generator=torch.Generator().manual_seed(0))
    x[3, :128] = 0
    numbers, scale = quantised_rows(x)
    largest = numbers.float().unflatten(1, (3, BLOCK)).abs().amax(-1)
    back = numbers.float() * scale.T.repeat_interleave(BLOCK, 1)

    assert scale.shape == (3, 200)
    assert scale.is_contiguous()
    assert sorted(largest.unique().tolist()) == [0.0, LARGEST]
    assert (largest == 0).sum() == 1
    assert ((back - x).abs() <= 2.0**-4 * x.abs() + scale.max() * 2.0**-10).all()

    numbers, scale = quantised_blocks(x)
    back = numbers.float() * scale.repeat_interleave(BLOCK, 0)[:200].repeat_interleave(BLOCK, 1)
    assert scale.shape == (2, 3)
    assert (numbers.float()[:128, :128].abs().max(), numbers.float()[128:, 256:].abs().max()) == (
        LARGEST,
        LARGEST,
    )
    assert ((back - x).abs() <= 2.0**-4 * x.abs() + scale.max() * 2.0**-10).all()


@pytest.mark.parametrize("masked", [False, True])
def test_the_truth_is_the_formula(masked):
    _, (a, b, scale_a, scale_b, groups) = inputs(3, 20, 130, 256, masked=masked)
    truth = PROBLEM.reference(a, b, scale_a, scale_b, groups)
    rows = [(g, m) for g in range(3) for m in range(int(groups[g]))] if masked else range(len(groups))
    for at in rows:
        g, m, scales = (at[0], at[1], scale_a[at[0]]) if masked else (int(groups[at]), at, scale_a)
        if g < 0:
            assert (truth[at] == 0).all()
            continue
        row = a[at].double()
        for n in (0, 127, 128, 129):
            expected = sum(
                scales[s, m].double() * scale_b[g, n // 128, s].double()
                * (row[128 * s :][:128] @ b[g, n, 128 * s :][:128].double())
                for s in range(2)
            )  # fmt: skip
            assert abs(truth[at][n] - expected) <= 1e-9 * truth[at].abs().max()


# --- a tolerance that means something -------------------------------------------------------------


def of_14_bits(a, b, at_once=32):
    """Sums as a Hopper makes them: 32 products and the sum so far, lined up with the largest, then cut."""
    total = torch.zeros(len(a), len(b), dtype=torch.float64)
    for k in range(0, a.shape[1], at_once):
        products = (a[:, None, k : k + at_once] * b[None, :, k : k + at_once]).movedim(2, 0)
        terms = torch.cat([total[None], products])
        step = torch.exp2(torch.floor(torch.log2(terms.abs().amax(0).clamp_min(2.0**-60))) - 13)
        total = (torch.trunc(terms / step) * step).sum(0)
    return total


@pytest.mark.parametrize("sign", ["both", "one"])
def test_sums_that_leave_every_128_are_right_and_those_that_stay_are_not(sign):
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(8, 7168, generator=generator).to(torch.float8_e4m3fn).double() for _ in range(2))
    if sign == "one":
        a, b = a.abs(), b.abs()
    truth = a @ b.T
    left = sum(of_14_bits(a[:, k : k + BLOCK], b[:, k : k + BLOCK]) for k in range(0, 7168, BLOCK))
    allowed = PROBLEM.max_error(PROBLEM.check_on[0])

    assert error(left.to(torch.bfloat16), truth) <= allowed
    if sign == "one":  # every cut is towards zero, and the sum is far larger than a product
        assert not error(of_14_bits(a, b).to(torch.bfloat16), truth) <= allowed


FAULTS = {  # of (a, b, scale_a, scale_b, groups), the number and what is in its place
    "the scale of the next row": (2, lambda x: x.roll(1, -1)),
    "the scale of the next block of K": (2, lambda x: x.roll(1, -2)),
    "the scale of the next columns": (3, lambda x: x.roll(1, 1)),
    "the scales of the next group": (3, lambda x: x.roll(1, 0)),
    "the matrix of the next group": (1, lambda x: x.view(torch.uint8).roll(1, 0).view(x.dtype)),
    "one row too few": (4, lambda x: x - 1 if len(x) == 3 else last_row_gone(x)),
}


def last_row_gone(groups):
    """Each group without its last row."""
    return torch.where(groups == groups.roll(-1), groups, -1)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_past_the_tolerance(fault, masked):
    w, tensors = inputs(3, 30, 136, 256, masked=masked, even=True)
    number, changed = FAULTS[fault]
    given = [changed(x) if n == number else x for n, x in enumerate(tensors)]
    wrong = PROBLEM.reference(*given)

    assert not error(wrong, PROBLEM.reference(*tensors)) <= 3 * PROBLEM.max_error(w)


# --- the kernel in the interpreter ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("G", "M", "N", "K", "masked"),
    [(1, 1, 16, 128, False), (3, 131, 72, 256, False), (1, 4, 16, 128, True), (3, 90, 130, 384, True)],
)
def test_any_size_is_right(G, M, N, K, masked):
    _, tensors = inputs(G, M, N, K, masked=masked)
    c = k01_triton.grouped_gemm(*tensors)

    assert c.dtype is torch.bfloat16
    assert error(c, PROBLEM.reference(*tensors)) <= INTERPRETED


def test_nobody_s_rows():
    _, tensors = inputs(3, 70, 24, 128, masked=True)
    out = torch.full((*tensors[0].shape[:2], 24), 3.0, dtype=torch.bfloat16)
    behind = torch.arange(out.shape[1]) >= tensors[4][:, None]

    assert k01_triton.grouped_gemm(*tensors, out=out) is out
    assert (out[behind] == 3.0).all()
    truth = PROBLEM.reference(*tensors)
    assert error(out[~behind], truth[~behind]) <= INTERPRETED

    _, (a, b, scale_a, scale_b, groups) = inputs(2, 3, 24, 128)
    scale_a = torch.where(groups < 0, torch.nan, scale_a)
    b.view(torch.uint8)[:, 5] = 0x7F
    assert (k01_triton.grouped_gemm(a, b, scale_a, scale_b, groups)[groups < 0] == 0).all()


def test_what_a_launcher_refuses():
    _, tensors = inputs(2, 100, 16, 256)
    a, b, scale_a, _, groups = tensors
    for error, line, *changed in (
        (TypeError, "a: expected float8_e4m3fn, got bfloat16", (0, a.bfloat16())),
        (ValueError, "a: expected (M, K) with no empty dimension, got (512,)", (0, a.view(-1)[:512])),
        (ValueError, "b: expected (G, N, K) with K=256, got (2, 16, 128)", (1, b[..., :128])),
        (ValueError, "a: expected K a multiple of 128, got K=72", (0, a[:, :72].clone()), (1, b[..., :72].clone())),
        (ValueError, "a: expected M a multiple of 128, got M=100", (0, a[:100])),
        (ValueError, "a: expected M a multiple of 4, got M=3", (0, a[:6].view(2, 3, 256))),
        (TypeError, "scale_a: expected float32, got float64", (2, scale_a.double())),
        (ValueError, "scale_a: expected contiguous (K / 128, M), got strides (1, 2)", (2, scale_a.T.contiguous().T)),
        (ValueError, "scale_b: expected (G, N / 128, K / 128) with K / 128=2, got (2, 1, 3)", (3, torch.ones(2, 1, 3))),
        (TypeError, "groups: expected int32, got int64", (4, groups.long())),
        (ValueError, "groups: expected (M,) with M=256, got (2,)", (4, groups[:2])),
    ):  # fmt: skip
        with pytest.raises(error, match=re.escape(line)):
            k01_triton.grouped_gemm(*(dict(changed).get(n, x) for n, x in enumerate(tensors)))
    with pytest.raises(TypeError, match="out: expected bfloat16, got float32"):
        k01_triton.grouped_gemm(*tensors, out=torch.zeros(256, 16))


# --- libraries ------------------------------------------------------------------------------------


def like_torch(a, b, *, scale_a, scale_b, out_dtype, out):
    """What torch's C++ asks of a product with scales of 1 x 128 and of 128 x 128, and the product."""
    (M, K), N = a.shape, b.shape[1]
    assert a.is_contiguous()
    assert b.stride() == (1, K)
    assert (scale_a.shape, scale_a.stride()) == ((M, K // 128), (1, M))
    assert (scale_b.T.shape, scale_b.T.stride()) == ((-(-N // 128), K // 128), (K // 128, 1))
    assert M % 4 == N % 16 == K // 128 % 4 == 0
    left = a.double() * scale_a.double().repeat_interleave(128, 1)
    right = b.double() * scale_b.double().repeat_interleave(128, 0).repeat_interleave(128, 1)[:, :N]
    out.copy_((left @ right).to(out_dtype))


@pytest.mark.parametrize("masked", [False, True])
def test_cublaslt_gets_every_group_as_it_wants_it(monkeypatch, masked):
    w, tensors = inputs(2, 256 if not masked else 8, 144, 512, masked=masked, even=True)
    monkeypatch.setattr(torch, "_scaled_mm", like_torch)

    assert library.supports(w)
    assert error(library.cublaslt(*tensors), PROBLEM.reference(*tensors)) <= 2.0**-8
    if not masked:
        with pytest.raises(
            ValueError, match=re.escape("a: expected M a multiple of 128 * G = 512, got M=256")
        ):
            library.cublaslt(tensors[0], *(t.repeat(2, 1, 1) for t in tensors[1:2]), tensors[2],
                             tensors[3].repeat(2, 1, 1), tensors[4])  # fmt: skip


def test_what_cublaslt_does_not_take():
    sizes = ((2, 256, 144, 512), (2, 200, 144, 512), (2, 256, 136, 512), (2, 256, 144, 384))
    taken = [
        library.supports(Workload.of("bfloat16", **dict(zip("GMNK", s, strict=True)), even=True))
        for s in sizes
    ]

    assert taken == [True, False, False, False]
    assert not library.supports(Workload.of("bfloat16", G=2, M=256, N=144, K=512))


@pytest.mark.parametrize("masked", [False, True])
def test_deep_gemm_gets_everything_as_it_lies(monkeypatch, masked):
    _, tensors = inputs(2, 130, 24, 256, masked=masked)

    def multiply(a, b, c, groups, *expected):
        assert a[1].shape == (*a[0].shape[:-1], 2)
        assert a[1].stride()[-2:] == (1, a[0].shape[-2])  # transposed, a row of it of a multiple of 16 bytes
        assert list(expected) == ([a[0].shape[1]] if masked else [])
        c.copy_(PROBLEM.reference(a[0], b[0], a[1].mT, b[1], groups))

    names = ("m_grouped_fp8_gemm_nt_masked", "m_grouped_fp8_gemm_nt_contiguous")
    monkeypatch.setitem(sys.modules, "deep_gemm", SimpleNamespace(**{names[not masked]: multiply}))
    monkeypatch.setattr(library, "deep_gemm_version", lambda: "2.5.0")

    assert error(library.deep_gemm(*tensors), PROBLEM.reference(*tensors)) <= 2.0**-8


def test_without_deep_gemm_a_line_says_so(monkeypatch):
    monkeypatch.setattr(library, "deep_gemm_version", lambda: "")
    with pytest.raises(RuntimeError, match="deep_gemm: not installed here"):
        library.deep_gemm(*inputs(1, 4, 16, 128, masked=True)[1])
