"""The multiply of 8-bit numbers on Hopper's own instructions, on the card: ugly sizes, and the same bits again."""

import pytest
import torch

from course_kernels.gemm_fp8 import k02_hopper
from course_kernels.gemm_fp8.problem import PROBLEM
from course_kernels.measure.check import checked_error
from course_kernels.problem import Workload, worst_error

GROUPS = ("gemm_fp8",)
SIZES = [(1, 8, 16), (136, 16, 4112), (1000, 272, 80), (127, 200, 144), (257, 392, 128), (5000, 4112, 208)]


def inputs(M, N, K):
    w = Workload.of("bfloat16", M=M, N=N, K=K)
    return PROBLEM.make_inputs(w, torch.Generator("cuda").manual_seed(0), "cuda")


@pytest.mark.parametrize(("M", "N", "K"), SIZES)
def test_every_size_is_right(M, N, K):
    w = Workload.of("bfloat16", M=M, N=N, K=K)

    assert checked_error(k02_hopper, w, torch.Generator("cuda").manual_seed(0)) <= PROBLEM.max_error(w)


def test_sums_that_leave_in_time_are_nearer_to_the_truth():
    tensors = inputs(1024, 1024, 16384)
    truth = PROBLEM.reference(*tensors)

    def rms_error(c):
        return float((c.double() - truth).square().mean().sqrt())

    exact, fast = (k02_hopper.gemm_fp8(*tensors, exact=exact) for exact in (True, False))
    assert worst_error(exact, truth) <= 2.0**-8 + 2.0**-10
    assert rms_error(exact) < rms_error(fast)


@pytest.mark.parametrize("exact", [True, False])
def test_ten_thousand_launches_give_the_same_bits(exact):
    tensors = inputs(260, 520, 336)
    first = k02_hopper.gemm_fp8(*tensors, exact=exact)
    for n in range(10_000):
        last = k02_hopper.gemm_fp8(*tensors, exact=exact)
        if n % 100 == 0:
            assert torch.equal(last, first)
    torch.cuda.synchronize()

    assert torch.equal(last, first)
