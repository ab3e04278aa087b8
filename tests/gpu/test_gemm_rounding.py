"""What a number type costs, on the card: the types in their order, 8-bit sums, and one instruction that is exact."""

import pytest
import torch

from course_kernels.gemm import one_instruction, rounding
from course_kernels.gemm_fp8 import library
from course_kernels.gemm_fp8.problem import PROBLEM
from course_kernels.measure.check import checked_error
from course_kernels.problem import Workload, worst_error

GROUPS = ("gemm", "gemm_fp8")


@pytest.fixture(scope="module")
def errors():
    return rounding.errors(1024, 1024, 2048)


@pytest.mark.group("gemm")
def test_fewer_bits_of_fraction_are_a_larger_error(errors):
    for measure in ("rms", "worst"):
        fp32, tf32, fp16, bf16, fp8 = (errors[t][measure] for t in ("fp32", "tf32", "fp16", "bf16", "fp8"))

        assert 0 < 20 * fp32 < min(tf32, fp16)
        assert max(tf32, fp16) < 2 * min(tf32, fp16)  # the same fraction, of 10 bits
        assert 4 * max(tf32, fp16) < bf16  # three bits less
        assert 4 * bf16 < fp8  # and four less again


@pytest.mark.group("gemm")
def test_the_error_is_the_rounding_of_the_inputs(errors):
    """The rms of rounding to f bits of fraction, over a uniform fraction, is 2**-f / sqrt(12) of a power of two."""
    for name, bits in (("tf32", 10), ("fp16", 10), ("bf16", 7), ("fp8", 3)):
        expected = (
            2.0**-bits / 12**0.5 / 1.4 * 2**0.5
        )  # of a number some 1.4 powers of two large; two matrices

        assert expected / 1.5 < errors[name]["rms"] < 1.5 * expected


@pytest.mark.group("gemm")
@pytest.mark.parametrize("seed", range(5))
def test_one_instruction_is_exact(seed):
    assert one_instruction.is_exact(seed)


@pytest.mark.group("gemm")
def test_the_report_shows_the_instruction():
    assert "HMMA.16816" in one_instruction.report()
    assert "wrong elements:  0 of 128" in one_instruction.report()


@pytest.mark.group("gemm_fp8")
@pytest.mark.parametrize("function", [library.cublaslt, library.cublaslt_exact_sums])
@pytest.mark.parametrize(
    "w", list(filter(library.supports, (*PROBLEM.check_on, *PROBLEM.time_on))), ids=lambda w: w.label
)
def test_the_library_is_right(function, w):
    assert checked_error(function, w, torch.Generator("cuda").manual_seed(0)) <= PROBLEM.max_error(w)


@pytest.mark.group("gemm_fp8")
def test_sums_in_the_tensor_cores_lose_bits():
    """Fast accumulation is less exact than sums that leave the tensor cores: the reason for the tolerance."""
    w = Workload.of("bfloat16", M=512, N=512, K=16384)
    inputs = PROBLEM.make_inputs(w, torch.Generator("cuda").manual_seed(0), "cuda")
    truth = PROBLEM.reference(*inputs)
    fast, exact = (worst_error(f(*inputs), truth) for f in (library.cublaslt, library.cublaslt_exact_sums))

    assert exact < fast <= PROBLEM.max_error(w)
