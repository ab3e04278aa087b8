"""The kernels for data-centre Blackwell, on such a card: right at sizes of every kind. Others collect no test here."""

from __future__ import annotations

import pytest
import torch

from course_kernels.blackwell import decode, one_block, pair, scaled
from course_kernels.blackwell.card import CARDS
from course_kernels.blackwell.scaled import MXFP8, NVFP4, Format, in_blocks, values_of
from course_kernels.gemm.problem import PROBLEM
from course_kernels.measure.check import checked_error
from course_kernels.measure.competitor import Competitor
from course_kernels.nvfp4.formats import E2M1, values
from course_kernels.problem import Workload

GROUPS = ("blackwell",)
CAPABILITY = "10.0"
__test__ = torch.cuda.get_device_capability() in CARDS

# Less than a tile; a tile; a pair's tile; ragged ones each way, more steps than stages; many tiles.
SIZES = [(1, 8, 8), (128, 256, 64), (256, 256, 512), (130, 264, 456), (1000, 1000, 1000), (2304, 4104, 1032)]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator("cuda").manual_seed(seed)


@pytest.mark.parametrize("kernel", [one_block, pair], ids=["one_block", "pair"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(("M", "N", "K"), SIZES)
def test_a_product_is_right(kernel, dtype, M, N, K):
    w = Workload.of(dtype, M=M, N=N, K=K)
    name = kernel.__name__.rpartition(".")[2]
    error = checked_error(Competitor(f"blackwell/{name}", PROBLEM, kernel.gemm), w, generator())
    assert error <= PROBLEM.max_error(w)


def scaled_inputs(form: Format, R: int, K: int, seed: int):
    draw = generator(seed)
    if form is NVFP4:
        numbers = torch.randint(0, 256, (R, K // 2), generator=draw, device="cuda", dtype=torch.uint8)
        low, high = 8, 112  # codes of E4M3 from 2**-6 to 128, all positive
    else:
        numbers = torch.randn(R, K, generator=draw, device="cuda").to(form.numbers)
        low, high = 117, 138  # E8M0 from 2**-10 to 2**10
    shape = (R, K // form.share)
    scales = torch.randint(low, high, shape, generator=draw, device="cuda", dtype=torch.uint8).view(
        form.scales
    )
    return numbers, in_blocks(scales), values_of(numbers, scales, form)


@pytest.mark.parametrize("form", [NVFP4, MXFP8], ids=lambda form: form.name)
@pytest.mark.parametrize(
    ("M", "N", "K"),
    [(1, 8, 64), (128, 128, 256), (130, 136, 320), (256, 384, 1344), (1000, 1000, 4096), (2304, 4104, 1088)],
)
def test_a_scaled_product_is_right(form, M, N, K):
    (a, a_scales, true_a), (b, b_scales, true_b) = (scaled_inputs(form, R, K, s) for s, R in ((1, M), (2, N)))
    c = scaled.gemm(a, a_scales, b, b_scales, 0.25, form=form).double()
    truth = 0.25 * true_a @ true_b.T
    # Each element by what it adds up: large sums of one row do not hide what is wrong in another.
    room = 0.25 * true_a.abs() @ true_b.abs().T
    assert bool(((c - truth).abs() <= 2.0**-8 * truth.abs() + 2.0**-14 * room).all())


def test_hardware_and_software_decode_every_byte_alike():
    codes = torch.arange(256, dtype=torch.uint8, device="cuda").repeat(33)
    table = torch.tensor(values(E2M1), device="cuda")
    due = torch.stack([table[codes.long() & 15], table[codes.long() >> 4]], dim=-1).flatten().half()
    for in_hardware in (False, True):
        found = decode.decode(codes, in_hardware=in_hardware)
        assert torch.equal(found.view(torch.int16), due.view(torch.int16)), in_hardware  # -0 too
