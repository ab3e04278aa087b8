"""The Triton kernels in the interpreter, in fp32 and fp16: maths and masks. bf16 is wrong there by design."""

import pytest
import torch

from course_kernels.attention import k01_materialised, k03_flash, k05_blocks_of_rows
from course_kernels.attention.problem import PROBLEM as ATTENTION
from course_kernels.problem import Workload, worst_error
from course_kernels.vector_add import k02_triton
from course_kernels.vector_add.problem import PROBLEM as VECTOR_ADD

pytestmark = pytest.mark.kept

# Small stand-ins for the two tables: copies by descriptor, and by pointers.
BY_TMA = k03_flash.Tile(64, 32, warps=4, stages=2, tma=True)
BY_LOADS = k03_flash.Tile(64, 64, warps=4, stages=2, tma=False)


def inputs_of(w, seed=0):
    return ATTENTION.make_inputs(w, torch.Generator().manual_seed(seed), "cpu")


def attention_workload(dtype="float32", N=70, D=64, causal=False, B=1, H=2):
    return Workload.of(dtype, B=B, H=H, N=N, D=D, causal=causal)


@pytest.mark.parametrize("N", [1, 1000, 1024, 3001])
def test_vector_add(N):
    w = Workload.of("float32", N=N)
    inputs = VECTOR_ADD.make_inputs(w, torch.Generator().manual_seed(0), "cpu")

    assert worst_error(k02_triton.vector_add(*inputs), VECTOR_ADD.reference(*inputs)) <= VECTOR_ADD.max_error(
        w
    )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("N", [1, 17, 63, 64, 65, 129, 200])
