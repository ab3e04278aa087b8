"""The Triton multiplies where the copy engine brings the tiles, on the card: sizes that cut a tile at every edge."""

import pytest
import torch

from course_kernels.gemm import k05_triton
from course_kernels.gemm.problem import PROBLEM as GEMM
from course_kernels.gemm_fp8 import k01_triton
from course_kernels.gemm_fp8.problem import PROBLEM as FP8
from course_kernels.measure.check import checked_error
from course_kernels.problem import Workload

GROUPS = ("gemm", "gemm_fp8")
SIZES = [(1, 8, 8), (136, 8, 4104), (1000, 264, 72), (2048, 2048, 64), (130, 4096, 16), (5000, 4104, 200)]


@pytest.mark.group("gemm")
@pytest.mark.parametrize(("M", "N", "K"), SIZES)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_gemm_is_right(dtype, M, N, K):
    w = Workload.of(dtype, M=M, N=N, K=K)

    assert checked_error(k05_triton, w, torch.Generator("cuda").manual_seed(0)) <= GEMM.max_error(w)


@pytest.mark.group("gemm_fp8")
@pytest.mark.parametrize(("M", "N", "K"), [(1, 16, 16), (136, 16, 4112), (1000, 272, 80), (5000, 4112, 208)])
def test_gemm_fp8_is_right(M, N, K):
    w = Workload.of("bfloat16", M=M, N=N, K=K)

    assert checked_error(k01_triton, w, torch.Generator("cuda").manual_seed(0)) <= FP8.max_error(w)


@pytest.mark.group("gemm")
def test_float32_is_multiplied_as_tf32():
    """Off by what TF32 loses, and by no more: a plain float32 multiply would be far closer to the truth."""
    w = Workload.of("float32", M=512, N=512, K=512)
    error = checked_error(k05_triton, w, torch.Generator("cuda").manual_seed(0))

    assert 2.0**-14 < error <= GEMM.max_error(w)