@pytest.mark.parametrize("tile", [BY_TMA, BY_LOADS], ids=["tma", "loads"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_flash_is_right(dtype, tile, N, causal):
    w = attention_workload(dtype, N=N, causal=causal)
    q, k, v = inputs_of(w)
    out, _ = k03_flash.attention_with_lse(q, k, v, causal=causal, tile=tile)

    assert out.dtype is q.dtype
    assert worst_error(
        out, ATTENTION.reference(q, k, v, causal=causal), rows_apart=True
    ) <= ATTENTION.max_error(w)


@pytest.mark.parametrize(("block_m", "block_n"), [(32, 64), (64, 32), (64, 64), (16, 128)])
def test_the_diagonal_may_be_cut_anywhere(block_m, block_n):
    w = attention_workload("float16", N=150, D=64, causal=True, H=1)
    q, k, v = inputs_of(w)
    tile = k03_flash.Tile(block_m, block_n, warps=4, stages=2, tma=False)

    out, _ = k03_flash.attention_with_lse(q, k, v, causal=True, tile=tile)

    assert worst_error(
        out, ATTENTION.reference(q, k, v, causal=True), rows_apart=True
    ) <= ATTENTION.max_error(w)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("tile", [*k03_flash.HOPPER.items(), *k03_flash.GENERIC.items()], ids=str)
def test_every_shipped_tile_is_right(tile, causal):
    (element_bytes, D), shape = tile
    w = attention_workload({2: "float16", 4: "float32"}[element_bytes], N=150, D=D, causal=causal, H=1)
    q, k, v = inputs_of(w)
    out, _ = k03_flash.attention_with_lse(q, k, v, causal=causal, tile=shape)

    assert worst_error(
        out, ATTENTION.reference(q, k, v, causal=causal), rows_apart=True
    ) <= ATTENTION.max_error(w)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("N", [1, 70, 128])
def test_lse_is_the_logarithm_of_the_sum(N, causal):
    w = attention_workload(N=N, causal=causal, B=2)
    q, k, v = inputs_of(w)
    _, lse = k03_flash.attention_with_lse(q, k, v, causal=causal, tile=BY_TMA)
    scores = q.double() @ k.double().transpose(-1, -2) / 8
    if causal:
        scores = scores.masked_fill(torch.ones(N, N, dtype=torch.bool).triu(1), -torch.inf)

    assert lse.dtype is torch.float32
    assert lse.shape == (2, 2, N)
    torch.testing.assert_close(lse.double(), torch.logsumexp(scores, -1), rtol=1e-5, atol=1e-5)


def test_large_scores_do_not_overflow():
    q, k, v = inputs_of(attention_workload(N=65))
    out, lse = k03_flash.attention_with_lse(100 * q, 100 * k, v, tile=BY_TMA)

    assert torch.isfinite(out).all()
    assert torch.isfinite(lse).all()
    assert worst_error(out, ATTENTION.reference(100 * q, 100 * k, v)) <= 1e-3


@pytest.mark.parametrize(
    "kernel", [k01_materialised, k03_flash, k05_blocks_of_rows], ids=["k01", "k03", "k05"]
)
class TestProperties:
    """What holds for attention whoever computes it."""

    def test_the_first_causal_row_is_the_first_value(self, kernel):
        q, k, v = inputs_of(attention_workload(N=70))

        assert torch.equal(kernel.attention(q, k, v, causal=True)[:, :, 0], v[:, :, 0])

    def test_a_causal_row_does_not_see_what_comes_later(self, kernel):
        q, k, v = inputs_of(attention_workload(N=70))
        before = kernel.attention(q, k, v, causal=True)
        k[:, :, 40:], v[:, :, 40:] = 7.0, -7.0
        after = kernel.attention(q, k, v, causal=True)

        torch.testing.assert_close(before[:, :, :40], after[:, :, :40])
        assert not torch.allclose(before[:, :, 40:], after[:, :, 40:])

    def test_the_order_of_keys_does_not_matter(self, kernel):
        q, k, v = inputs_of(attention_workload(N=70))
        order = torch.randperm(70, generator=torch.Generator().manual_seed(1))
        shuffled = k[:, :, order].contiguous(), v[:, :, order].contiguous()

        torch.testing.assert_close(kernel.attention(q, k, v), kernel.attention(q, *shuffled))

    def test_equal_values_come_back(self, kernel):
        q, k, v = inputs_of(attention_workload(N=70))

        torch.testing.assert_close(kernel.attention(q, k, torch.ones_like(v)), torch.ones_like(v))

    def test_heads_do_not_mix(self, kernel):
        q, k, v = inputs_of(attention_workload(N=70, H=3))
        alone = kernel.attention(*(x[:, 1:2].contiguous() for x in (q, k, v)))

        torch.testing.assert_close(kernel.attention(q, k, v)[:, 1:2], alone)


@pytest.mark.parametrize("kernel", [k01_materialised, k05_blocks_of_rows], ids=["k01", "k05"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_plain_attention_is_right(dtype, causal, kernel, monkeypatch):
    monkeypatch.setattr(k05_blocks_of_rows, "ROWS", 128)  # two blocks and a short one
    w = attention_workload(dtype, N=300, D=128, causal=causal)
    q, k, v = inputs_of(w)
    out = kernel.attention(q, k, v, causal=causal)

    assert worst_error(
        out, ATTENTION.reference(q, k, v, causal=causal), rows_apart=True
    ) <= ATTENTION.max_error(w)


def test_a_block_of_rows_never_makes_more_than_its_own_scores(monkeypatch):
    monkeypatch.setattr(k05_blocks_of_rows, "ROWS", 8)
    made = []
    softmax = torch.softmax
    monkeypatch.setattr(torch, "softmax", lambda s, dim: made.append(tuple(s.shape)) or softmax(s, dim))
    k05_blocks_of_rows.attention(*inputs_of(attention_workload(N=20)))

    assert [rows for _, rows, _ in made] == [8, 8, 4]
    assert {keys for _, _, keys in made} == {20}  # whole rows


@pytest.mark.parametrize("kernel", [k01_materialised, k05_blocks_of_rows], ids=["k01", "k05"])
def test_plain_attention_leaves_the_callers_precision_alone(kernel):
    q, k, v = inputs_of(attention_workload(N=3))
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        kernel.attention(q, k, v)

        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)
